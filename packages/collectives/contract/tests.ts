// The tests of the contract suite: the scenario that each runs, and the expected outcomes.

import type { TestApi } from './api.ts';
import type { Mode } from './invoke.ts';
import type { Outcome, PlainError } from './outcome.ts';
import type { Report } from './report.ts';
import { type Closed, type Failed, labels, mismatchKinds } from './scenarios/failures.ts';
import type { ScenarioName } from './scenarios/index.ts';
import {
  type Follower,
  type RootChoice,
  type RootedCall,
  type RootsDiffer,
  rootedCalls,
} from './scenarios/roots.ts';
import type { SubgroupFailure } from './scenarios/subgroups.ts';

type Expect = TestApi['expect'];
/** Runs a scenario on all ranks and returns the outcomes in rank order. */
export type Run = (scenario: ScenarioName, ...args: unknown[]) => Promise<Outcome[]>;

interface ContractTest {
  readonly name: string;
  /** Minimum number of ranks. */
  readonly from: number;
  readonly body: (run: Run, size: number, expect: Expect) => Promise<void>;
}

/** Scenarios that check their results themselves and report faults. */
const exact: readonly (readonly [name: string, from: number, scenario: ScenarioName])[] = [
  ['runs a hundred pending operations in call order', 1, 'manyPending'],
  ['allocates zeroed memory that collectives take', 1, 'allocated'],
  ['packs the small ones of many buffers', 1, 'manyIsFew'],
  ['finds messages by their tags', 2, 'taggedMessages'],
  ['runs messages beside collectives', 2, 'messagesBesideCollectives'],
  ['runs object forms in call order', 1, 'objectsInOrder'],
  ['splits groups, also in groups', 1, 'splitGroups'],
  ['keeps a record of what was called', 1, 'keepsRecord'],
];

/** The same, run in both forms of the verbs. */
const exactInBothForms: typeof exact = [
  ['reduces every dtype with every op exactly', 1, 'exactReductions'],
  ['moves every dtype exactly', 1, 'exactMoves'],
  ['takes parts of different lengths, and lists of parts', 1, 'unevenParts'],
  ['takes many buffers in one call', 1, 'manyBuffers'],
  ['sums floats reproducibly', 1, 'reproducibleSums'],
  ['sums by every wire, and loses nothing with error feedback', 1, 'sumsByWire'],
  ['sends and receives exactly', 2, 'exactMessages'],
  ['receives from any rank', 2, 'fromAnySource'],
  ['sends and receives many messages in one call', 2, 'batches'],
  ['carries objects', 1, 'objectForms'],
  ['sends and receives objects', 2, 'objectMessages'],
];

