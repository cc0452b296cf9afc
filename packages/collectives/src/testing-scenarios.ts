// The scenarios of the contract suite by name. Each runs on every rank of a group and returns plain data, so that a
// backend of several processes can run them by name in its children.
import type { Group } from './group.ts';
import { exactMoves, exactReductions } from './testing/exact.ts';
import { abortByRank0, closePending, earlyClose, lateRank, manyLate, mismatch } from './testing/failures.ts';
import { keepsRecord, recordsFailure } from './testing/flight.ts';
import { manyBuffers, manyIsFew } from './testing/many.ts';
import {
  batches,
  exactMessages,
  fromAnySource,
  messagesBesideCollectives,
  taggedMessages,
} from './testing/messages.ts';
import { objectForms, objectMessages, objectsBeforeSync, objectsInOrder } from './testing/objects.ts';
import { allocated, digests, manyPending, nanWins, syncAfterAsync } from './testing/order.ts';
import { type Outcome, plainError } from './testing/outcome.ts';
import { unevenParts } from './testing/parts.ts';
import { reproducibleDigests, reproducibleSums } from './testing/reproducible.ts';
import { rootsDiffer } from './testing/roots.ts';
import { randomPrograms } from './testing/run-program.ts';
import { splitGroups, subgroupFails, subgroupMismatch } from './testing/subgroups.ts';
import { sumsByWire } from './testing/wires.ts';

export const scenarios = {
  abortByRank0,
  allocated,
  batches,
  closePending,
  digests,
  earlyClose,
  exactMessages,
  exactMoves,
  exactReductions,
  fromAnySource,
  keepsRecord,
  lateRank,
  manyBuffers,
  manyIsFew,
  manyLate,
  manyPending,
  messagesBesideCollectives,
  mismatch,
  nanWins,
  objectForms,
  objectMessages,
  objectsBeforeSync,
  objectsInOrder,
  randomPrograms,
  recordsFailure,
  reproducibleDigests,
  reproducibleSums,
  rootsDiffer,
  splitGroups,
  subgroupFails,
  subgroupMismatch,
  sumsByWire,
  syncAfterAsync,
  taggedMessages,
  unevenParts,
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
