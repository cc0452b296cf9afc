// The contract suite that every backend passes; see the promises at the top of backend.ts. A backend's test file is
// a function that runs a scenario on `size` ranks, and a list of deviations with reasons.
import type { Report } from './testing/exact.ts';
import type { Closed, Failed, MismatchKind } from './testing/failures.ts';
import type { Outcome, PlainError } from './testing/outcome.ts';
import type { ScenarioName } from './testing-scenarios.ts';

export type { Outcome, PlainError } from './testing/outcome.ts';
export { runScenario, type ScenarioName, scenarios } from './testing-scenarios.ts';

/** The part of vitest (or a look-alike) that the suite uses. */
export interface TestApi {
  readonly describe: (name: string, body: () => void) => unknown;
  readonly it: {
    (name: string, body: () => Promise<void>): unknown;
    readonly skip: (name: string, body: () => Promise<void>) => unknown;
  };
  readonly expect: (actual: unknown) => { readonly toEqual: (expected: unknown) => void };
}

export interface BackendUnderTest {
  /**
   * Makes a group of `size` ranks, calls runScenario() on each, closes the groups, and returns the outcomes in rank
   * order. Must not wait for one rank's scenario before it starts the next one's.
   */
  readonly run: (size: number, scenario: ScenarioName, args: readonly unknown[]) => Promise<Outcome[]>;
  /** Default: 1, 2, 3 and 4. */
  readonly sizes?: readonly number[];
  /** Tests by their names, without the size. They show up as skipped, with the reason. */
  readonly skip?: readonly { readonly reason: string; readonly tests: readonly string[] }[];
}

type Expect = TestApi['expect'];
type Run = (scenario: ScenarioName, ...args: unknown[]) => Promise<Outcome[]>;

interface ContractTest {
  readonly name: string;
  /** The least number of ranks that it makes sense for. */
  readonly from: number;
  readonly body: (run: Run, size: number, expect: Expect) => Promise<void>;
}

/** Defines the suite. Throws if `skip` names a test that does not exist. */
export function backendContract(api: TestApi, name: string, backend: BackendUnderTest): void {
  const { run, sizes = [1, 2, 3, 4], skip = [] } = backend;
  const reasons = new Map(skip.flatMap(({ reason, tests }) => tests.map((test) => [test, reason] as const)));
  const unknown = [...reasons.keys()].filter((test) => !contract.some((known) => known.name === test));
  if (unknown.length > 0) throw new Error(`backendContract: no test named ${unknown.join(', ')} to skip.`);
  api.describe(`the ${name} backend`, () => {
    for (const size of sizes) {
      api.describe(`with size ${size}`, () => {
        for (const test of contract) {
          if (size < test.from) continue;
          const runHere: Run = (scenario, ...args) => run(size, scenario, args);
          const reason = reasons.get(test.name);
          if (reason === undefined) api.it(test.name, () => test.body(runHere, size, api.expect));
          else api.it.skip(`${test.name} (${reason})`, () => test.body(runHere, size, api.expect));
        }
      });
    }
  });
}

const contract: readonly ContractTest[] = [
  ...(['async', 'sync'] as const).flatMap((mode): ContractTest[] => {
    const suffix = mode === 'sync' ? ', Sync' : '';
    return [
      {
        name: `reduces every dtype with every op exactly${suffix}`,
        from: 1,
        body: async (run, _, expect) => expectNoFaults(await run('exactReductions', mode), expect),
      },
      {
        name: `broadcasts and gathers every dtype exactly${suffix}`,
        from: 1,
        body: async (run, _, expect) => expectNoFaults(await run('exactMoves', mode), expect),
      },
      {
        name: `sends and receives exactly${suffix}`,
        from: 2,
        body: async (run, _, expect) => expectNoFaults(await run('exactMessages', mode), expect),
      },
      {
        name: `names the rank that never came when the time is over${suffix}`,
        from: 2,
        body: async (run, size, expect) => {
          const failed = valuesOf<Failed>(await run('lateRank', 200, mode), expect);
          expectSameRoot(failed, 'ERR_COLL_TIMEOUT', size - 1, expect);
          for (const { error } of failed) expect(error?.peers).toEqual([size - 1]);
        },
      },
    ];
  }),
  {
    name: 'runs a hundred pending operations in call order',
    from: 1,
    body: async (run, _, expect) => expectNoFaults(await run('manyPending'), expect),
  },
  {
    name: 'runs Sync calls and fences after what was started before',
    from: 1,
    body: async (run, _, expect) => expectNoFaults(await run('syncAfterAsync'), expect),
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
  {
    name: 'allocates zeroed memory that collectives take',
    from: 1,
    body: async (run, _, expect) => expectNoFaults(await run('allocated'), expect),
  },
  ...(['count', 'dtype', 'op', 'verb', 'root', 'pair'] as const).map(
    (kind: MismatchKind): ContractTest => ({
      name: `names both sides when ranks disagree in ${kind}, and leaves their memory alone`,
      from: 2,
      body: async (run, size, expect) => {
        const failed = valuesOf<Failed>(await run('mismatch', kind), expect);
        expectSameRoot(failed, 'ERR_COLL_MISMATCH', size - 1, expect);
        for (const [rank, { error, later, isUntouched }] of failed.entries()) {
          const { peers = [], message = '' } = error ?? later ?? {};
          const isNamed = peers.map((peer) => message.includes(`rank ${peer} called `));
          expect([rank, isNamed]).toEqual([rank, [true, true]]);
          if (!peers.includes(rank)) continue;
          // Whoever only sends may have ended before it heard of the other side.
          const isTold = error !== null || kind === 'pair' || kind === 'root';
          expect({ rank, isTold, isUntouched }).toEqual({ rank, isTold: true, isUntouched: true });
        }
      },
    }),
  ),
  {
    name: 'ends everything on all ranks when one aborts',
    from: 1,
    body: async (run, _, expect) => {
      const failed = valuesOf<Failed>(await run('abortByRank0'), expect);
      expectSameRoot(failed, 'ERR_COLL_ABORTED', 0, expect);
      for (const [rank, { error, later }] of failed.entries()) {
        const seen = (error ?? later) as PlainError;
        expect([rank, seen.peers, seen.secondary]).toEqual([rank, [0], rank !== 0]);
        expect(seen.message.includes('out of patience')).toEqual(true);
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
 * Every rank fails, at the operation or at the next one, with this code and these ranks; later calls repeat it. Two
 * ranks may notice the same disagreement in different neighbours, so of a pair only the culprit must be named by all.
 */
function expectSameRoot(failed: readonly Failed[], code: string, culprit: number, expect: Expect): void {
  for (const { error, later } of failed) {
    const first = error ?? later?.cause ?? later;
    expect([first?.code, first?.peers.includes(culprit)]).toEqual([code, true]);
    expect([later?.code, later?.peers]).toEqual([code, first?.peers]);
  }
}
