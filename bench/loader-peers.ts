// Compares reading an epoch with PyTorch's DataLoader on the same files: windows of tokens, JPEG images, and arrays in
// memory. Both run in turns, each without workers, with one and with two.
//
//   npx tsx bench/loader-peers.ts [--python python3,venv/bin/python] [--rounds 3] [--only tokens,images,arrays]
//
// Needs a Python with torch, numpy and pillow. Prints a JSON line per task: the medians of the rounds in µs per sample
// by number of workers; `ratio`, the peer's best time over ours (above 1: ours is faster); and whether both read the
// same: the sums of tokens, labels and values exactly, the brightness of images within one level in 256. The exit code
// is 1 if they do not.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { ArrayDataset, DataLoader, type Dataset, loadDataset } from '@ringwise/data';
import type { ImageBatch } from '@ringwise/data/images';
import type { TokenWindows } from '@ringwise/data/tokens';
import sharp from 'sharp';
import { median } from './median.ts';
import { pythonsWith } from './peers/pythons.ts';

const { values } = parseArgs({
  options: {
    python: { type: 'string', default: process.env.RINGWISE_PYTHON ?? '/usr/bin/python3' },
    rounds: { type: 'string', default: '3' },
    only: { type: 'string', default: 'tokens,images,arrays' },
  },
});

/** What an epoch took and read. */
interface Epoch {
  readonly task: string;
  readonly workers: number;
  readonly usPerSample: number;
  readonly check: readonly number[];
}

interface Task<B> {
  readonly name: string;
  readonly kind: string;
  readonly batch: number;
  readonly samples: number;
  /** How far each check may be from the peer's. */
  readonly tolerance: readonly number[];
  readonly open: () => Promise<Dataset<unknown, B>>;
  /** Returns the two sums of a batch that are compared. */
  readonly check: (batch: B) => readonly [number, number];
  /** What the peer needs besides. */
  readonly facts: Readonly<Record<string, number | string>>;
}

const workerCounts = [0, 1, 2];
const folder = mkdtempSync(join(tmpdir(), 'loader-peers-'));
const moduleOf = (name: string): URL => new URL(`./loader/${name}.mjs`, import.meta.url);

function sumOf(data: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < data.length; i++) sum += data[i]!;
  return sum;
}

function tokens(batch: number, block: number): Task<TokenWindows> {
  const samples = 200 * batch;
  const path = join(folder, `tokens-${block}.bin`);
  const length = samples * block + 1;
  writeFileSync(
    path,
    Uint16Array.from({ length }, (_, i) => (i * 31) % 50_257),
  );
  return {
    name: `tokens ${batch} × ${block}`,
    kind: 'tokens',
    batch,
    samples,
    tolerance: [0, 0],
    open: () =>
      loadDataset<Dataset<unknown, TokenWindows>>(moduleOf('tokens'), { path, block, dtype: 'uint16' }),
    check: ({ x, y }) => [sumOf(x.data), sumOf(y.data)],
    facts: { path, block },
  };
}

async function images(batch: number, side: number, size: number): Promise<Task<ImageBatch>> {
  const samples = 40 * batch;
  const path = join(folder, `images-${side}`);
  for (const [label, name] of ['a', 'b'].entries()) {
    mkdirSync(join(path, name), { recursive: true });
    for (let i = 0; i < samples / 2; i++) {
      const pixels = Uint8Array.from(
        { length: side * side * 3 },
        (_, k) => 40 + 80 * label + ((k * 7919) % 61) + (i % 50),
      );
      const image = sharp(pixels, { raw: { width: side, height: side, channels: 3 } }).jpeg();
      await image.toFile(join(path, name, `${i}.jpg`));
    }
  }
  return {
    name: `images ${batch} × ${size}² of ${side}²`,
    kind: 'images',
    batch,
    samples,
    tolerance: [0, samples],
    open: () => loadDataset<Dataset<unknown, ImageBatch>>(moduleOf('images'), { path, size }),
    check: ({ image, label }) => [sumOf(label.data), sumOf(image.data) / (3 * size * size)],
    facts: { path, size },
  };
}

