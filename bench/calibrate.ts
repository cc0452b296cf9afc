// Compares the simulated network with a real one. Reads all-reduces that bench/peers.ts has measured between two hosts,
// finds the latency, overhead and rate of the model with which the simulation is nearest to them, and prints both
// times.
//
//   npx tsx bench/peers.ts --hosts 2 --link plain,1g,wan --ranks 2,4 --only c --json > rows.jsonl      (needs root)
//   npx tsx bench/calibrate.ts rows.jsonl [--contender c] [--json]
//
// The three numbers are found for each link and number of ranks by itself, from all of its sizes.
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { loadNative } from '../packages/collectives/src/backends/native.ts';

/** A row of bench/peers.ts, as far as it is read here. */
interface Measured {
  readonly link: string;
  readonly verb: string;
  readonly ranks: number;
  readonly bytes: number;
  readonly us: Readonly<Record<string, number>>;
}

interface Costs {
  readonly latencyUs: number;
  readonly overheadUs: number;
  readonly nsPerByte: number;
}

const within = 0.1;
const leastOverheadUs = 0.01;
/** Each number is multiplied or divided by these factors for as long as that improves the prediction. */
const factors = [4, 2, 1.4, 1.2, 1.1, 1.05, 1.02, 1.01, 1.005];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { contender: { type: 'string', default: 'c' }, json: { type: 'boolean', default: false } },
});
const [file] = positionals;
if (file === undefined || positionals.length > 1) {
  console.error('calibrate: expected one file of lines that bench/peers.ts --json has printed.');
  process.exit(2);
}
const rows = readFileSync(file, 'utf8')
  .split('\n')
  .filter(Boolean)
  .map((line) => JSON.parse(line) as Measured)
  .filter((row) => row.verb === 'all-reduce' && row.us[values.contender] !== undefined);
if (rows.length === 0) {
  console.error(`calibrate: ${file} has no all-reduce of ${values.contender} between hosts.`);
  process.exit(1);
}

const { simulate } = loadNative();

/** Returns the microseconds of an all-reduce of float32 by the library's choice of algorithm, on two hosts. */
function simulatedUs(ranks: number, bytes: number, between: Costs): number {
  const inside = { latencyUs: 0.3, overheadUs: 0.1, nsPerByte: 0.1 };
  const count = Math.max(1, Math.floor(bytes / 4));
  const shape = { verb: 0, dtype: 0, wire: 0, count, ranks, perHost: ranks / 2, algorithm: '' };
  return simulate({ ...shape, between, inside, maxMessages: Number.MAX_VALUE })!.timeUs!;
}

/** Returns the sum of the squares of the logarithms of predicted over measured time. */
const errorOf = (group: readonly Measured[], costs: Costs): number =>
  group.reduce((sum, { ranks, bytes, us }) => {
    return sum + Math.log(simulatedUs(ranks, bytes, costs) / us[values.contender]!) ** 2;
  }, 0);

function fitted(group: readonly Measured[]): Costs {
  const [first, last] = [group[0]!, group.at(-1)!];
  const time = (row: Measured) => row.us[values.contender]!;
  let costs: Costs = {
    latencyUs: time(first) / 2,
    overheadUs: time(first) / 8,
    nsPerByte: (time(last) * 1000) / last.bytes,
  };
  let error = errorOf(group, costs);
  for (const factor of factors) {
    for (let isBetter = true; isBetter; ) {
      isBetter = false;
      for (const name of ['latencyUs', 'overheadUs', 'nsPerByte'] as const) {
        for (const times of [factor, 1 / factor]) {
          const other = { ...costs, [name]: costs[name] * times };
          const its = errorOf(group, other);
          if (its >= error || other.overheadUs < leastOverheadUs) continue;
          [costs, error, isBetter] = [other, its, true];
        }
      }
    }
  }
  return costs;
}

for (const key of new Set(rows.map(({ link, ranks }) => `${link}, ${ranks} ranks`))) {
  const group = rows
    .filter(({ link, ranks }) => `${link}, ${ranks} ranks` === key)
    .sort((a, b) => a.bytes - b.bytes);
  const costs = fitted(group);
  const { latencyUs, overheadUs, nsPerByte } = costs;
  const compared = group.map(({ ranks, bytes, us }) => {
    const simulated = simulatedUs(ranks, bytes, costs);
    return {
      bytes,
      us: us[values.contender]!,
      simulatedUs: simulated,
      ratio: simulated / us[values.contender]!,
    };
  });
  const good = compared.filter(({ ratio }) => Math.abs(ratio - 1) <= within).length;
  if (values.json) {
    console.log(JSON.stringify({ link: group[0]!.link, ranks: group[0]!.ranks, ...costs, rows: compared }));
    continue;
  }
  const gbit = (8 / nsPerByte).toPrecision(3);
  console.log(
    `${key}: latency ${latencyUs.toPrecision(3)} us, ${overheadUs.toPrecision(3)} us per message, ${gbit} Gbit/s; ` +
      `${good} of ${compared.length} sizes within ${100 * within} %`,
  );
  console.log(`${'bytes'.padStart(12)}${'measured us'.padStart(14)}${'simulated us'.padStart(14)}   ratio`);
  for (const { bytes, us, simulatedUs: simulated, ratio } of compared) {
    const cells = [us, simulated].map((value) => value.toPrecision(4).padStart(14));
    console.log(`${`${bytes}`.padStart(12)}${cells.join('')}${ratio.toFixed(2).padStart(8)}`);
  }
}
