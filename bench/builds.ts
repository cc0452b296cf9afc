// Compares two builds of the addons, such as those of g++ and of the releases' zig: the same JavaScript runs with the
// one and the other in turns. Prints a JSON line for each size of a verb and each task of tensor/tasks.ts, with the
// medians of the rounds and the median of the ratios of neighbouring runs. --help lists the options.
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { median } from './median.ts';
import { launcher } from './peers/build.ts';
import { agree, type Result, tasksOf } from './tensor/tasks.ts';

const help = `npx tsx bench/builds.ts FIRST SECOND [options]

FIRST and SECOND are folders with coll.node and tensor.node, such as native/build/Release and
native/build-linux-x64/Release. A ratio above 1 says that SECOND is slower.
  --rounds R      pairs of runs; the builds take turns in being first (7)
  --verb A,B      collectives of 2 ranks (all-reduce,broadcast,all-gather); '' for none
  --min, --max BYTES   sizes grow by factors of 4 (4, 16777216)
  --seconds S     per size or product and round (0.15)
  --only A,B      tensor tasks whose names contain a word (all); 'none' for none
The exit code is 1 if a build computes wrong, or the builds differ by more than rounding.`;

const { values, positionals } = readOptions();
if (values.help || positionals.length !== 2) {
  console[values.help ? 'log' : 'error'](help);
  process.exit(values.help ? 0 : 2);
}
for (const name of ['rounds', 'min', 'max', 'seconds'] as const)
  if (!(Number(values[name]) > 0)) {
    console.error(`builds: --${name} is ${values[name]}; expected a number above 0.`);
    process.exit(2);
  }
const folders = positionals.map((folder) => resolve(folder));
for (const folder of folders)
  for (const name of ['coll.node', 'tensor.node'])
    if (!existsSync(join(folder, name))) {
      console.error(`builds: ${folder} has no ${name}. Build it, or name another folder.`);
      process.exit(2);
    }

function readOptions() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        help: { type: 'boolean', default: false },
        rounds: { type: 'string', default: '7' },
        verb: { type: 'string', default: 'all-reduce,broadcast,all-gather' },
        min: { type: 'string', default: '4' },
        max: { type: 'string', default: `${16 << 20}` },
        seconds: { type: 'string', default: '0.15' },
        only: { type: 'string', default: '' },
      },
    });
  } catch (error) {
    console.error(`builds: ${(error as Error).message.replace(/\.?$/, '.')} --help lists the options.`);
    process.exit(2);
  }
}

const words = (text: string): string[] => text.split(',').filter((word) => word !== '');

/** Runs a program of Node with the addons of a folder. Returns the lines of JSON that it prints. */
function linesOf<T>(folder: string, args: readonly string[]): T[] {
  const env = { ...process.env, RINGWISE_NATIVE_PATH: folder };
  const stdio: ['ignore', 'pipe', 'inherit'] = ['ignore', 'pipe', 'inherit'];
  const output = execFileSync(process.execPath, args, { env, stdio, encoding: 'utf8', timeout: 600_000 });
  const lines = output.split('\n').filter((line) => line.startsWith('{'));
  return lines.map((line) => JSON.parse(line) as T);
}

/** What a run says of one size or task. */
interface Sample {
  readonly name: string;
  readonly us: number;
  readonly isRight: boolean;
}

/** Runs a measurement with both builds in turns, and prints a line for each name that it gives. */
function compare(run: (folder: string) => readonly Sample[]): void {
  const rounds = Array.from({ length: Number(values.rounds) }, (_, round) => {
    const order = round % 2 === 0 ? folders : folders.toReversed();
    const samples = order.map(run);
    return round % 2 === 0 ? samples : samples.toReversed();
  });
  for (const [index, { name }] of rounds[0]![0]!.entries()) {
    const pairs = rounds.map((samples) => samples.map((one) => one[index]!));
    const us = [0, 1].map((build) => median(pairs.map((pair) => pair[build]!.us)));
    const ratio = median(pairs.map(([first, second]) => second!.us / first!.us));
    const ok = pairs.every((pair) => pair.every(({ isRight }) => isRight));
    if (!ok) process.exitCode = 1;
    const shown = (_: string, value: unknown) =>
      typeof value === 'number' ? Number(value.toPrecision(4)) : value;
    console.log(JSON.stringify({ name, us, ratio, ok }, shown));
  }
}

for (const verb of words(values.verb)) {
  const sizes = ['--min', values.min, '--max', values.max, '--seconds', values.seconds];
  const bench = [launcher, 'bench', verb, '--nproc-per-node', '2', '--json', '--sync', ...sizes];
  compare((folder) =>
    linesOf<{ bytes: number; p50Us: number; wrong: number }>(folder, bench).map(
      ({ bytes, p50Us, wrong }) => ({
        name: `${verb} ${bytes} B`,
        us: p50Us,
        isRight: wrong === 0,
      }),
    ),
  );
}

const tasks = tasksOf(Number(values.seconds), words(values.only));
const reference = new Map<string, Result>();
if (tasks.length > 0) {
  const program = [
    '--import',
    'tsx',
    join(import.meta.dirname, 'tensor/rank.ts'),
    values.seconds,
    ...words(values.only),
  ];
  compare((folder) =>
    linesOf<Result & { name: string }>(folder, program).map((result) => {
      const { name, us } = result;
      if (!reference.has(name)) reference.set(name, result);
      const task = tasks.find((one) => one.name === name)!;
      return { name, us, isRight: agree(task, reference.get(name)!, result) };
    }),
  );
}
