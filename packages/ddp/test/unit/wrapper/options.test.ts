// Tests that wrong option names and values are refused. The error of a PyTorch name gives our name.
import { type Group, loopbackGroups } from '@ringwise/collectives';
import { afterAll, describe, expect, it } from 'vitest';
import {
  averageGradients,
  clipShardedGradients,
  compressHook,
  convertSyncBatchNorm,
  ddp,
  inSync,
  loadSnapshot,
  PeriodicAverager,
  planBuckets,
  postLocalSGDHook,
  powerSGDHook,
  Reducer,
  saveSnapshot,
  wireHook,
  ZeroRedundancyOptimizer,
} from '../../../src/index.ts';
import { unknownOption } from '../../../src/option-names.ts';
import { TinyMlp } from '../../support/tiny-mlp.ts';

const [group] = loopbackGroups(1) as [Group];
afterAll(() => group.close());

describe('unknownOption', () => {
  const known = ['labelSmoothing', 'padding', 'rank', 'group'];
  const renamed = { process_group: 'group', alpha: 'rank' };
  const texts: readonly (readonly [unknown, string | null])[] = [
    [undefined, null],
    [{}, null],
    [{ padding: 1, rank: undefined }, null],
    [Object.create({ foreign: 1 }), null],
    [{ label_smoothing: 0.1 }, "unknown option 'label_smoothing'; expected 'labelSmoothing'"],
    [{ process_group: 1 }, "unknown option 'process_group'; expected 'group'"],
    [{ alpha: 1 }, "unknown option 'alpha'; expected 'rank'"],
    [{ pading: 1 }, "unknown option 'pading'; did you mean 'padding'"],
    [{ Padding: 1 }, "unknown option 'Padding'; expected 'padding'"],
    [{ lablSmothing: 1 }, "unknown option 'lablSmothing'; did you mean 'labelSmoothing'"],
    [{ foo: 1 }, "unknown option 'foo'; expected labelSmoothing, padding, rank, group"],
    [{ constructor: 1 }, "unknown option 'constructor'; expected labelSmoothing, padding, rank, group"],
    [5, 'options are a number; expected an object'],
    [null, 'options are null; expected an object'],
    [[1], 'options are an array; expected an object'],
    [Float32Array.of(1), 'options are a typed array; expected an object'],
  ];
  it.each(texts)('%o', (options, text) => {
    expect(unknownOption(options, known, renamed)).toBe(text);
  });
});

const ddpWith = (options: object) => () => ddp(new TinyMlp(1), { group, ...options });
const data = Float32Array.of(3);

