// Loads state dicts that PyTorch 2.13 saved, by its names, into our layers and optimisers, and compares what they
// compute from then on. state_dicts.py wrote the files.
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { loadSafetensors, safetensorsMetadata } from '../../../../src/files/safetensors/index.ts';
import { crossEntropy, ones, scope, type Tensor, zeros } from '../../../../src/index.ts';
import * as nn from '../../../../src/nn/index.ts';
import { AdamW, fromTorchState, NAdam, RMSprop, type TorchParamGroup } from '../../../../src/optim/index.ts';

const step = { dimFeedforward: 12, dropout: 0.1 };
const weight = (): Tensor => ones([3]);
const encoderLayer = (): nn.TransformerEncoderLayer =>
  new nn.TransformerEncoderLayer(8, 2, { batchFirst: true, ...step });

/** The layers of state_dicts.py, by the same names. */
const layers: Readonly<Record<string, () => nn.Module>> = {
  Linear: () => new nn.Linear(3, 4),
  'Linear without bias': () => new nn.Linear(3, 4, { bias: false }),
  Conv1d: () => new nn.Conv1d(2, 3, 3, { padding: 1 }),
  Conv2d: () => new nn.Conv2d(4, 6, [3, 2], { stride: 2, padding: 1, groups: 2 }),
  'Conv2d with reflection': () => new nn.Conv2d(2, 2, 3, { padding: 1, paddingMode: 'reflect' }),
  Conv3d: () => new nn.Conv3d(2, 2, 2),
  ConvTranspose1d: () => new nn.ConvTranspose1d(2, 3, 3, { stride: 2, outputPadding: 1 }),
  ConvTranspose2d: () => new nn.ConvTranspose2d(4, 2, 3, { stride: 2, padding: 1, groups: 2 }),
  BatchNorm1d: () => new nn.BatchNorm1d(3),
  BatchNorm2d: () => new nn.BatchNorm2d(3),
  BatchNorm3d: () => new nn.BatchNorm3d(2),
  'BatchNorm2d without weights': () => new nn.BatchNorm2d(3, { affine: false }),
  'BatchNorm1d without statistics': () => new nn.BatchNorm1d(3, { trackRunningStats: false }),
  InstanceNorm1d: () => new nn.InstanceNorm1d(3, { affine: true, trackRunningStats: true }),
  InstanceNorm2d: () => new nn.InstanceNorm2d(3, { affine: true, trackRunningStats: true }),
  InstanceNorm3d: () => new nn.InstanceNorm3d(2, { affine: true }),
  GroupNorm: () => new nn.GroupNorm(2, 4),
  LayerNorm: () => new nn.LayerNorm([2, 3]),
  'LayerNorm without bias': () => new nn.LayerNorm(3, { bias: false }),
  RMSNorm: () => new nn.RMSNorm(4),
  Embedding: () => new nn.Embedding(5, 3, { paddingIdx: 1 }),
  PReLU: () => new nn.PReLU(3),
  RNN: () => new nn.RNN(2, 3, { nonlinearity: 'relu' }),
  LSTM: () => new nn.LSTM(2, 3, { numLayers: 2, bidirectional: true, batchFirst: true }),
  GRU: () => new nn.GRU(2, 3, { numLayers: 2, bidirectional: true }),
  'GRU without bias': () => new nn.GRU(2, 3, { bias: false }),
  RNNCell: () => new nn.RNNCell(2, 3),
  LSTMCell: () => new nn.LSTMCell(2, 3),
  GRUCell: () => new nn.GRUCell(2, 3),
  MultiheadAttention: () => new nn.MultiheadAttention(8, 2),
  'MultiheadAttention of other widths': () =>
    new nn.MultiheadAttention(8, 2, { kdim: 3, vdim: 5, batchFirst: true }),
  TransformerEncoderLayer: () =>
    new nn.TransformerEncoderLayer(8, 2, { activation: 'gelu', normFirst: true, ...step }),
  TransformerDecoderLayer: () => new nn.TransformerDecoderLayer(8, 2, { batchFirst: true, ...step }),
  TransformerEncoder: () => new nn.TransformerEncoder(encoderLayer(), 2, { norm: new nn.LayerNorm(8) }),
  TransformerDecoder: () =>
    new nn.TransformerDecoder(new nn.TransformerDecoderLayer(8, 2, { bias: false, ...step }), 2),
  Transformer: () => new nn.Transformer(8, 2, { numEncoderLayers: 1, numDecoderLayers: 1, ...step }),
  ParameterList: () => new nn.ParameterList([zeros([2]), zeros([2, 3])]),
  ParameterDict: () => new nn.ParameterDict({ a: zeros([2]), b: zeros([3]) }),
  ModuleList: () => new nn.ModuleList([new nn.Linear(2, 3), new nn.PReLU()]),
  ModuleDict: () => new nn.ModuleDict({ first: new nn.Linear(2, 3), norm: new nn.BatchNorm1d(2) }),
  Sequential: () => {
    const inner = new nn.Sequential(new nn.LayerNorm(4), new nn.Linear(4, 2));
    return new nn.Sequential(new nn.Linear(3, 4), new nn.ReLU(), inner);
  },
  CrossEntropyLoss: () => new nn.CrossEntropyLoss({ weight: weight() }),
  NLLLoss: () => new nn.NLLLoss({ weight: weight() }),
  BCELoss: () => new nn.BCELoss({ weight: weight() }),
  BCEWithLogitsLoss: () => new nn.BCEWithLogitsLoss({ weight: weight(), posWeight: weight() }),
  MultiMarginLoss: () => new nn.MultiMarginLoss({ weight: weight() }),
  MultiLabelSoftMarginLoss: () => new nn.MultiLabelSoftMarginLoss({ weight: weight() }),
};

