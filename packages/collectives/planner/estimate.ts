// Estimates the step for every size of buckets and every algorithm, with the times of all-reduces from the simulated
// network (docs/simulation.md).
import { allVerbs } from '../src/all-verbs.ts';
import { loadNative, type NativeSimulated } from '../src/backends/native.ts';
import { byteSize, dtypes } from '../src/dtype.ts';
import { type Link, type PlanOptions, planWires, UsageError } from './options.ts';
import { bucketsOf, type StepTime, stepTime } from './training-step.ts';

/** The name under which a row leaves the choice of the algorithm to the library. */
export const library = 'library';

/** The estimate for one size of buckets and one algorithm. */
export interface PlanRow extends StepTime {
  readonly bucketBytes: number;
  /** The algorithm of all buckets, or `library`. */
  readonly algorithm: string;
  /** The algorithms that run: one, unless the library chooses by size. */
  readonly runs: readonly string[];
}

/** A case that would take more messages than the simulation goes through. */
export interface LeftOut {
  readonly bucketBytes: number;
  readonly algorithm: string;
  readonly messages: number;
}

export interface Plan {
  readonly rows: readonly PlanRow[];
  readonly leftOut: readonly LeftOut[];
  readonly best: PlanRow;
}

/** Limits on the messages of one operation: for algorithms that are named, and for the library's choice. */
const maxMessages = 4e6;
const maxMessagesOfChoice = 4e7;
/** A named algorithm must be faster than the library's choice by more than this share to be recommended. */
const worthNaming = 0.01;

/**
 * Returns the estimates. Blocks while it simulates, a minute or more for thousands of ranks; calls `progress` before
 * each case. Throws CollectiveError if the native addon is missing, and UsageError if all cases are too large.
 */
export function estimate(options: PlanOptions, progress: (text: string) => void): Plan {
  const { ranks, params, dtype, stepMs, backwardShare } = options;
  const names = namesFor(options);
  const simulate = simulator(options);
  const rows: PlanRow[] = [];
  const leftOut: LeftOut[] = [];
  for (const bucketBytes of options.buckets) {
    const buckets = bucketsOf(params * byteSize(dtype), bucketBytes);
    for (const algorithm of [library, ...names]) {
      progress(`simulating ${ranks} ranks, ${algorithm}, buckets of ${bucketBytes} bytes`);
      const sizes = [...new Set(buckets)];
      const results = sizes.map((bytes) => simulate(algorithm, bytes));
      if (results.includes(null)) continue;
      const times = new Map(sizes.map((bytes, i) => [bytes, results[i]!]));
      const tooLong = results.find((result) => result!.timeUs === undefined);
      if (tooLong) {
        leftOut.push({ bucketBytes, algorithm, messages: tooLong.messages });
        continue;
      }
      const step = stepTime(buckets, stepMs, backwardShare, (bytes) => times.get(bytes)!.timeUs! / 1000);
      const runs = [...new Set(results.map((result) => result!.algorithm))];
      rows.push({ bucketBytes, algorithm, runs, ...step });
    }
  }
  if (rows.length === 0) throw tooManyMessages(options, leftOut);
  return { rows, leftOut, best: bestOf(rows) };
}

/**
 * Returns the algorithms to compare. There is one for rounded wires; and where each host has one rank, hierarchical is
 * the algorithm that it uses between hosts.
 */
function namesFor({ wire, perHost }: PlanOptions): string[] {
  if (wire !== 'full') return [];
  const names = loadNative().algorithms(allVerbs.indexOf('allReduce'));
  return perHost === 1 ? names.filter((name) => name !== 'hierarchical') : names;
}

/** Returns the fastest row. Prefers the library's choice where naming an algorithm gains next to nothing. */
function bestOf(rows: readonly PlanRow[]): PlanRow {
  const fastest = (among: readonly PlanRow[]) => among.reduce((a, b) => (b.stepMs < a.stepMs ? b : a));
  const best = fastest(rows);
  const chosen = rows.filter(({ algorithm }) => algorithm === library);
  if (chosen.length === 0) return best;
  const own = fastest(chosen);
  return own.stepMs <= best.stepMs * (1 + worthNaming) ? own : best;
}

function tooManyMessages({ ranks }: PlanOptions, leftOut: readonly LeftOut[]): UsageError {
  const millions = Math.min(...leftOut.map(({ messages }) => messages)) / 1e6;
  return new UsageError(
    `ringwise plan: an all-reduce among ${ranks} ranks takes ${millions.toFixed(0)} M messages or more; expected at ` +
      `most ${maxMessagesOfChoice / 1e6} M, or a tenth of that between different pairs. Estimate fewer ranks.`,
  );
}

/** Returns a function that simulates an all-reduce, each case once. It returns null if the algorithm does not fit. */
function simulator(options: PlanOptions): (algorithm: string, bytes: number) => NativeSimulated | null {
  const { simulate } = loadNative();
  const { ranks, perHost, dtype, wire } = options;
  const done = new Map<string, NativeSimulated | null>();
  return (algorithm, bytes) => {
    const key = `${algorithm} ${bytes}`;
    if (!done.has(key)) {
      const result = simulate({
        verb: allVerbs.indexOf('allReduce'),
        dtype: dtypes.indexOf(dtype),
        wire: planWires.indexOf(wire),
        count: Math.max(1, Math.floor(bytes / byteSize(dtype))),
        ranks,
        perHost,
        between: costs(options.between),
        inside: costs(options.inside),
        algorithm: algorithm === library ? '' : algorithm,
        maxMessages: algorithm === library ? maxMessagesOfChoice : maxMessages,
      });
      done.set(key, result);
    }
    return done.get(key)!;
  };
}

function costs({ latencyUs, overheadUs, gbit }: Link) {
  return { latencyUs, overheadUs, nsPerByte: 8 / gbit };
}
