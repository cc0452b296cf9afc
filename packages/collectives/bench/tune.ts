// Finds the fastest algorithm for each size between the hosts of this group. Each algorithm has a group of
// its own, in which RINGWISE_ALGO_<VERB> forces it. The groups take turns, so that all of them see the same
// network conditions. The result is a list of rules for RINGWISE_TUNING (native/coll/plan/tuning.h).
import { hostId } from '../src/backends/host-address.ts';
import type { Group } from '../src/group/group.ts';
import { type BenchOptions, UsageError } from './options.ts';
import { type Row, run } from './run.ts';
import { partsOf } from './verbs.ts';

/** Result for one size. */
export interface TunedSize {
  /** Message size that the tuning rules use: the whole buffer, or one part if every rank has a part. */
  readonly bytes: number;
  /** Median time in microseconds, by algorithm. */
  readonly p50Us: Readonly<Record<string, number>>;
  readonly best: string;
}

export interface Tuned {
  readonly sizes: readonly TunedSize[];
  /** Lines of a tuning file. */
  readonly rules: readonly string[];
  readonly wrong: number;
}

const rounds = 3;
/** Ratio up to which a slower algorithm counts as equally fast. The choice of the size before then stays. */
const margin = 1.03;

/**
 * Measures `algorithms` of the verb, which must be the same on all ranks. Collective. Every rank gets the
 * result.
 */
export async function tune(
  group: Group,
  options: BenchOptions,
  algorithms: readonly string[],
): Promise<Tuned> {
  const { verb, name } = options.verb;
  const hosts = new Map<string, number>();
  for (const id of await group.allGatherObject(hostId())) hosts.set(id, (hosts.get(id) ?? 0) + 1);
  if (hosts.size < 2) {
    throw new UsageError(
      'ringwise bench: --tune: all ranks are on one host, where nothing is chosen; expected several hosts. ' +
        'See docs/performance.md#rules-of-your-own.',
    );
  }
  if (algorithms.length < 2)
    throw new UsageError(`ringwise bench: --tune: ${name} has one algorithm; there is nothing to choose.`);
  const groups = await forced(group, `RINGWISE_ALGO_${verb.toUpperCase()}`, algorithms);
  const all = new Map<string, Row[]>(algorithms.map((algorithm) => [algorithm, []]));
  for (let round = 0; round < rounds; round++) {
    for (const [algorithm, its] of groups) {
      for await (const row of run(its, options, () => true)) all.get(algorithm)!.push(row);
    }
  }
  for (const its of groups.values()) await its.close();
  const sizes = sizesOf(all, Math.max(partsOf(options.verb, group.size), 1));
  const half = options.dtype === 'float16' || options.dtype === 'bfloat16';
  const layout = [...hosts.values()].some((ranks) => ranks > 1) ? 'hosts' : 'flat';
  const wrong = [...all.values()].flat().reduce((sum, row) => sum + row.wrong, 0);
  const when = [verb, half ? 'half' : 'full', layout, `${group.size}`];
  return { sizes, rules: rulesOf(sizes, when), wrong };
}

/** Makes a group of all ranks for each algorithm. Collective. A group reads the variable when it connects. */
async function forced(group: Group, variable: string, algorithms: readonly string[]) {
  const ranks = Array.from({ length: group.size }, (_, rank) => rank);
  const groups = new Map<string, Group>();
  const before = process.env[variable];
  try {
    for (const algorithm of algorithms) {
      process.env[variable] = algorithm;
      groups.set(algorithm, (await group.subgroup(ranks, { name: algorithm }))!);
    }
  } finally {
    if (before === undefined) delete process.env[variable];
    else process.env[variable] = before;
  }
  return groups;
}

/** Returns the medians over the rounds for each size, and the algorithm with the lowest one. */
export function sizesOf(all: ReadonlyMap<string, readonly Row[]>, parts: number): TunedSize[] {
  const [rows] = all.values();
  const bytes = [...new Set(rows!.map((row) => row.bytes))];
  let last = '';
  return bytes.map((size) => {
    const p50Us: Record<string, number> = {};
    for (const [algorithm, its] of all) {
      const times = its.filter((row) => row.bytes === size).map((row) => row.p50Us);
      p50Us[algorithm] = times.sort((a, b) => a - b)[times.length >> 1]!;
    }
    const fastest = Object.keys(p50Us).reduce((a, b) => (p50Us[b]! < p50Us[a]! ? b : a));
    const stays = last !== '' && p50Us[last]! < p50Us[fastest]! * margin;
    last = stays ? last : fastest;
    return { bytes: size / parts, p50Us, best: last };
  });
}

/**
 * Returns one rule for each run of sizes with the same best algorithm. The limit between two runs is their
 * geometric mean.
 */
export function rulesOf(sizes: readonly TunedSize[], when: readonly string[]): string[] {
  return sizes.flatMap(({ bytes, best }, i) => {
    const next = sizes[i + 1];
    if (next?.best === best) return [];
    const upTo = next ? `${Math.round(Math.sqrt(bytes * next.bytes))}` : '*';
    return [[...when, upTo, best].join(' ')];
  });
}

/** Formats the result as a table; its last lines are the tuning file. */
export function tunedTable({ sizes, rules }: Tuned, command: string): string {
  const names = Object.keys(sizes[0]!.p50Us);
  const width = (i: number) => Math.max(10, names[i]!.length + 2);
  const line = (first: string, cells: readonly string[]) =>
    `# ${first.padStart(12)}${cells.map((cell, i) => cell.padStart(width(i))).join('')}`;
  const rows = sizes.map(({ bytes, p50Us, best }) =>
    line(
      `${bytes}`,
      names.map((name) => `${p50Us[name]!.toFixed(1)}${name === best ? '*' : ' '}`),
    ),
  );
  return `${[`# us, by ${command}`, line('bytes', names), ...rows, ...rules].join('\n')}\n`;
}