const file = (name: string): string => fileURLToPath(new URL(`${name}.safetensors`, import.meta.url));
const saved = await loadSafetensors(file('layers'));

/** Returns the tensors whose names begin with `prefix`, under the rest of their names. */
const below = (prefix: string): Record<string, Tensor> =>
  Object.fromEntries(
    Object.entries(saved).flatMap(([name, tensor]) =>
      name.startsWith(prefix) ? [[name.slice(prefix.length), tensor]] : [],
    ),
  );

type Nested = Tensor | null | readonly Nested[];
const flat = (outputs: Nested): Tensor[] =>
  Array.isArray(outputs) ? outputs.flatMap(flat) : [outputs as Tensor];

function expectNear(got: Tensor, want: Tensor): void {
  expect(got.shape).toEqual(want.shape);
  expect(got.detach().sub(want).abs().max().item()).toBeLessThan(1e-5);
}

describe('a state dict of PyTorch fits', () => {
  test('every layer of the file', () => {
    const names = new Set(Object.keys(saved).map((name) => name.split('/')[0]));
    expect([...names].sort()).toEqual(Object.keys(layers).sort());
  });

  test.each(Object.entries(layers))('%s', (name, make) => {
    scope(() => {
      const layer = make();
      const state = below(`${name}/state/`);
      expect(layer.loadStateDict(state)).toEqual({ missing: [], unexpected: [] });
      for (const [key, value] of Object.entries(layer.stateDict())) {
        expect(value.dtype).toBe(state[key]!.dtype);
        expectNear(value, state[key]!);
      }
      const inputs = Object.values(below(`${name}/input/`));
      if (inputs.length === 0) return;
      layer.eval();
      const forward = (layer as unknown as { forward(...inputs: unknown[]): Nested }).forward.bind(layer);
      const outputs = flat(forward(...inputs));
      const wanted = Object.values(below(`${name}/output/`));
      expect(outputs.length).toBe(wanted.length);
      for (const [i, output] of outputs.entries()) expectNear(output, wanted[i]!);
    });
  });
});

test('a state dict that does not fit says everything that is wrong with it, and changes nothing', () => {
  scope(() => {
    const layer = new nn.Sequential(new nn.Linear(3, 4), new nn.BatchNorm1d(4));
    const before = layer.parameters().map((parameter) => parameter.toArray());
    const other = below('Sequential/state/');
    const wrong = { ...other, '1.weight': zeros([3]), '0.weight': zeros([3, 4]) };
    expect(() => layer.loadStateDict(wrong)).toThrow(
      'loadStateDict: missing 1.bias, 1.running_mean, 1.running_var, 1.num_batches_tracked; ' +
        'unexpected 2.0.bias, 2.0.weight, 2.1.bias, 2.1.weight; ' +
        '0.weight expected [4, 3], got [3, 4]; 1.weight expected [4], got [3]. Nothing was changed.',
    );
    expect(() => layer.loadStateDict(wrong, { strict: false })).toThrow(
      'loadStateDict: 0.weight expected [4, 3], got [3, 4]; 1.weight expected [4], got [3]. Nothing was changed.',
    );
    expect(layer.parameters().map((parameter) => parameter.toArray())).toEqual(before);
    const result = layer.loadStateDict(other, { strict: false });
    expect(result.missing).toEqual([
      ...['1.weight', '1.bias', '1.running_mean', '1.running_var', '1.num_batches_tracked'],
    ]);
    expect(result.unexpected).toEqual(['2.0.bias', '2.0.weight', '2.1.bias', '2.1.weight']);
    expectNear(layer.stateDict()['0.weight']!, other['0.weight']!);
  });
});

