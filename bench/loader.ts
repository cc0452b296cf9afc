// Measures what a DataLoader costs. In memory: the time per sample of an epoch. Over files, with one worker
// thread, and for tokens also without: the share of the time that a training loop waits for data, where a step
// keeps this thread busy for 5 ms.
//
//   npx tsx bench/loader.ts [--json] [--step 5] [--batches 400] [--only memory,tokens,images]
//
// The files are generated in a temporary folder, so they are in the system's cache. The benchmark checks that
// it reads every sample once, with its own content. Prints a table, or with --json one JSON line per row; the
// exit code is 1 if a check failed.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { ArrayDataset, DataLoader, type Dataset, DistributedSampler, loadDataset } from '@ringwise/data';
import type { ImageBatch } from '@ringwise/data/images';
import type { TokenWindows } from '@ringwise/data/tokens';
import sharp from 'sharp';

const { values } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    step: { type: 'string', default: '5' },
    batches: { type: 'string', default: '400' },
    only: { type: 'string', default: 'memory,tokens,images' },
  },
});
const stepMs = Number(values.step);
const batches = Number(values.batches);

interface Row {
  readonly name: string;
  readonly batchSize: number;
  readonly samples: number;
  /** Time in the loader, without the body of the loop. */
  readonly usPerSample: number;
  /** Processor time of loader and loop, which other programs on the machine change less; null with training steps. */
  readonly cpuUsPerSample: number | null;
  /** Share of the loop's time that it waits for the loader; null without training steps. */
  readonly waitPercent: number | null;
  readonly longestWaitMs: number;
  readonly ok: boolean;
}

function report(row: Row): void {
  const { name, batchSize, samples, usPerSample, cpuUsPerSample, waitPercent, longestWaitMs, ok } = row;
  if (!ok) process.exitCode = 1;
  if (values.json) {
    console.log(JSON.stringify({ bench: 'loader', stepMs, cores: availableParallelism(), ...row }));
    return;
  }
  const cells = [
    name.padEnd(26),
    String(batchSize).padStart(5),
    String(samples).padStart(9),
    usPerSample.toFixed(3).padStart(12),
    (cpuUsPerSample === null ? '-' : cpuUsPerSample.toFixed(3)).padStart(13),
    (waitPercent === null ? '-' : waitPercent.toFixed(2)).padStart(7),
    longestWaitMs.toFixed(2).padStart(11),
    ok ? '   yes' : '    NO',
  ];
  console.log(cells.join(' '));
}

/** Measures a million samples in this thread: first only their indices, then with values gathered into batches. */
async function memory(): Promise<void> {
  const length = 1_000_000;
  const batchSize = 256;
  const numbers: Dataset<number, ArrayLike<number>> = {
    length,
    get: (index) => index,
    getBatch: (indices) => indices,
  };
  const column = { data: Float32Array.from({ length }, (_, i) => i), shape: [] };
  const run = async <B>(
    name: string,
    data: Dataset<unknown, B>,
    indicesOf: (batch: B) => ArrayLike<number>,
  ) => {
    const sampler = new DistributedSampler(length, { replicas: 1, rank: 0 });
    const loader = new DataLoader<unknown, B>(data, { batchSize, sampler });
    const seen = new Uint8Array(length);
    const times: number[] = [];
    const cpu = process.cpuUsage();
    for (let epoch = 0; epoch < 5; epoch++) {
      sampler.setEpoch(epoch);
      const { waitMs } = loader.statistics();
      for await (const batch of loader) {
        const indices = indicesOf(batch);
        for (let i = 0; i < indices.length; i++) seen[indices[i]!]!++;
      }
      times.push(loader.statistics().waitMs - waitMs);
    }
    const usPerSample = (times.sort((a, b) => a - b)[2]! * 1000) / length;
    const { user, system } = process.cpuUsage(cpu);
    const cpuUsPerSample = (user + system) / (5 * length);
    const { longestWaitMs } = loader.statistics();
    const ok = seen.every((count) => count === 5);
    report({
      name,
      batchSize,
      samples: length,
      usPerSample,
      cpuUsPerSample,
      waitPercent: null,
      longestWaitMs,
      ok,
    });
  };
  await run('memory, before collate', numbers, (indices) => indices);
  await run('memory, one float gathered', new ArrayDataset({ x: column }), ({ x }) => x.data);
}

