// Compares our data-parallel training with PyTorch's: the same initial parameters, the same batches, one
// thread per rank, in turns within one run.
//
//   npx tsx bench/ddp-peers.ts [--job mlp,gpt] [--python /usr/bin/python3,venv/bin/python] [--rounds 3] [--ranks 2]
//     [--batch 32] [--steps 400]
//
// Each round runs bench/ddp-step.ts on all ranks, then on one rank, then the peer program with each python
// that has torch. Prints one JSON line per job. Rates are samples or tokens per second of all ranks together,
// medians of the rounds:
//   ours, alone, peers  our rate with DDP, our rate without communication, and each peer's rate with DDP
//   overPeer            our rate over the fastest peer's
//   overAlone           rate with DDP over the rate of the same processes without communication: ours, then the peers'
//   lockstep            our rate without DDP but with one all-reduce of 256 numbers per step, over `alone`: the upper
//                       limit for DDP
//   worldOne            time of a step of one rank with DDP over the time of a bare step, mean of the rounds; the bare
//                       steps come first in every second round
//   exposed             share of a step in which the program waits for communication
//   steps               overPeer and overAlone from medians of steps, which other programs on the machine disturb less
//   ok                  whether every tenth loss of the warm-up agrees within 1e-3; if not, the exit code is 1
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { gpt, gptSizes, gptText } from './jobs/gpt.ts';
import { mlp, mlpData } from './jobs/mlp.ts';
import { median } from './median.ts';
import { pythonsWith } from './peers/pythons.ts';

const { values } = parseArgs({
  options: {
    job: { type: 'string', default: 'mlp,gpt' },
    python: { type: 'string', default: process.env.RINGWISE_PYTHON ?? '/usr/bin/python3' },
    rounds: { type: 'string', default: '3' },
    ranks: { type: 'string', default: '2' },
    batch: { type: 'string' },
    steps: { type: 'string' },
  },
});

interface Line {
  readonly samplesPerSecond?: number;
  readonly tokensPerSecond?: number;
  readonly alone: number;
  readonly ratio: number;
  readonly lockstep?: number;
  readonly stepUs: number;
  readonly aloneStepUs: number;
  readonly exposedUs?: number;
  readonly losses: readonly number[];
}
interface Task {
  readonly job: 'mlp' | 'gpt';
  readonly batch: number;
  readonly steps: number;
  readonly warmup: number;
}

const jobs = { mlp, gpt };
const ranks = Number(values.ranks);

function runOurs({ job, batch, steps }: Task, processes: number, isAloneFirst: boolean): Line {
  const launcher = ['ringwise', 'run', '--nproc-per-node', String(processes)];
  const rank = join(import.meta.dirname, 'ddp-step.ts');
  const args = [
    ...launcher,
    rank,
    '--job',
    job,
    '--batch',
    String(batch),
    '--steps',
    String(steps),
    '--rounds',
    '1',
    ...(isAloneFirst ? ['--alone-first'] : []),
  ];
  const out = execFileSync('npx', args, {
    encoding: 'utf8',
    timeout: 600_000,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  return JSON.parse(out.slice(out.indexOf('{'))) as Line;
}

function writeTask(folder: string, task: Task): void {
  const { model, unitsPerSample, rateName: rate } = jobs[task.job];
  const write = (name: string, data: Uint8Array | Int32Array | Float32Array): void =>
    writeFileSync(join(folder, name), data);
  const named = [...model().namedParameters()];
  const weights = named.flatMap(([, parameter]) => [...(parameter.dataSync() as Float32Array)]);
  write('weights', Float32Array.from(weights));
  if (task.job === 'gpt') write('text', gptText(gptSizes.vocab));
  else for (const [name, bytes] of Object.entries(mlpData())) write(name, bytes);
  const parameters = named.map(([name]) => name);
  const text = { ...task, ranks, rounds: 1, parameters, sizes: gptSizes, unitsPerSample, rate };
  writeFileSync(join(folder, 'task.json'), JSON.stringify(text));
}

function runPeer(python: string, folder: string): Line {
  const program = join(import.meta.dirname, 'peers', 'torch_ddp.py');
  rmSync(join(folder, 'meeting'), { force: true });
  return JSON.parse(execFileSync(python, [program, folder], { encoding: 'utf8', timeout: 600_000 })) as Line;
}

const agree = (a: readonly number[], b: readonly number[]): boolean =>
  a.length === b.length && a.every((loss, i) => Math.abs(loss - b[i]!) < 1e-3);

const pythons = pythonsWith(['torch', 'numpy'], values.python);
for (const name of values.job.split(',') as Task['job'][]) {
  const { batch, rateName: rate } = jobs[name];
  const count = Number(values.steps ?? (name === 'mlp' ? 400 : 20));
  const task: Task = {
    job: name,
    batch: Number(values.batch ?? batch),
    steps: count,
    warmup: Math.max(20, count >> 3),
  };
  const folder = mkdtempSync(join(tmpdir(), 'ddp-peers-'));
  try {
    writeTask(folder, task);
    const [ours, single, theirs]: [Line[], Line[], Line[][]] = [[], [], pythons.map(() => [])];
    for (let round = 0; round < Number(values.rounds); round++) {
      ours.push(runOurs(task, ranks, round % 2 === 1));
      single.push(runOurs(task, 1, round % 2 === 1));
      for (const [i, python] of pythons.entries()) theirs[i]!.push(runPeer(python, folder));
    }
    const rateOf = (lines: readonly Line[]): number =>
      median(lines.map((line) => line[rate as 'samplesPerSecond']!));
    const peers = theirs.map(rateOf);
    const stepOf = (lines: readonly Line[]): number => median(lines.map(({ stepUs }) => stepUs));
    const steps = {
      overPeer: peers.length === 0 ? null : Math.min(...theirs.map(stepOf)) / stepOf(ours),
      overAlone: [ours, ...theirs].map((lines) =>
        median(lines.map(({ stepUs, aloneStepUs }) => aloneStepUs / stepUs)),
      ),
    };
    const ok = theirs.flat().every(({ losses }) => agree(losses, ours[0]!.losses));
    if (!ok) process.exitCode = 1;
    const line = {
      ...{ job: name, ranks, batch: task.batch, unit: rate },
      ours: rateOf(ours),
      alone: median(ours.map(({ alone }) => alone)),
      peers,
      overPeer: peers.length === 0 ? null : rateOf(ours) / Math.max(...peers),
      overAlone: [ours, ...theirs].map((lines) => median(lines.map(({ ratio }) => ratio))),
      lockstep: median(ours.map(({ lockstep, alone }) => lockstep! / alone)),
      worldOne:
        single.reduce((sum, { stepUs, aloneStepUs }) => sum + stepUs / aloneStepUs, 0) / single.length,
      exposed: median(ours.map(({ exposedUs, stepUs }) => exposedUs! / stepUs)),
      steps,
      ok,
    };
    const short = (_: string, value: unknown) =>
      typeof value === 'number' ? Number(value.toPrecision(4)) : value;
    console.log(JSON.stringify(line, short));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
