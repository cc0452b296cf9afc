// Recurrent layers: errors, initial values, dropout, mixed precision and memory. Values are compared with PyTorch in
// test/processes/pytorch/cases/networks/sequences.ts.
import { describe, expect, test } from 'vitest';
import {
  autocast,
  manualSeed,
  memory,
  noGrad,
  ones,
  randn,
  scope,
  type Tensor,
  tensor,
  zeros,
} from '../../../src/index.ts';
import {
  GRU,
  GRUCell,
  LSTM,
  LSTMCell,
  type Module,
  type PackedSequence,
  packPaddedSequence,
  packSequence,
  padPackedSequence,
  padSequence,
  RNN,
  RNNCell,
} from '../../../src/nn/index.ts';
import { codeOf } from '../../support/code-of.ts';

/** The common part of the layers, and of the cells: what forward takes and returns differs. */
type Made<Output> = new (
  ...args: ConstructorParameters<typeof GRU>
) => Module & { forward(input: unknown, states?: unknown): Output };

const layers = { RNN, LSTM, GRU } as unknown as Record<string, Made<[Tensor, unknown]>>;
const cells = { RNNCell, LSTMCell, GRUCell } as unknown as Record<string, Made<unknown>>;

test.each([
  ['LSTMCell', LSTMCell, 16],
  ['GRUCell', GRUCell, 12],
  ['RNNCell', RNNCell, 4],
] as const)('%s takes inputs of no width, as in PyTorch', (_, Cell, rows) => {
  const cell = new Cell(0, 4);
  const out = cell.forward(ones([2, 0]));
  (Array.isArray(out) ? out[0] : out).sum().backward();
  const shapes = cell.parameters().map((parameter) => parameter.grad?.shape);
  expect(shapes).toEqual([[rows, 0], [rows, 4], [rows], [rows]]);
});