/** Measures one epoch with steps of `stepMs`. `check` returns how many samples of a batch are right. */
async function fed<B>(
  name: string,
  dataset: Dataset<unknown, B>,
  batchSize: number,
  check: (batch: B) => number,
  numWorkers = 1,
): Promise<void> {
  const options = { batchSize, shuffle: true, numWorkers };
  await using loader = new DataLoader<unknown, B>(dataset, options);
  for await (const _ of loader) break; // starts the worker, as an earlier epoch would have
  let right = 0;
  for await (const batch of loader) {
    const end = performance.now() + stepMs;
    right += check(batch);
    while (performance.now() < end); // a step occupies the thread
  }
  const { waitMs, workMs, longestWaitMs, samples } = loader.statistics();
  report({
    name,
    batchSize,
    samples,
    usPerSample: (waitMs * 1000) / samples,
    cpuUsPerSample: null,
    waitPercent: (100 * waitMs) / (waitMs + workMs),
    longestWaitMs,
    ok: right === samples && samples === dataset.length,
  });
}

async function tokens(folder: string): Promise<void> {
  const path = join(folder, 'tokens.bin');
  for (const [batchSize, block] of [
    [16, 256],
    [8, 1024],
    [64, 1024],
  ] as const) {
    const count = batches * batchSize;
    // The value of each token is its position, so that a window can be checked.
    writeFileSync(
      path,
      Uint32Array.from({ length: count * block + 1 }, (_, i) => i),
    );
    const seen = new Set<number>();
    const module = new URL('./loader/tokens.mjs', import.meta.url);
    const dataset = await loadDataset<Dataset<unknown, TokenWindows>>(module, { path, block });
    const check = ({ x, y }: TokenWindows): number => {
      let right = 0;
      for (let at = 0; at < x.data.length; at += block) {
        const start = x.data[at]!;
        let wrong = start % block;
        for (let i = 0; i < block; i++) {
          if (x.data[at + i] !== start + i || y.data[at + i] !== start + i + 1) wrong++;
        }
        if (wrong === 0 && !seen.has(start)) right++;
        seen.add(start);
      }
      return right;
    };
    const name = `tokens ${batchSize} × ${block}`;
    await fed(name, dataset, batchSize, check);
    seen.clear();
    await fed(`${name}, no worker`, dataset, batchSize, check, 0);
  }
}

const shades = 50;
const brightnessOf = (shade: number): number => 30 + 4 * shade;

async function images(folder: string): Promise<void> {
  for (const [batchSize, side, size] of [
    [2, 32, 32],
    [16, 32, 32],
    [32, 32, 32],
    [8, 96, 64],
    [4, 256, 224],
  ] as const) {
    const path = join(folder, `images-${batchSize}-${side}`);
    const count = batches * batchSize;
    mkdirSync(join(path, 'even'), { recursive: true });
    mkdirSync(join(path, 'odd'));
    const pictures = await Promise.all(Array.from({ length: shades }, (_, shade) => picture(side, shade)));
    for (let i = 0; i < count; i++) {
      const name = `${i % 2 === 0 ? 'even' : 'odd'}/${i}.jpg`;
      writeFileSync(join(path, name), pictures[i % shades]!);
    }
    const left = Array.from({ length: shades }, (_, shade) => Math.ceil((count - shade) / shades));
    const module = new URL('./loader/images.mjs', import.meta.url);
    const dataset = await loadDataset<Dataset<unknown, ImageBatch>>(module, { path, size });
    const plane = 3 * size * size;
    const check = ({ image, label }: ImageBatch): number => {
      let right = 0;
      for (const [row, odd] of label.data.entries()) {
        let sum = 0;
        for (let i = 0; i < plane; i++) sum += image.data[row * plane + i]!;
        const shade = Math.round((sum / plane - brightnessOf(0)) / 4);
        if (shade % 2 === odd && left[shade]! > 0) right++;
        left[shade]!--;
      }
      return right;
    };
    await fed(`images ${batchSize} × ${size}² of ${side}²`, dataset, batchSize, check);
    rmSync(path, { recursive: true });
  }
}

/** Makes a JPEG whose pixels have some noise around the brightness of `shade`. */
function picture(side: number, shade: number): Promise<Buffer> {
  const pixels = Uint8Array.from(
    { length: side * side * 3 },
    (_, i) => brightnessOf(shade) + ((i * 7919) % 17) - 8,
  );
  return sharp(pixels, { raw: { width: side, height: side, channels: 3 } })
    .jpeg()
    .toBuffer();
}

const folder = mkdtempSync(join(tmpdir(), 'bench-loader-'));
try {
  if (!values.json)
    console.log(`${'case'.padEnd(26)} batch   samples  us/sample cpu us/sample  wait %  longest ms  right`);
  const only = values.only.split(',');
  if (only.includes('memory')) await memory();
  if (only.includes('tokens')) await tokens(folder);
  if (only.includes('images')) await images(folder);
} finally {
  rmSync(folder, { recursive: true });
}
