// The secret of a job: a rank proves with it to stores and peers that it belongs to the job.
import { readFileSync } from 'node:fs';
import { CollectiveError } from '../errors.ts';
import { secretFileUnread } from './errors.ts';

/**
 * Returns RINGWISE_SECRET or, if that is not set, the content of the file that RINGWISE_SECRET_FILE names; null without
 * a secret. An empty RINGWISE_SECRET means none: the launcher sets it so for an open store. Throws ERR_COLL_INIT if the
 * file cannot be read or is empty.
 */
export function secretOf(env: Readonly<Record<string, string | undefined>>): string | null {
  const { RINGWISE_SECRET: secret, RINGWISE_SECRET_FILE: file } = env;
  if (secret !== undefined || !file) return secret || null;
  let content: string;
  try {
    content = readFileSync(file, 'utf8').trim();
  } catch (cause) {
    throw new CollectiveError(secretFileUnread(file, (cause as Error).message), null, { cause });
  }
  if (content === '') throw new CollectiveError(secretFileUnread(file, 'it is empty'), null);
  return content;
}