export const contract: readonly ContractTest[] = [
  ...(['async', 'sync'] as const).flatMap((mode) => bothForms(mode)),
  ...exact.map(([name, from, scenario]) => faultless(name, from, scenario)),
  faultless('runs Sync calls and fences after what was started before', 1, 'syncAfterAsync'),
  faultless('runs Sync calls and fences after object forms', 1, 'objectsBeforeSync'),
  {
    name: 'records what has not ended, and what failed',
    from: 2,
    body: async (run, size, expect) => {
      const states = valuesOf<string[]>(await run('recordsFailure'), expect);
      for (const [before, after] of states.slice(0, size - 1)) {
        expect([before === 'queued' || before === 'running', after]).toEqual([true, 'failed']);
      }
    },
  },
  {
    name: 'gives the same bits on all ranks and in every run',
    from: 1,
    body: async (run, _, expect) => {
      const once = valuesOf<string[]>(await run('digests', 'async'), expect);
      for (const list of once) expect(list).toEqual(once[0]);
      expect(valuesOf<string[]>(await run('digests', 'async'), expect)).toEqual(once);
    },
  },
  {
    name: 'gives the same bits through the Sync verbs',
    from: 1,
    body: async (run, _, expect) => {
      const once = valuesOf<string[]>(await run('digests', 'async'), expect);
      expect(valuesOf<string[]>(await run('digests', 'sync'), expect)).toEqual(once);
    },
  },
  {
    name: 'gives NaN for min and max where a rank has NaN',
    from: 1,
    body: async (run, _, expect) => {
      for (const found of valuesOf<Record<string, number>>(await run('nanWins'), expect)) {
        for (const [what, count] of Object.entries(found)) expect([what, count]).toEqual([what, 20]);
      }
    },
  },
  ...mismatchKinds.map(
    (kind): ContractTest => ({
      name: `names both sides when ranks disagree in ${kind}, and leaves their memory alone`,
      from: 2,
      body: async (run, size, expect) => {
        const failed = valuesOf<Failed>(await run('mismatch', kind), expect);
        expectSameCause(failed, 'ERR_COLL_MISMATCH', size - 1, expect);
        for (const [rank, { error, later, isUntouched }] of failed.entries()) {
          const { peers = [], message = '' } = error ?? later ?? {};
          const isNamed = peers.map((peer) => message.includes(`rank ${peer} called `));
          expect([rank, isNamed]).toEqual([rank, [true, true]]);
          if (peers.includes(rank)) expect({ rank, isUntouched }).toEqual({ rank, isUntouched: true });
          for (const [isOdd, label] of labels.entries()) {
            const isShown = kind.includes('label') && (isOdd === 0 || !kind.includes('lacks'));
            expect([rank, label, message.includes(`labelled "${label}"`)]).toEqual([rank, label, isShown]);
          }
          // A rank that only sends may have ended before it learned of the mismatch.
          const onlySends = ['root', 'reduce', 'gather', 'scatter', 'pair'].some((word) =>
            kind.includes(word),
          );
          if (peers.includes(rank))
            expect({ rank, isTold: error !== null || onlySends }).toEqual({ rank, isTold: true });
        }
      },
    }),
  ),
  ...rootedCalls.map((call) => differingRoots(call, 'async')),
  differingRoots('broadcast', 'sync'),
  {
    name: 'tells all ranks when they disagree about a subgroup',
    from: 2,
    body: async (run, size, expect) => {
      for (const error of valuesOf<PlainError | null>(await run('subgroupMismatch'), expect)) {
        expect([error?.code, error?.peers]).toEqual(['ERR_COLL_MISMATCH', [0, size - 1]]);
        expect(error?.message.includes(`rank ${size - 1} called subgroup [0]`)).toEqual(true);
      }
    },
  },
  {
    name: 'names a subgroup and its ranks when it fails, and leaves the parent alone',
    from: 2,
    body: async (run, size, expect) => {
      for (const { inSubgroup, name, inParent } of valuesOf<SubgroupFailure>(
        await run('subgroupFails'),
        expect,
      )) {
        expect([inSubgroup?.code, inSubgroup?.peers.includes(0)]).toEqual(['ERR_COLL_MISMATCH', true]);
        expect(inSubgroup?.message.includes(`(group "${name}", rank `)).toEqual(true);
        const reversed = Array.from({ length: size }, (_, rank) => size - 1 - rank);
        expect([name.endsWith(`[${reversed.join(',')}]`), inParent]).toEqual([true, null]);
      }
    },
  },
  {
    name: 'names all that are missing in a monitored barrier',
    from: 3,
    body: async (run, size, expect) => {
      const failed = valuesOf<Failed>(await run('manyLate', 1000, 'async'), expect);
      const missing = Array.from({ length: size - 2 }, (_, rank) => rank + 2);
      for (const { error, later } of failed) {
        const first = error?.cause ?? error;
        expect([first?.code, first?.peers, later?.code]).toEqual([
          'ERR_COLL_TIMEOUT',
          missing,
          'ERR_COLL_TIMEOUT',
        ]);
      }
      for (const { error } of failed.slice(0, 2))
        expect(error?.message.startsWith('monitoredBarrier: ')).toEqual(true);
    },
  },
  {
    name: 'ends everything on all ranks when one aborts',
    from: 1,
    body: async (run, _, expect) => {
      const failed = valuesOf<Failed>(await run('abortByRank0'), expect);
      expectSameCause(failed, 'ERR_COLL_ABORTED', 0, expect);
      for (const [rank, { error, later }] of failed.entries()) {
        const seen = (error ?? later?.cause) as PlainError;
        const what = 'rank 0 aborted the group: out of patience';
        expect([rank, seen.what, seen.peers, seen.secondary]).toEqual([rank, what, [0], rank !== 0]);
      }
    },
  },
  {
    name: 'fails at once when a rank that is needed has closed the group',
    from: 2,
    body: async (run, size, expect) => {
      const errors = valuesOf<PlainError | null>(await run('earlyClose'), expect);
      for (const error of errors.slice(0, -1)) {
        const { code, peers, secondary } = error ?? {};
        expect({ code, peers, secondary }).toEqual({
          code: 'ERR_COLL_PEER_LOST',
          peers: [size - 1],
          secondary: true,
        });
      }
    },
  },
  {
    name: 'ends what is pending when the group closes, and refuses later calls',
    from: 1,
    body: async (run, _, expect) => {
      for (const closed of valuesOf<Closed>(await run('closePending'), expect)) {
        const { errors, isRight, areDone, later } = closed;
        expect({ errors, isRight, areDone, code: later?.code }).toEqual({
          errors: [],
          isRight: true,
          areDone: true,
          code: 'ERR_COLL_CLOSED',
        });
      }
    },
  },
];

