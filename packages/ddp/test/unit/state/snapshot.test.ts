// Tests snapshots. Rank 0 writes them, completely or not at all; all ranks of any world size read them.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { lstat, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { bufferSymbol } from '@ringwise/collectives';
import {
  fromHost,
  type GeneratorState,
  generator,
  manualSeed,
  rand,
  scope,
  type Tensor,
} from '@ringwise/tensor';
import { AdamW, type OptimizerState } from '@ringwise/tensor/optim';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { ddp, loadSnapshot, type SnapshotTensor, saveSnapshot } from '../../../src/index.ts';
import { flushFolder } from '../../../src/snapshot/file.ts';
import { largestDifference, onRanks, reasons, values } from '../../support/ranks.ts';
import { flat, lossOf, makeNet } from '../../support/tensor-mlp.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'ringwise-snapshot-'));
});
afterEach(() => rm(folder, { recursive: true }));

const toTensor = ({ data, shape }: SnapshotTensor) => fromHost(data as Float32Array, [...shape]);

it('gives every rank what rank 0 has saved, also at another world size', async () => {
  const file = join(folder, 'run.snapshot');
  const state = (rank: number) => ({
    epoch: 3 + rank,
    note: 'ä "quoted"',
    missing: undefined,
    list: [null, true, 1.5, 2n ** 60n],
    bytes: Uint8Array.of(1, 2, 3),
    halves: { data: Float64Array.of(rank, -0), big: BigInt64Array.of(-5n) },
    model: { weight: scope(() => rand([2, 3])) as Tensor },
  });
  manualSeed(1);
  const saved = state(0);
  values(await onRanks(2, (group) => saveSnapshot(file, group.rank === 0 ? saved : state(1), group)));
  const loaded = values(await onRanks(3, (group) => loadSnapshot(file, group)));
  const { model, missing: _, ...rest } = saved;
  for (const each of loaded) {
    expect(each).toEqual({
      ...rest,
      model: { weight: { data: model.weight.dataSync(), dtype: 'float32', shape: [2, 3] } },
    });
  }
  expect(await readdir(folder)).toEqual(['run.snapshot']);
});

it('is complete after two saves at the same time', async () => {
  const file = join(folder, 'run.snapshot');
  await onRanks(1, async (group) => {
    const save = (epoch: number) =>
      saveSnapshot(file, { epoch, values: new Float64Array(100_000 * epoch).fill(epoch) }, group);
    await Promise.all([save(1), save(2)]);
    const { epoch, values: saved } = (await loadSnapshot<{ epoch: number; values: Float64Array }>(
      file,
      group,
    ))!;
    expect(saved).toEqual(new Float64Array(100_000 * epoch).fill(epoch));
  }).then(values);
  expect(await readdir(folder)).toEqual(['run.snapshot']);
});

it('flushes the folder, but not on Windows, where that fails', async () => {
  await flushFolder(folder, 'linux');
  const missing = join(folder, 'missing');
  await expect(flushFolder(missing, 'linux')).rejects.toMatchObject({ code: 'ENOENT' });
  await flushFolder(missing, 'win32');
});

it('removes what an ended process has left of the same file', async () => {
  const file = join(folder, 'run.snapshot');
  const { pid } = spawnSync(process.execPath, ['--version']);
  await writeFile(`${file}.${hostname()}-${pid}-x.tmp`, 'half');
  await onRanks(1, (group) => saveSnapshot(file, {}, group)).then(values);
  expect(await readdir(folder)).toEqual(['run.snapshot']);
});