describe('a training that PyTorch began', () => {
  const makeModel = (): nn.Sequential =>
    new nn.Sequential(
      new nn.Conv2d(1, 2, 3),
      new nn.BatchNorm2d(2),
      new nn.ReLU(),
      new nn.Flatten(),
      new nn.Linear(8, 2),
    );
  const groupsOf = (model: nn.Module) => [
    { params: model.parameters().filter(({ rank }) => rank > 1) },
    { params: model.parameters().filter(({ rank }) => rank === 1) },
  ];
  const readState = async (): Promise<[Record<string, Tensor>, TorchParamGroup[]]> => {
    const { param_groups } = await safetensorsMetadata(file('optimizer'));
    return [await loadSafetensors(file('optimizer')), JSON.parse(param_groups!) as TorchParamGroup[]];
  };

  test('goes on with the same losses', async () => {
    const model = makeModel();
    model.loadStateDict(await loadSafetensors(file('model')));
    const optimizer = new NAdam(groupsOf(model));
    optimizer.loadStateDict(fromTorchState(optimizer, ...(await readState())));
    expect(optimizer.groups.map(({ lr, weightDecay }) => [lr, weightDecay])).toEqual([
      [0.01, 0.1],
      [0.02, 0],
    ]);
    const { x, y, losses } = await loadSafetensors(file('training'));
    for (const want of losses!.toArray() as number[]) {
      scope(() => {
        const loss = crossEntropy(model.forward(x!), y!);
        expect(loss.item()).toBeCloseTo(want, 5);
        optimizer.zeroGrad();
        loss.backward();
        optimizer.step();
      });
    }
  });

  test('is refused by other optimisers, groups and names, with a sentence, and changes nothing', async () => {
    const [tensors, groups] = await readState();
    const model = makeModel();
    const nadam = new NAdam(groupsOf(model));
    const load =
      (optimizer: Parameters<typeof fromTorchState>[0], own = tensors, given = groups) =>
      () =>
        optimizer.loadStateDict(fromTorchState(optimizer, own, given));
    const before = nadam.stateDict();

    const rmsprop = new RMSprop(groupsOf(model));
    expect(load(rmsprop)).toThrow(
      'loadStateDict: group 0 has the option betas, which RMSprop does not have; ' +
        'group 0 has the option momentum_decay, which RMSprop does not have; ' +
        'group 0 has the option decoupled_weight_decay, which RMSprop does not have',
    );
    const adamw = new AdamW(groupsOf(model));
    const few = groups.map(({ momentum_decay: _, ...rest }) => ({ ...rest, decoupled_weight_decay: false }));
    expect(load(adamw, tensors, few)).toThrow('group 0 is one of Adam, not of AdamW; group 1 is one of Adam');
    expect(load(new NAdam(model.parameters()))).toThrow('expected groups of 6 parameters, got 2, 4. Nothing');
    expect(load(nadam, { ...tensors, '6.exp_avg': ones([1]), other: ones([1]) })).toThrow(
      'loadStateDict: unexpected 6.exp_avg; unexpected other. Nothing was changed.',
    );
    const { '0.exp_avg': _, ...rest } = tensors;
    expect(load(nadam, { ...rest, '1.exp_avg': ones([3]), '2.prev': ones([2]) })).toThrow(
      'loadStateDict: expAvg.1 expected [2, 8], got [3]; unexpected prev.2; missing expAvg.0. Nothing was changed.',
    );
    const named = new NAdam(model.namedParameters());
    const all = [{ ...groups[0]!, params: [0, 1, 2, 3, 4, 5], param_names: ['a', 'b', 'c', 'd', 'e', 'f'] }];
    expect(load(named, tensors, all)).toThrow(
      'group 0 expected the parameters 0.weight, 0.bias, 1.weight, 1.bias, 4.weight, 4.bias, got a,b,c,d,e,f',
    );
    expect(() => fromTorchState(nadam, tensors, {} as never)).toThrow('expected the list param_groups');
    expect(nadam.stateDict()).toEqual(before);
  });
});