const refusals: Record<string, readonly (readonly [sentence: string, call: () => unknown])[]> = {
  ddp: [
    ["ddp: unknown option 'process_group'; expected 'group'", ddpWith({ process_group: group })],
    ["ddp: unknown option 'bucket_cap_mb'; expected 'bucketBytes'", ddpWith({ bucket_cap_mb: 25 })],
    ["ddp: unknown option 'bucketCapMb'; expected 'bucketBytes'", ddpWith({ bucketCapMb: 25 })],
    [
      "ddp: unknown option 'find_unused_parameters'; expected 'unused'",
      ddpWith({ find_unused_parameters: true }),
    ],
    [
      "ddp: unknown option 'findUnusedParameters'; expected 'unused'",
      ddpWith({ findUnusedParameters: false }),
    ],
    ["ddp: unknown option 'static_graph'; expected 'staticGraph'", ddpWith({ static_graph: true })],
    [
      "ddp: unknown option 'broadcast_buffers'; expected 'broadcastBuffers'",
      ddpWith({ broadcast_buffers: false }),
    ],
    [
      "ddp: no option 'gradient_as_bucket_view': gradients always lie in the buckets. Leave it out.",
      ddpWith({ gradient_as_bucket_view: true }),
    ],
    ["ddp: no option 'init_sync': ddp() always compares", ddpWith({ init_sync: false })],
    ["ddp: no option 'device_ids': parameters stay where they are", ddpWith({ device_ids: [0] })],
    ["ddp: no option 'deviceIds': parameters stay where they are", ddpWith({ deviceIds: [0] })],
    ["ddp: no option 'output_device': ", ddpWith({ output_device: 0 })],
    ["ddp: unknown option 'bucketbytes'; expected 'bucketBytes'", ddpWith({ bucketbytes: 1 })],
    ["ddp: unknown option 'hok'; did you mean 'hook'", ddpWith({ hok: null })],
    ["ddp: bucketBytes: expected a positive number of bytes, got '25'", ddpWith({ bucketBytes: '25' })],
    ['ddp: bucketBytes: expected a positive number of bytes, got NaN', ddpWith({ bucketBytes: Number.NaN })],
    ['ddp: firstBucketBytes: expected a positive number', ddpWith({ firstBucketBytes: -1 })],
    ["ddp: unused: expected 'error', 'zero' or 'skip', got true", ddpWith({ unused: true })],
    ["ddp: rebuild: expected true or false, got 'yes'", ddpWith({ rebuild: 'yes' })],
    ['ddp: staticGraph: expected true or false, got 1', ddpWith({ staticGraph: 1 })],
    ['ddp: broadcastBuffers: expected true or false, got null', ddpWith({ broadcastBuffers: null })],
    ['ddp: expected ddp(model, { group }), got undefined', () => ddp(new TinyMlp(1), undefined as never)],
    [
      'ddp: expected ddp(model, { group }), got a promise as group: await it, as in await init()',
      () => ddp(new TinyMlp(1), { group: Promise.resolve(group) as never }),
    ],
    ['ddp: expected ddp(model, { group }), got the group itself', () => ddp(new TinyMlp(1), group as never)],
    [
      'ddp: expected a model with a Symbol.for("ringwise.gradParams") member',
      () => ddp(null as never, { group }),
    ],
  ],
  hooks: [
    [
      "powerSGDHook: unknown option 'matrix_approximation_rank'; expected 'rank'",
      () => powerSGDHook({ matrix_approximation_rank: 2 } as never),
    ],
    [
      "powerSGDHook: unknown option 'start_powerSGD_iter'; expected 'startStep'",
      () => powerSGDHook({ start_powerSGD_iter: 2 } as never),
    ],
    [
      "powerSGDHook: startStep: expected at least 2, got '10'",
      () => powerSGDHook({ startStep: '10' as never }),
    ],
    ['powerSGDHook: rank: expected an integer of at least 1, got 0', () => powerSGDHook({ rank: 0 })],
    ['powerSGDHook: rank: expected an integer of at least 1, got 1.5', () => powerSGDHook({ rank: 1.5 })],
    ['powerSGDHook: minCompression: expected', () => powerSGDHook({ minCompression: Number.NaN })],
    ['powerSGDHook: seed: expected', () => powerSGDHook({ seed: -1 })],
    [
      "compressHook: dtype: expected 'float16' or 'bfloat16', got 'fp16'",
      () => compressHook('fp16' as never),
    ],
    ['compressHook: dtype: expected', () => compressHook(undefined as never)],
    ["wireHook: wire: expected 'bfloat16' or 'int8', got 'float16'", () => wireHook('float16' as never)],
    [
      "postLocalSGDHook: unknown option 'start_localSGD_iter'; expected 'startStep'",
      () => postLocalSGDHook({ start_localSGD_iter: 5 } as never),
    ],
    ['postLocalSGDHook: startStep: expected an integer', () => postLocalSGDHook({} as never)],
    [
      'postLocalSGDHook: group: expected a group',
      () => postLocalSGDHook({ startStep: 1, subgroup: {} as never }),
    ],
    [
      "PeriodicAverager: unknown option 'warmup_steps'; expected 'warmupSteps'",
      () => new PeriodicAverager([], group, { period: 1, warmup_steps: 5 } as never),
    ],
    [
      'PeriodicAverager: period: expected an integer of at least 1, got 0',
      () => new PeriodicAverager([], group, { period: 0 }),
    ],
    ['PeriodicAverager: period: expected', () => new PeriodicAverager([], group, undefined as never)],
    ['PeriodicAverager: group: expected', () => new PeriodicAverager([], undefined as never, { period: 1 })],
  ],
  snapshots: [
    ['saveSnapshot: file: expected the path of a file', () => saveSnapshot({} as never, 'x', group)],
    [
      'saveSnapshot: group: expected a group, as init() gives one, got undefined',
      () => saveSnapshot('x', {}, undefined as never),
    ],
    [
      'saveSnapshot: group: expected a group, as init() gives one, got a promise, which needs an await',
      () => saveSnapshot('x', {}, Promise.resolve(group) as never),
    ],
    [
      "loadSnapshot: unknown option 'map_location'; expected 'tensor'",
      () => loadSnapshot('x', group, { map_location: 'cpu' } as never),
    ],
    ['loadSnapshot: tensor: expected a function', () => loadSnapshot('x', group, { tensor: 'cpu' as never })],
  ],
  others: [
    ["Reducer: unknown option 'group'", () => new Reducer([], [], group, { group } as never)],
    ["Reducer: unused: expected 'error'", () => new Reducer([], [], group, { unused: 'no' as never })],
    [
      "planBuckets: unknown option 'bucket_bytes'; expected 'bucketBytes'",
      () => planBuckets([], { bucket_bytes: 1 } as never),
    ],
    [
      "planBuckets: firstBucketBytes: expected a positive number of bytes, got '1'",
      () => planBuckets([], { bucketBytes: 1, firstBucketBytes: '1' as never }),
    ],
    [
      "clipShardedGradients: maxNorm: expected a positive number, got '1'",
      () => clipShardedGradients([data], '1' as never, group),
    ],
    ['clipShardedGradients: group: expected', () => clipShardedGradients([data], 1, {} as never)],
    ['averageGradients: group: expected', () => averageGradients([data], null as never)],
    ['inSync: group: expected', () => inSync([], undefined as never)],
    ['inSync: expected a model with', () => inSync({} as never, group)],
    ['convertSyncBatchNorm: expected a model', () => convertSyncBatchNorm(null as never, group)],
    [
      'convertSyncBatchNorm: group: expected',
      () => convertSyncBatchNorm({ modules: () => [] }, undefined as never),
    ],
    [
      'ZeroRedundancyOptimizer: make: expected a function such as',
      () => new ZeroRedundancyOptimizer([], group, { lr: 1 } as never),
    ],
    [
      'ZeroRedundancyOptimizer: params: expected a list',
      () => new ZeroRedundancyOptimizer({} as never, group, () => null as never),
    ],
    [
      'ZeroRedundancyOptimizer: params: expected each parameter once, got the same one at positions 0 and 2.',
      () => {
        const [first, other] = [new Float32Array(1), new Float32Array(1)];
        return new ZeroRedundancyOptimizer([first, other, first] as never[], group, () => null as never);
      },
    ],
    [
      'consolidateStateDict: to: expected an integer from 0 to 0, got 1',
      () => new ZeroRedundancyOptimizer([], group, () => null as never).consolidateStateDict(1),
    ],
  ],
};

for (const [topic, calls] of Object.entries(refusals))
  describe(topic, () => {
    it.each(calls)('%s', async (sentence, call) => {
      const error = await Promise.resolve()
        .then(call)
        .then(
          () => new Error('was accepted'),
          (error: Error) => error,
        );
      expect(error.message.startsWith(sentence), error.message).toBe(true);
      expect(error).toMatchObject({ name: 'DdpError', code: 'ERR_DDP_INVALID' });
    });
  });
