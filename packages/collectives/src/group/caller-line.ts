// Adds the lines of the program that led to an awaited call to the error of that call. Such an error is made when the
// operation ends, in a callback without the program's functions on the stack. Nothing is captured when a call starts,
// which would cost microseconds each time: the lines come from the promises that wait for the call, and from the flight
// record.

import type { FlightEntry } from '../flight/entry.ts';
import { addToStack } from '../late-stack.ts';

/**
 * Captures the functions that wait for the promise whose handler runs now. Returns a function that formats their lines,
 * such as "    at async step (…)", without `handler` and the functions that it calls.
 */
function awaitingFrames(handler: (error: Error) => unknown): () => string[] {
  const holder: { stack?: string } = {};
  Error.captureStackTrace(holder, awaitingFrames);
  return () => {
    const frames = (holder.stack ?? '').split('\n').slice(1);
    return frames.filter((line) => !line.includes(handler.name) && !line.includes('node:internal'));
  };
}

/**
 * Returns a promise that rejects with the error. Before that, adds to the error's stack the functions that await the
 * promise which is resolved with this one.
 */
export async function rejectedToCaller(error: Error): Promise<never> {
  // V8 finds the awaiting functions when this promise has been connected with theirs, which takes two microtasks.
  await Promise.resolve();
  await Promise.resolve();
  const frames = awaitingFrames(rejectedToCaller);
  addToStack(error, (stack) => frames().filter((frame) => !stack.includes(frame.trim())));
  throw error;
}

/**
 * Adds the source location of an operation's call, such as "train.ts:57", to the stack of an error. `record` is the
 * flight record of the group. It lacks the location if looking up every call would cost too much. Then the location of
 * the last similar call is added, marked as such.
 */
export function addCallSite(
  error: Error,
  { verb, seq }: Pick<FlightEntry, 'verb' | 'seq'>,
  record: readonly FlightEntry[],
): void {
  const own = record.findLast((entry) => entry.verb === verb && entry.seq === seq);
  if (own === undefined) return;
  const { callSite } = own;
  const alike =
    callSite ?? record.findLast((entry) => entry.callSite !== null && isAlike(entry, own))?.callSite;
  if (!alike) return;
  const location = alike.replace(/^\w+ at /, ''); // of "batch at train.ts:57"
  const line = `    at ${location}${callSite ? '' : ' (the line of an earlier call like this one)'}`;
  addToStack(error, (stack) => (stack.includes(`${location}:`) ? [] : [line]));
}

const compared = ['verb', 'label', 'dtype', 'count', 'op', 'root', 'peer', 'tag'] as const;

const isAlike = (a: FlightEntry, b: FlightEntry): boolean => compared.every((name) => a[name] === b[name]);
