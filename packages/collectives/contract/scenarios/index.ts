// The scenarios of the contract suite by name. Each runs on every rank of a group and returns plain data, so
// that a backend with several processes can run them by name in its children.
import type { Group } from '../../src/group/group.ts';
import { type Outcome, plainError } from '../outcome.ts';
import { exactMoves, exactReductions } from './exact.ts';
import { abortByRank0, closePending, earlyClose, lateRank, manyLate, mismatch } from './failures.ts';
import { keepsRecord, recordsFailure } from './flight.ts';
import { manyBuffers, manyIsFew } from './many.ts';
import {
  batches,
  exactMessages,
  fromAnySource,
  messagesBesideCollectives,
  taggedMessages,
} from './messages.ts';
import { objectForms, objectMessages, objectsBeforeSync, objectsInOrder } from './objects.ts';
import { allocated, digests, manyPending, nanWins, syncAfterAsync } from './order.ts';
import { unevenParts } from './parts.ts';
import { reproducibleDigests, reproducibleSums } from './reproducible.ts';
import { rootsDiffer } from './roots.ts';
import { randomPrograms } from './run-program.ts';
import { splitGroups, subgroupFails, subgroupMismatch } from './subgroups.ts';
import { sumsByWire } from './wires.ts';

/** The programs that the contract runs on each rank, by name. */
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

/** Name of a scenario; see runScenario(). */
export type ScenarioName = keyof typeof scenarios;

/** Runs one scenario on this rank. `args` are plain data. Never rejects. The caller closes the group. */
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
