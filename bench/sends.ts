// Compares ways to move bytes over TCP between two hosts: the calls that the transport uses, MSG_ZEROCOPY and io_uring
// (bench/peers/sends.c). The methods take turns; prints the medians of the rounds, and how many times as fast as
// copying calls each method is. Needs root, a C compiler and liburing. --help lists the options.
import { execFile } from 'node:child_process';
import { parseArgs, promisify } from 'node:util';
import { median } from './median.ts';
import { build } from './peers/build.ts';
import { type LinkName, links, makeLink } from './peers/hosts.ts';

const help = `npx tsx bench/sends.ts [options]

Each of two processes, one in each network namespace, sends and receives --bytes at the same time.
  --link L        plain (veth), 1g or wan (plain)
  --streams A,B   connections that carry a part of the bytes each (1,4)
  --bytes A,B     bytes that each process sends in a round (65536,1048576,16777216)
  --portion A,B   most bytes of one send; 0 for all at once (131072)
  --rounds R      runs of each method, in turns (5)
  --seconds S     per run (0.5)
  --json          a line of JSON for each method and size instead of a table`;

const methods = ['copy', 'zerocopy', 'uring', 'uring-zc'] as const;
type Method = (typeof methods)[number];
interface Sample {
  readonly median_us: number;
  readonly processor_us: number;
  /** Share of the sends without a copy that the kernel copied after all; null for methods that copy. */
  readonly copied: number | null;
}

const { values } = readOptions();
if (values.help) {
  console.log(help);
  process.exit(0);
}
const numbers = (text: string): number[] => text.split(',').map(Number);
for (const name of ['streams', 'bytes', 'portion', 'rounds', 'seconds'] as const)
  if (!numbers(values[name]).every((value) => value > 0 || (value === 0 && name === 'portion')))
    fail(`--${name} is ${values[name]}; expected numbers above 0.`);
if (Math.max(...numbers(values.streams)) > 16) fail(`--streams is ${values.streams}; expected at most 16.`);
if (!links.includes(values.link as LinkName)) fail(`--link is ${values.link}; expected ${links.join(', ')}.`);

function readOptions() {
  try {
    return parseArgs({
      options: {
        help: { type: 'boolean', default: false },
        json: { type: 'boolean', default: false },
        link: { type: 'string', default: 'plain' },
        streams: { type: 'string', default: '1,4' },
        bytes: { type: 'string', default: `65536,${1 << 20},${16 << 20}` },
        portion: { type: 'string', default: `${128 << 10}` },
        rounds: { type: 'string', default: '5' },
        seconds: { type: 'string', default: '0.5' },
      },
    });
  } catch (error) {
    return fail(`${(error as Error).message.replace(/\.?$/, '.')} --help lists the options.`);
  }
}

function fail(why: string): never {
  console.error(`sends: ${why}`);
  process.exit(2);
}

const program = await build('sends');
if ('missing' in program) fail(program.missing);
const link = await makeLink(values.link as LinkName);
try {
  for (const streams of numbers(values.streams))
    for (const portion of numbers(values.portion))
      for (const bytes of numbers(values.bytes)) await compare(program.path, streams, portion, bytes);
} finally {
  await link.close();
}

async function compare(path: string, streams: number, portion: number, bytes: number): Promise<void> {
  const [a, b] = link.ends;
  const samples = new Map<Method, Sample[]>(methods.map((method) => [method, []]));
  for (let round = 0; round < Number(values.rounds); round++)
    // The methods change places, so that no method always runs after the same one.
    for (const method of round % 2 === 0 ? methods : methods.toReversed()) {
      const args = [a.name, b.name, b.address, method, streams, portion, bytes, values.seconds].map(String);
      const { stdout } = await promisify(execFile)(path, args);
      samples.get(method)!.push(JSON.parse(stdout));
    }
  const medianOf = (method: Method, name: keyof Sample) =>
    median(samples.get(method)!.map((sample) => sample[name] ?? Number.NaN));
  for (const method of methods) {
    const pairs = samples
      .get(method)!
      .map((sample, n) => samples.get('copy')![n]!.median_us / sample.median_us);
    const row = {
      ...{ link: values.link, streams, portion, bytes, method },
      ...{ us: medianOf(method, 'median_us'), timesAsFast: median(pairs) },
      ...{ processorUs: medianOf(method, 'processor_us'), copied: medianOf(method, 'copied') },
    };
    console.log(values.json ? JSON.stringify(row) : asLine(row));
  }
}

function asLine(row: Record<string, string | number>): string {
  const { streams, portion, bytes, method, us, timesAsFast, processorUs, copied } = row;
  const speed = Number(timesAsFast).toFixed(2);
  return (
    `${streams} streams, ${bytes} bytes in sends of ${portion || 'all'}: ${String(method).padEnd(8)} ` +
    `${Number(us).toFixed(1).padStart(9)} us (${speed}x), processor ${Number(processorUs).toFixed(1)} us` +
    (Number.isNaN(copied) ? '' : `, copied after all: ${Math.round(Number(copied) * 100)} %`)
  );
}
