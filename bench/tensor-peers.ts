// Compares training steps and matrix products with PyTorch: the same numbers, one thread, in turns within one run.
//
//   npx tsx bench/tensor-peers.ts [--python python3,venv/bin/python] [--rounds 3] [--seconds 0.15]
//       [--only mlp,square]
//
// Each round runs our code, then the peer program with each python that has torch. Prints a JSON line per task: the
// medians of the rounds in µs; `ratio`, the fastest peer's time over ours (above 1: ours is faster); and whether the
// results agree: every tenth loss of an MLP's run within 1e-4 of itself; of a matrix product two elements and the sum
// of all, within the rounding errors that agree() allows. The exit code is 1 if results do not agree.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { setNumThreads } from '@ringwise/tensor';
import { median } from './median.ts';
import { pythonsWith } from './peers/pythons.ts';
import { agree, inputsOf, newModel, type Result, runTask, tasksOf } from './tensor/tasks.ts';

const { values } = parseArgs({
  options: {
    python: { type: 'string', default: process.env.RINGWISE_PYTHON ?? '/usr/bin/python3' },
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '0.15' },
    only: { type: 'string', default: '' },
  },
});
setNumThreads(1);

const words = values.only.split(',').filter((name) => name !== '');
const tasks = tasksOf(Number(values.seconds), words);
const inputs = inputsOf(tasks);

const folder = mkdtempSync(join(tmpdir(), 'tensor-peers-'));
const write = (name: string, array: Float32Array | Int32Array): void =>
  writeFileSync(join(folder, name), new Uint8Array(array.buffer, array.byteOffset, array.byteLength));
function runPeer(python: string): Map<string, Result> {
  const program = join(import.meta.dirname, 'peers', 'torch_tensor.py');
  const lines = execFileSync(python, [program, folder], { encoding: 'utf8', timeout: 600_000 });
  const results = lines
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Result & { name: string });
  return new Map(results.map((result) => [result.name, result]));
}

try {
  write('images', inputs.images);
  write('labels', inputs.labels);
  write('a', inputs.left);
  write('b', inputs.right);
  for (const [i, [name, param]] of newModel([784, 512, 512, 10]).namedParameters().entries()) {
    write(`${name.endsWith('weight') ? 'w' : 'b'}${i >> 1}`, param.dataSync() as Float32Array);
  }
  writeFileSync(join(folder, 'tasks.json'), JSON.stringify(tasks));
  const pythons = pythonsWith(['torch', 'numpy'], values.python);
  const ours = new Map<string, Result[]>();
  const theirs = pythons.map(() => new Map<string, Result[]>());
  const keep = (results: Map<string, Result[]>, name: string, result: Result): void =>
    void results.set(name, [...(results.get(name) ?? []), result]);
  for (let round = 0; round < Number(values.rounds); round++) {
    for (const task of tasks) keep(ours, task.name, runTask(task, inputs));
    for (const [i, python] of pythons.entries()) {
      for (const [name, result] of runPeer(python)) keep(theirs[i]!, name, result);
    }
  }
  for (const task of tasks) {
    const middle = (results: readonly Result[]): number => median(results.map(({ us }) => us));
    const own = ours.get(task.name)!;
    const peers = theirs.map((results) => results.get(task.name)!);
    const peerUs = peers.map(middle);
    const ok = peers.every((results) => agree(task, own[0]!, results[0]!));
    if (!ok) process.exitCode = 1;
    const line = { task: task.name, us: middle(own), peerUs, ratio: Math.min(...peerUs) / middle(own), ok };
    console.log(
      JSON.stringify(line, (_, value) => (typeof value === 'number' ? Number(value.toPrecision(4)) : value)),
    );
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