describe.each(Object.entries(layers))('%s', (name, Layer) => {
  test('has the names and initial values of PyTorch', () => {
    manualSeed(1);
    const layer = new Layer(3, 100, { numLayers: 2, bidirectional: true });
    const names = ['weight_ih', 'weight_hh', 'bias_ih', 'bias_hh'];
    const ends = ['_l0', '_l0_reverse', '_l1', '_l1_reverse'];
    expect(layer.namedParameters().map(([own]) => own)).toEqual(
      ends.flatMap((end) => names.map((own) => own + end)),
    );
    for (const parameter of layer.parameters()) {
      const values = parameter.dataSync() as Float32Array;
      expect(Math.max(...values.map(Math.abs))).toBeLessThanOrEqual(0.1);
      expect(parameter.std().item()).toBeCloseTo(0.2 / Math.sqrt(12), 2);
    }
  });

  test('refuses wrong sizes, inputs and states', () => {
    const layer = new Layer(3, 2, { batchFirst: true });
    expect(() => new Layer(0, 2)).toThrow(`${name}: inputSize: expected an integer ≥ 1, got 0`);
    expect(() => new Layer(3, 2, { projWidth: 1 } as never)).toThrow(`${name}: unknown option 'projWidth'`);
    expect(() => new Layer(3, 2, { dropout: 1.5 })).toThrow('dropout: expected a probability');
    expect(() => layer.forward(ones([2, 4, 5]))).toThrow(
      `${name}: expected an input [batch, time, 3] or [time, 3], got [2, 4, 5].`,
    );
    expect(() => layer.forward(ones([2, 0, 3]))).toThrow(`${name}: expected at least one time step, got 0.`);
    expect(codeOf(() => layer.forward(ones([2, 1, 3], { dtype: 'float64' })))).toBe('ERR_TENSOR_DTYPE');
    expect(codeOf(() => layer.forward([1, 2] as never))).toBe('ERR_TENSOR_ARGUMENT');
    const state = name === 'LSTM' ? [zeros([1, 2, 2]), zeros([1, 3, 2])] : zeros([1, 3, 2]);
    expect(() => layer.forward(ones([2, 1, 3]), state as never)).toThrow(
      `${name}: expected ${name === 'LSTM' ? 'c0' : 'h0'} of shape [1, 2, 2], got [1, 3, 2].`,
    );
  });

  test('drops outputs between layers while training only', () => {
    manualSeed(2);
    const layer = new Layer(3, 4, { numLayers: 2, dropout: 0.5 });
    const x = randn([5, 2, 3]);
    const run = (): number[] => Array.from(layer.forward(x)[0].dataSync() as Float32Array);
    const dropped = run();
    expect(run()).not.toEqual(dropped);
    layer.eval();
    const whole = run();
    expect(run()).toEqual(whole);
    expect(whole).not.toEqual(dropped);
  });

  test('computes in 16 bits under autocast, and near to float32', () => {
    manualSeed(3);
    const layer = new Layer(3, 4, { bidirectional: true });
    const x = randn([4, 2, 3]);
    const [wide] = layer.forward(x);
    const [low] = autocast({}, () => layer.forward(x));
    expect(low.dtype).toBe('bfloat16');
    expect(low.sub(wide).abs().max().item()).toBeLessThan(0.03);
    low.to('float32').sum().backward();
    expect(layer.parameters().every(({ grad }) => grad?.dtype === 'float32')).toBe(true);
  });

  test('leaves no memory behind, and keeps its graph for a second backward', () => {
    const layer = new Layer(2, 3);
    const x = randn([3, 2, 2]);
    const before = memory().bytes;
    scope(() => {
      const loss = layer.forward(x)[0].sum();
      loss.backward(null, { retainGraph: true });
      const once = layer.parameters().map(({ grad }) => grad!.clone());
      loss.backward();
      for (const [i, { grad }] of layer.parameters().entries())
        expect(grad!.sub(once[i]!.mul(2)).abs().max().item()).toBeLessThan(1e-6);
      layer.zeroGrad();
    });
    expect(memory().bytes).toBe(before);
  });

  test('gives the same for a packed batch as for each sequence alone', () => {
    const layer = new Layer(2, 3, { numLayers: 2, bidirectional: true });
    const sequences = [2, 4, 1].map((length) => randn([length, 2]));
    const [output, last] = noGrad(() => layer.forward(packSequence(sequences, { enforceSorted: false })));
    const [padded, lengths] = padPackedSequence(output as unknown as PackedSequence, { batchFirst: true });
    expect(lengths.toArray()).toEqual([2, 4, 1]);
    for (const [i, one] of sequences.entries()) {
      const [alone, end] = noGrad(() => layer.forward(one));
      expectNear(padded.at(i, [0, one.shape[0]!]), alone);
      const hidden = (states: unknown): Tensor => (Array.isArray(states) ? states[0] : states) as Tensor;
      expectNear(hidden(last).at(':', i), hidden(end));
    }
  });
});

function expectNear(a: Tensor, b: Tensor): void {
  expect(a.shape).toEqual(b.shape);
  expect(a.sub(b).abs().max().item()).toBeLessThan(1e-6);
}

test.each(Object.entries(cells))('%s refuses wrong inputs and states', (name, Cell) => {
  const cell = new Cell(3, 2);
  expect(() => cell.forward(ones([2, 2]))).toThrow(
    `${name}: expected an input [batch, 3] or [3], got [2, 2].`,
  );
  const state = name === 'LSTMCell' ? [zeros([2]), zeros([2])] : zeros([2]);
  expect(() => cell.forward(ones([2, 3]), state as never)).toThrow(
    `${name}: expected h of shape [2, 2], got [2].`,
  );
  expect(cell.namedParameters().map(([own]) => own)).toEqual([
    'weight_ih',
    'weight_hh',
    'bias_ih',
    'bias_hh',
  ]);
});

test('an LSTM takes its states as a list of two', () => {
  const layer = new LSTM(3, 2);
  expect(() => layer.forward(ones([2, 1, 3]), zeros([1, 1, 2]) as never)).toThrow(
    'LSTM: expected a list [h, c] as state, got ',
  );
});