/** Names of the tests that block a thread, for the skip lists of backends that cannot block. */
export const blockingTests: readonly string[] = contract
  .map(({ name }) => name)
  .filter((name) => name.endsWith(', Sync') || name.includes(' Sync '));

function faultless(name: string, from: number, scenario: ScenarioName, ...args: unknown[]): ContractTest {
  return { name, from, body: async (run, _, expect) => expectNoFaults(await run(scenario, ...args), expect) };
}

function bothForms(mode: Mode): ContractTest[] {
  const suffix = mode === 'sync' ? ', Sync' : '';
  return [
    ...exactInBothForms.map(([name, from, scenario]) => faultless(`${name}${suffix}`, from, scenario, mode)),
    {
      name: `names the rank that never came when the time is over${suffix}`,
      from: 2,
      body: async (run, size, expect) => {
        const failed = valuesOf<Failed>(await run('lateRank', 200, mode), expect);
        expectSameCause(failed, 'ERR_COLL_TIMEOUT', size - 1, expect);
        for (const { error } of failed) expect(error?.peers).toEqual([size - 1]);
      },
    },
  ];
}

/** Tests ranks that name different roots, with buffers of different lengths and different following calls. */
function differingRoots(call: RootedCall, mode: Mode): ContractTest {
  // A choice of roots with which no rank waits for another.
  const alone = call === 'reduce' || call.startsWith('gather') ? 'next' : 'self';
  type Case = readonly [bytes: number, choice: RootChoice, follower: Follower, warmUp: number];
  const cases: readonly Case[] = [[400, alone, 'the same call', 0]];
  const more: readonly Case[] = [
    [4, alone, 'close', 0],
    [4, alone, 'close', 6],
    [4000, alone, 'message', 0],
    [64 * 1024, 'odd', 'barrier', 6],
    [4 << 20, alone, 'close', 0],
  ];
  const isOneOperation = ['broadcast', 'reduce', 'gather'].includes(call);
  return {
    name: `tells every rank, at close() at the latest, that roots of ${call} differ${mode === 'sync' ? ', Sync' : ''}`,
    from: 2,
    body: async (run, _, expect) => {
      for (const one of isOneOperation ? [...cases, ...more] : cases) {
        const told = valuesOf<RootsDiffer>(await run('rootsDiffer', mode, call, ...one), expect);
        for (const [rank, { errors, isUntouched }] of told.entries()) {
          const first = errors.find((error) => error !== null);
          expect([...one, rank, first?.code, isUntouched]).toEqual([...one, rank, 'ERR_COLL_MISMATCH', true]);
          // A rank that has reported the mismatch closes without an error.
          const last = errors.at(-1) ?? null;
          expect([...one, rank, last === null || last === first]).toEqual([...one, rank, true]);
        }
      }
    },
  };
}

function valuesOf<T>(outcomes: readonly Outcome[], expect: Expect): T[] {
  expect(outcomes.flatMap((outcome) => ('error' in outcome ? [outcome.error] : []))).toEqual([]);
  return outcomes.map((outcome) => ('value' in outcome ? outcome.value : undefined) as T);
}

function expectNoFaults(outcomes: readonly Outcome[], expect: Expect): void {
  for (const { checks, faults } of valuesOf<Report>(outcomes, expect)) {
    expect(faults).toEqual([]);
    expect(checks > 0).toEqual(true);
  }
}

/**
 * Expects that every rank fails with this code and names `culprit`, at the operation or at the next one, and
 * that later calls repeat the error. Two ranks may detect the same mismatch with different neighbours, so
 * only the culprit must be named by all.
 */
function expectSameCause(failed: readonly Failed[], code: string, culprit: number, expect: Expect): void {
  for (const { error, later } of failed) {
    const first = error ?? later?.cause ?? later;
    expect([first?.code, first?.peers.includes(culprit)]).toEqual([code, true]);
    expect([later?.code, later?.peers]).toEqual([code, first?.peers]);
  }
}
