// Measures all-reduce and DDP against the peers that are installed, and draws both as SVG, light and dark: the picture
// of the README. bench/peers.ts and bench/ddp-peers.ts measure; --help lists the options.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { drawPeers, type Measurement, type RateRow, type TimeRow } from './plot/peers-plot.ts';

const help = `npx tsx bench/plot.ts [options]

  --out PATH      writes PATH.json, PATH-light.svg and PATH-dark.svg (docs/images/peers)
  --from FILE     draws a JSON file of an earlier run, and measures nothing
  --repeats R     rounds of each contender, in turns (5)
  --max BYTES     largest all-reduce (67108864)
  --steps N       steps of a DDP run of each contender (400)
  --python PATH   a Python with PyTorch 2 (RINGWISE_PYTHON, else python3)
  --busy          measures although other programs use the machine, and says so in the picture`;

function readOptions() {
  const text = (value: string) => ({ type: 'string', default: value }) as const;
  const flag = { type: 'boolean', default: false } as const;
  try {
    return parseArgs({
      options: {
        ...{
          help: flag,
          busy: flag,
          python: { type: 'string' },
          from: { type: 'string' },
          out: text('docs/images/peers'),
        },
        ...{ repeats: text('5'), max: text(`${64 << 20}`), steps: text('400') },
      },
    }).values;
  } catch (error) {
    console.error(`plot: ${(error as Error).message.replace(/\.?$/, '.')} --help lists the options.`);
    process.exit(2);
  }
}

const values = readOptions();
if (values.help) {
  console.log(help);
  process.exit();
}

if (values.python !== undefined) process.env.RINGWISE_PYTHON = values.python;

/** Runs a program of this folder. Returns its lines of JSON. */
function measured<Row>(program: string, ...options: string[]): Row[] {
  const argv = ['tsx', `${import.meta.dirname}/${program}`, ...options];
  const out = execFileSync('npx', argv, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
  const lines = out.split('\n').filter((line) => line.startsWith('{'));
  return lines.map((line) => JSON.parse(line) as Row);
}

function measure(): Measurement {
  const load = loadavg()[0]!;
  if (load > 2.5 && !values.busy) {
    console.error(
      `plot: the load is ${load.toFixed(1)}; expected at most 2.5. Wait, or measure with --busy.`,
    );
    process.exit(1);
  }
  const peers = ['--json', '--only', 'js,openmpi,mpich,gloo,torch', '--max', values.max];
  // --busy: without --through, each command would wait a minute for a quiet moment.
  const through = values.busy ? ['--through', 'env'] : [];
  const rounds = Math.min(3, Number(values.repeats));
  return {
    command: ['npx tsx bench/plot.ts', ...process.argv.slice(2)].join(' '),
    machine: { cpu: cpus()[0]!.model, cores: cpus().length, load, node: process.version },
    allReduce: measured<TimeRow>('peers.ts', ...peers, '--repeats', values.repeats, ...through),
    ddp: [1, 2].flatMap((ranks) =>
      measured<RateRow>(
        ...(['ddp-peers.ts', '--job', 'mlp', '--ranks', `${ranks}`] as const),
        ...['--rounds', `${rounds}`, '--steps', values.steps],
      ),
    ),
  };
}

const measurement = values.from ? (JSON.parse(readFileSync(values.from, 'utf8')) as Measurement) : measure();
if (!values.from) writeFileSync(`${values.out}.json`, `${JSON.stringify(measurement, null, 2)}\n`);
for (const theme of ['light', 'dark'] as const)
  writeFileSync(`${values.out}-${theme}.svg`, drawPeers(measurement, theme));
console.log(`${values.out}-light.svg, ${values.out}-dark.svg${values.from ? '' : `, ${values.out}.json`}`);
