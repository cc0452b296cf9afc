// Records where memory in use was made. Off by default, because a stack for each tensor costs microseconds;
// RINGWISE_TENSOR_DEBUG=1 or trackLeaks() enables it.
import { dirname } from 'node:path';
import { codeFolder } from '../../package-files.ts';

interface Birth {
  readonly bytes: number;
  readonly stack: string;
}

/** Null: nothing is recorded. Undefined: the environment has not been read yet. */
let births: Map<object, Birth> | null | undefined;

/** The built code, and the sources, which frames name where source maps are in use, as under tsx. */
const ownFolders = [`${codeFolder}/`, `${dirname(codeFolder)}/src/`];
const mostFrames = 30;

/** Returns the source location of the call into this package. @internal */
export const callersPlace = (): string => callersStack().split('\n', 1)[0]!;

/** Returns the stack from the call into this package outwards, one frame per line. */
function callersStack(): string {
  const limit = Error.stackTraceLimit;
  Reflect.set(Error, 'stackTraceLimit', mostFrames);
  const lines = new Error('stack').stack?.split('\n').slice(1) ?? [];
  Reflect.set(Error, 'stackTraceLimit', limit);
  const outside = lines.findIndex((line) => !ownFolders.some((folder) => line.includes(folder)));
  return lines
    .slice(Math.max(outside, 0))
    .map((line) => line.trim())
    .join('\n');
}

/** Records memory that is now in use, by its claim. @internal */
export function noteBirth(claim: object, bytes: number): void {
  if (births === null) return;
  if (births === undefined) births = process.env.RINGWISE_TENSOR_DEBUG === '1' ? new Map() : null;
  births?.set(claim, { bytes, stack: callersStack() });
}

/** Forgets memory that is no longer in use. @internal */
export function noteEnd(claim: object): void {
  births?.delete(claim);
}

/** Returns the source location that made memory; null if it was not recorded. @internal */
export const locationOf = (claim: object): string | null =>
  births?.get(claim)?.stack.split('\n', 1)[0] ?? null;

/**
 * Starts recording where memory is made; with false, stops and forgets all records. Memory that is in use at the start
 * is not reported.
 */
export function trackLeaks(isOn = true): void {
  if (!isOn) births = null;
  else births ??= new Map();
}

/** Memory of tensors that one line of the program made and that is still in use; see leakReport(). */
export interface Leak {
  /** The calls that made it, innermost call outside of this package first. */
  readonly stack: string;
  /** Pieces of memory in use that were made there. */
  readonly count: number;
  /** Size of the memory that was not given back. */
  readonly bytes: number;
}

/**
 * Returns the memory in use that was made since tracking began, by the line that made it, most bytes first. It includes
 * memory that the program still needs: compare two reports some steps apart.
 */
export function leakReport(): Leak[] {
  const byStack = new Map<string, { stack: string; count: number; bytes: number }>();
  for (const { stack, bytes } of births?.values() ?? []) {
    const leak = byStack.get(stack) ?? { stack, count: 0, bytes: 0 };
    leak.count++;
    leak.bytes += bytes;
    byStack.set(stack, leak);
  }
  return [...byStack.values()].sort((a, b) => b.bytes - a.bytes);
}