test('an LSTM projects its hidden state, with the values and gradients of PyTorch', () => {
  const layer = new LSTM(2, 3, { projSize: 1 });
  expect(layer.namedParameters().map(([name, { shape }]) => `${name} ${shape}`)).toEqual([
    'weight_ih_l0 12,2',
    'weight_hh_l0 12,1',
    'bias_ih_l0 12',
    'bias_hh_l0 12',
    'weight_hr_l0 1,3',
  ]);
  noGrad(() => {
    for (const [i, param] of layer.parameters().entries()) {
      const values = Array.from({ length: param.count }, (_, at) => Math.sin(at * 0.7 + i));
      param.copy_(tensor(values).reshape(param.shape));
    }
  });
  const x = tensor([[[0.5, -1]], [[1, 0.25]]]);
  const [output, [h, c]] = layer.forward(x);
  const expectClose = (got: Tensor, want: readonly number[]): void => {
    for (const [i, value] of (got.reshape([-1]).toArray() as number[]).entries())
      expect(value).toBeCloseTo(want[i]!, 5);
  };
  expectClose(output, [-0.388294965, -0.73293364]);
  expect([h.shape, c.shape]).toEqual([
    [1, 1, 1],
    [1, 1, 3],
  ]);
  expectClose(h, [-0.73293364]);
  expectClose(c, [0.703299284, 0.596843839, 0.314196587]);
  output.sum().backward();
  expectClose(layer.parameters().at(-1)!.grad!, [0.589110315, 0.45104754, 0.137466893]);
  expect(() => new LSTM(2, 3, { projSize: 3 })).toThrow(
    'LSTM: projSize: expected an integer below hiddenSize 3, got 3.',
  );
  expect(() => layer.forward(x, [zeros([1, 1, 3]), zeros([1, 1, 3])])).toThrow(
    'LSTM: expected h0 of shape [1, 1, 1], got [1, 1, 3].',
  );
});

describe('packed sequences', () => {
  const x = ones([3, 2, 1]);
  test.each([
    [[1, 3], {}, 'from the longest to the shortest'],
    [[3], {}, 'expected lengths for each of the 2 sequences, got 1'],
    [[4, 1], {}, 'expected lengths of at most 3, the number of steps, got 4'],
    [[3, 0], {}, 'expected lengths of at least 1, got 0'],
    [[3, 1.5], {}, 'expected lengths of at least 1, got 1.5'],
    ['3', {}, 'expected lengths as an array or a tensor of one dimension'],
    [[3, 1], { batchFirst: 1 }, 'batchFirst: expected true or false'],
  ])('refuses lengths %j with %j', (lengths, options, text) => {
    expect(() => packPaddedSequence(x, lengths as never, options as never)).toThrow(text);
  });

  test('refuses other values', () => {
    expect(() => padPackedSequence(x as never)).toThrow('padPackedSequence: expected a packed sequence');
    const packed = packPaddedSequence(x, [3, 1]);
    expect(() => padPackedSequence(packed, { totalLength: 2 })).toThrow('totalLength 2 is less than 3');
    expect(codeOf(() => padSequence([]))).toBe('ERR_TENSOR_ARGUMENT');
    expect(() => padSequence([ones([2, 1]), ones([2, 2])])).toThrow(
      'padSequence: expected sequences that differ in their first dimension only, got [2, 1] beside [2, 2].',
    );
  });

  test('hold step after step', () => {
    const values = tensor([1, 2, 3, 4, 5, 6], { shape: [2, 3] });
    const packed = packPaddedSequence(values, tensor([2n, 3n]), { batchFirst: true, enforceSorted: false });
    expect(packed.data.toArray()).toEqual([4, 1, 5, 2, 6]);
    expect(packed.batchSizes).toEqual([2, 2, 1]);
    expect(packed.sortedIndices!.toArray()).toEqual([1, 0]);
    const [padded] = padPackedSequence(packed, { batchFirst: true, paddingValue: -1, totalLength: 4 });
    expect(padded.toArray()).toEqual([
      [1, 2, -1, -1],
      [4, 5, 6, -1],
    ]);
  });
});