type Arrays = { readonly x: { readonly data: Float32Array }; readonly y: { readonly data: Int32Array } };

function arrays(batch: number): Task<Arrays> {
  const samples = 400 * batch;
  const [x, y] = [join(folder, 'x'), join(folder, 'y')];
  const data = {
    x: { data: Float32Array.from({ length: samples * 64 }, (_, i) => i % 512), shape: [64] },
    y: { data: Int32Array.from({ length: samples }, (_, i) => i % 10), shape: [] },
  };
  writeFileSync(x, data.x.data);
  writeFileSync(y, data.y.data);
  return {
    name: `arrays ${batch} × 64`,
    kind: 'arrays',
    batch,
    samples,
    tolerance: [0, 0],
    open: async () => new ArrayDataset(data) as unknown as Dataset<unknown, Arrays>,
    check: (each) => [sumOf(each.x.data), sumOf(each.y.data)],
    facts: { x, y },
  };
}

/** Reads two epochs; the second one counts, because the first one starts the workers. */
async function read<B>(task: Task<B>, workers: number): Promise<Epoch> {
  const dataset = await task.open();
  await using loader = new DataLoader<unknown, B>(dataset, {
    batchSize: task.batch,
    shuffle: true,
    numWorkers: workers,
    persistentWorkers: workers > 0,
  });
  for await (const _ of loader);
  const batches: B[] = [];
  const began = performance.now();
  for await (const batch of loader) batches.push(batch);
  const usPerSample = ((performance.now() - began) * 1000) / task.samples;
  const sums = batches.map((batch) => task.check(batch));
  const check = [0, 1].map((at) => sumOf(sums.map((each) => each[at]!)));
  return { task: task.name, workers, usPerSample, check };
}

function readByPeer(python: string): Epoch[] {
  const program = join(import.meta.dirname, 'peers', 'torch_loader.py');
  const lines = execFileSync(python, [program, folder], { encoding: 'utf8', timeout: 600_000 });
  return lines
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Epoch);
}

/** Returns the median of each number of workers. */
const timesOf = (epochs: readonly Epoch[], task: string) =>
  workerCounts.flatMap((workers) => {
    const times = epochs.filter((each) => each.task === task && each.workers === workers);
    return times.length === 0 ? [] : [median(times.map(({ usPerSample }) => usPerSample))];
  });

try {
  const only = values.only.split(',');
  const all: Task<never>[] = [];
  if (only.includes('tokens')) all.push(tokens(16, 256) as never, tokens(8, 1024) as never);
  if (only.includes('images'))
    all.push((await images(16, 32, 32)) as never, (await images(8, 256, 224)) as never);
  if (only.includes('arrays')) all.push(arrays(256) as never);
  const facts = all.map(({ name, kind, batch, facts: more }) => ({
    name,
    kind,
    batch,
    workerCounts,
    ...more,
  }));
  writeFileSync(join(folder, 'tasks.json'), JSON.stringify(facts));
  const pythons = pythonsWith(['torch', 'numpy', 'PIL'], values.python);
  const [ours, theirs]: [Epoch[], Epoch[]] = [[], []];
  for (let round = 0; round < Number(values.rounds); round++) {
    for (const task of all) {
      // Workers copy what they read, so arrays in memory are read without.
      const counts = task.kind === 'arrays' ? [0] : workerCounts;
      for (const workers of counts) ours.push(await read(task, workers));
    }
    for (const python of pythons) theirs.push(...readByPeer(python));
  }
  for (const { name, tolerance } of all) {
    const [own, peer] = [timesOf(ours, name), timesOf(theirs, name)];
    const checks = [...ours, ...theirs].filter(({ task }) => task === name).map(({ check }) => check);
    const ok = checks.every((check) =>
      check.every((sum, i) => Math.abs(sum - checks[0]![i]!) <= tolerance[i]!),
    );
    if (!ok) process.exitCode = 1;
    const line = { task: name, us: own, peerUs: peer, ratio: Math.min(...peer) / Math.min(...own), ok };
    console.log(
      JSON.stringify(line, (_, value) => (typeof value === 'number' ? Number(value.toPrecision(3)) : value)),
    );
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