it('keeps a symbolic link, and refuses a pipe or device on all ranks, which a rename would remove', async () => {
  const [link, target, pipe] = ['latest', 'run.snapshot', 'pipe'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  await symlink(target, link);
  await writeFile(target, '');
  values(await onRanks(2, (group) => saveSnapshot(link, { epoch: 1 }, group)));
  expect((await lstat(link)).isSymbolicLink()).toBe(true);
  expect(values(await onRanks(2, (group) => loadSnapshot(target, group)))).toEqual([
    { epoch: 1 },
    { epoch: 1 },
  ]);
  expect(spawnSync('mkfifo', [pipe]).status).toBe(0);
  const refused = reasons(await onRanks(2, (group) => saveSnapshot(pipe, { epoch: 1 }, group)));
  expect(refused.map(({ code }) => code)).toEqual(['ERR_DDP_SNAPSHOT', 'ERR_DDP_SNAPSHOT']);
  expect(refused[0]!.message).toContain('it is a device, a pipe or a socket');
  expect((await lstat(pipe)).isFIFO()).toBe(true);
});

it('is null if there is no file', async () => {
  const loaded = values(await onRanks(2, (group) => loadSnapshot(join(folder, 'none'), group)));
  expect(loaded).toEqual([null, null]);
});

it('refuses a damaged file on all ranks, wherever a byte is wrong or missing', async () => {
  const file = join(folder, 'damaged');
  values(await onRanks(1, (group) => saveSnapshot(file, { values: new Float32Array(50), step: 7 }, group)));
  const whole = await readFile(file);
  const damages = [0, 9, 20, 100, whole.length - 1].map((at) => {
    const copy = Buffer.from(whole);
    copy[at]! ^= 1;
    return copy;
  });
  for (const damage of [...damages, whole.subarray(0, -1), Buffer.alloc(0)]) {
    await writeFile(file, damage);
    const errors = reasons(await onRanks(2, (group) => loadSnapshot(file, group)));
    for (const error of errors) expect(error).toMatchObject({ code: 'ERR_DDP_SNAPSHOT' });
  }
});

/** Returns a file with this header and a right checksum. */
function forged(header: string, data = Buffer.alloc(64), length = Buffer.byteLength(header)): Buffer {
  const head = Buffer.alloc(16);
  head.write('RINGSNP1');
  head.writeBigUInt64LE(BigInt(length), 8);
  const start = Buffer.concat([head, Buffer.from(header)]);
  const body = Buffer.concat([start, Buffer.alloc(Math.ceil(start.length / 64) * 64 - start.length), data]);
  return Buffer.concat([body, createHash('sha256').update(body).digest()]);
}

const array = (fields: object) =>
  JSON.stringify({ $array: { dtype: 'uint8', offset: 0, count: 8, ...fields } });

it.each([
  ['{"a":', 'its header is no JSON'],
  ['['.repeat(1e5) + ']'.repeat(1e5), 'its header is nested too deep'],
  ['{"$bigint":"x"}', 'a bigint in its header is no whole number'],
  ['{"$number":"1"}', 'a number in its header cannot be read'],
  [array({ count: 2 ** 50 }), 'of its data, which have 64'],
  [array({ offset: 60 }), 'an array ends at byte 68 of its data, which have 64'],
  [array({ offset: -8 }), 'an array in its header has no type, place or length'],
  [array({ dtype: 'toString' }), 'an array in its header has no type, place or length'],
  ['{"$array":null}', 'an array in its header has no type, place or length'],
  [array({}).replace('array', 'tensor'), 'a shape in its header is no list of sizes'],
  [`[${array({})},${array({ offset: 4 })}]`, 'arrays in its header overlap'],
  [
    '{"$perRank":{"kind":"stream","path":"a","values":[null]}}',
    'values of ranks in its header cannot be read',
  ],
])('refuses a forged header on all ranks: %.50s', async (header, problem) => {
  const file = join(folder, 'forged');
  await writeFile(file, forged(header));
  const errors = reasons(await onRanks(2, (group) => loadSnapshot(file, group)));
  for (const error of errors) {
    const message = expect.stringContaining(problem) as unknown;
    expect(error).toMatchObject({ code: 'ERR_DDP_SNAPSHOT', message });
  }
});

it('refuses a forged length of the header', async () => {
  const file = join(folder, 'forged');
  await writeFile(file, forged('{}', Buffer.alloc(64), 2 ** 50));
  const [error] = reasons(await onRanks(1, (group) => loadSnapshot(file, group)));
  const message = expect.stringContaining('its header claims 1125899906842624 bytes') as unknown;
  expect(error).toMatchObject({ code: 'ERR_DDP_SNAPSHOT', message });
});

it('fails on all ranks, and leaves none in a collective, when the option tensor throws on one', async () => {
  const file = join(folder, 'run.snapshot');
  const large = () => scope(() => rand([5 << 20])) as Tensor;
  const state = { small: scope(() => rand([3])) as Tensor, a: large(), b: large() };
  values(await onRanks(1, (group) => saveSnapshot(file, state, group)));
  for (const failing of [0, 1]) {
    const outcomes = await onRanks(2, async (group) => {
      const tensor = (saved: SnapshotTensor) => {
        if (group.rank === failing) throw new RangeError('no memory');
        return toTensor(saved);
      };
      const error: unknown = await loadSnapshot(file, group, { tensor }).catch((reason: unknown) => reason);
      await group.barrier();
      return error;
    });
    const errors = values(outcomes);
    expect(errors[failing]).toEqual(new RangeError('no memory'));
    expect(errors[1 - failing]).toMatchObject({
      ...{ code: 'ERR_DDP_SNAPSHOT', ranks: [failing] },
      message: `loadSnapshot: the option tensor threw on rank ${failing} for ${file}: no memory`,
    });
  }
});

it('fails on all ranks when rank 0 cannot write, and leaves the earlier snapshot', async () => {
  const file = join(folder, 'kept');
  const save = (target: string, state: unknown) => onRanks(2, (group) => saveSnapshot(target, state, group));
  values(await save(file, { step: 1 }));
  for (const error of reasons(await save(file, { step: () => 1 }))) {
    expect(error).toMatchObject({ code: 'ERR_DDP_SNAPSHOT' });
    expect(error.message).toContain('state.step');
  }
  for (const error of reasons(await save(join(folder, 'no', 'folder'), {})))
    expect(error.message).toContain(`there is no folder '${join(folder, 'no')}'; make it first`);
  expect(values(await onRanks(1, (group) => loadSnapshot(file, group)))).toEqual([{ step: 1 }]);
  expect(await readdir(folder)).toEqual(['kept']);
});

interface Run {
  readonly model: Record<string, Tensor>;
  readonly optimizer: OptimizerState;
  /** Number of samples that all ranks together have taken. */
  readonly consumed: number;
  readonly random: GeneratorState;
}

/**
 * Trains two epochs of 24 samples with 12 samples for each step and random learning rates. Stops and saves after
 * `stopAfter` samples. Resumes if `file` has a snapshot.
 */
function train(size: number, file: string, stopAfter = Infinity) {
  return onRanks(size, async (group) => {
    const net = makeNet(3);
    const model = await ddp(net, { group });
    const optimizer = new AdamW(net.parameters(), { lr: 0.01 });
    const run = await loadSnapshot<Run>(file, group, { tensor: toTensor });
    if (run) {
      net.loadStateDict(run.model);
      optimizer.loadStateDict(run.optimizer);
    }
    const random = generator(5);
    if (run) random.setState(run.random);
    const factor = new Float32Array(1);
    const share = 12 / size;
    for (let consumed = run?.consumed ?? 0; consumed < 48; consumed += 12) {
      if (consumed === stopAfter) {
        const state = {
          ...{ model: net.stateDict(), optimizer: optimizer.stateDict() },
          ...{ consumed, random: random.state() },
        };
        await saveSnapshot(file, state, group);
        break;
      }
      random.uniform(factor);
      optimizer.lr = 0.01 * factor[0]!;
      optimizer.zeroGrad();
      scope(() => lossOf(model.forward, (consumed % 24) + group.rank * share, share).backward());
      await model.finish();
      optimizer.step();
    }
    return flat(net);
  });
}

it('resumes a run at another world size, as if it had never stopped', async () => {
  const [whole] = values(await train(2, join(folder, 'never')));
  const file = join(folder, 'stopped');
  const [stopped] = values(await train(4, file, 24));
  for (const resumed of values(await train(3, file)))
    expect(largestDifference(resumed, whole!)).toBeLessThan(1e-4);
  expect(largestDifference(stopped!, whole!)).toBeGreaterThan(1e-3);
});

it('sends small arrays together and large ones alone', async () => {
  const file = join(folder, 'large');
  const counts = [3, 5_000_000, 700_001, 0, 2_000_000, 1_900_000, 1];
  const state = { arrays: counts.map((count, at) => Float32Array.from({ length: count }, (_, i) => i + at)) };
  values(await onRanks(2, (group) => saveSnapshot(file, state, group)));
  for (const loaded of values(await onRanks(2, (group) => loadSnapshot<typeof state>(file, group)))) {
    for (const [at, array] of loaded!.arrays.entries())
      expect(Buffer.compare(bytes(array), bytes(state.arrays[at]!))).toBe(0);
  }
});

const bytes = (array: Float32Array) => new Uint8Array(array.buffer, array.byteOffset, array.byteLength);

it('copies tensors that JavaScript cannot access, one at a time', async () => {
  const file = join(folder, 'far');
  let copies = 0;
  const device = { kind: 'cuda', index: 0 } as const;
  const view = {
    dtype: 'float32',
    count: 2,
    device,
    host: null,
    handle: { address: 64n, owner: {} },
  } as const;
  const far = (value: number) => ({
    [bufferSymbol]: () => view,
    shape: [1, 2],
    data: async () => {
      expect(copies++).toBe(0);
      await new Promise(setImmediate);
      copies--;
      return Float32Array.of(value, -value);
    },
  });
  const save = (state: unknown) => onRanks(1, (group) => saveSnapshot(file, state, group));
  values(await save({ weights: [far(1), far(2)] }));
  const [loaded] = values(await onRanks(1, (group) => loadSnapshot(file, group)));
  const tensor = (...data: number[]) => ({ data: Float32Array.from(data), dtype: 'float32', shape: [1, 2] });
  expect(loaded).toEqual({ weights: [tensor(1, -1), tensor(2, -2)] });
  const { data: _, ...mute } = far(3);
  const short = { ...far(4), data: async () => Float32Array.of(4) };
  for (const [state, sentence] of [
    [mute, /state\.weight: .*memory that JavaScript cannot read, without data\(\)/],
    [short, /state\.weight: .*data\(\) of 4 bytes where the tensor has 8/],
  ] as const) {
    const [error] = reasons(await save({ weight: state }));
    expect(error!.message).toMatch(sentence);
  }
  expect(await readdir(folder)).toEqual(['far']);
});

it('refuses a model or an optimizer in place of its state', async () => {
  const file = join(folder, 'run.snapshot');
  const net = makeNet(1);
  const optimizer = new AdamW(net.parameters(), { lr: 0.1 });
  const refusals = reasons(
    await onRanks(2, async (group) => {
      await expect(saveSnapshot(file, { net: net.stateDict(), optimizer }, group)).rejects.toThrow(
        'saveSnapshot: state.optimizer: expected its state, got an object with stateDict(). Pass what stateDict() returns.',
      );
      await saveSnapshot(file, net, group);
    }),
  );
  for (const error of refusals)
    expect(error).toMatchObject({
      code: 'ERR_DDP_SNAPSHOT',
      message: expect.stringContaining('state: expected its state, got an object with stateDict()'),
    });
  expect(await readdir(folder)).toEqual([]);
});
