// The warning of a job whose ranks use tcp because the native addon cannot be loaded.
import type { CollectiveError } from '../errors.ts';

let hasWarned = false;

/**
 * Warns once per process. Only rank 0 calls it, so that a job warns once: ranks of which only some fall back
 * cannot meet.
 */
export function warnOfFallback({ what, next }: CollectiveError): void {
  if (hasWarned) return;
  hasWarned = true;
  const text = `init: the ranks use the tcp backend, which is slower and has no Sync verbs, because ${what}.`;
  const advice = 'RINGWISE_BACKEND=tcp chooses it without this warning.';
  process.emitWarning([text, next, advice].filter(Boolean).join(' '), { code: 'RINGWISE_TCP_FALLBACK' });
}
