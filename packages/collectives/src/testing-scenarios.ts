// The scenarios of the contract suite by name. Each runs on every rank of a group and returns plain data, so that a
// backend of several processes can run them by name in its children.
import type { Group } from './group.ts';
import { exactMessages, exactMoves, exactReductions } from './testing/exact.ts';
import { abortByRank0, closePending, earlyClose, lateRank, mismatch } from './testing/failures.ts';
import { allocated, digests, manyPending, nanWins, syncAfterAsync } from './testing/order.ts';
import { type Outcome, plainError } from './testing/outcome.ts';

export const scenarios = {
  abortByRank0,
  allocated,
  closePending,
  digests,
  earlyClose,
  exactMessages,
  exactMoves,
  exactReductions,
  lateRank,
  manyPending,
  mismatch,
  nanWins,
  syncAfterAsync,
} as const;

export type ScenarioName = keyof typeof scenarios;

/** Runs one scenario on this rank. `args` are plain data. Never rejects; closing the group is the caller's. */
export async function runScenario(
  group: Group,
  name: ScenarioName,
  args: readonly unknown[],
): Promise<Outcome> {
  try {
    const scenario = scenarios[name] as (group: Group, ...args: readonly unknown[]) => Promise<unknown>;
    return { value: await scenario(group, ...args) };
  } catch (error) {
    return { error: plainError(error) };
  }
}
