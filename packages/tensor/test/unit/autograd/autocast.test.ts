// Tests autocast and GradScaler.
import { describe, expect, test } from 'vitest';
import {
  addbmm,
  addmm,
  addmv,
  addr,
  autocast,
  baddbmm,
  cdist,
  checkpoint,
  conv2d,
  cross,
  crossEntropy,
  cumprod,
  dot,
  exp,
  gridSample,
  hingeEmbeddingLoss,
  inner,
  layerNorm,
  linear,
  manualSeed,
  matmul,
  memory,
  ones,
  pdist,
  pow,
  prelu,
  relu,
  scaledDotProductAttention,
  scatterAdd,
  scope,
  softmax,
  softplus,
  type Tensor,
  tensor,
  tensordot,
} from '../../../src/index.ts';
import {
  GRU,
  GRUCell,
  Linear,
  LSTM,
  PReLU,
  parameter,
  ReLU,
  RNN,
  Sequential,
} from '../../../src/nn/index.ts';
import { AdamW, GradScaler, SGD } from '../../../src/optim/index.ts';
import { codeOf } from '../../support/code-of.ts';

describe('autocast', () => {
  const x = ones([2, 2]);
  const half = ones([2, 2], { dtype: 'float16' });

  test('runs products in 16 bits, and operations that need precision in float32', () => {
    autocast({ dtype: 'float16' }, () => {
      expect([matmul(x, x), linear(x, x), matmul(x, half)].map((t) => t.dtype)).toEqual(
        Array(3).fill('float16'),
      );
      const wide = [
        exp(half),
        softmax(half),
        half.sum(),
        pow(half, 2),
        pow(2, half),
        half.cumsum(0),
        half.prod(),
      ];
      expect(wide.map((t) => t.dtype)).toEqual(Array(7).fill('float32'));
      expect([relu(half), half.add(half), half.mean()].map((t) => t.dtype)).toEqual(Array(3).fill('float16'));
      expect(half.add(x).dtype).toBe('float32');
      const plane = ones([1, 1, 2, 2]);
      const heads = ones([1, 1, 2, 2]);
      const low = [conv2d(plane, plane), scaledDotProductAttention(heads, heads, heads)];
      expect(low.map((t) => t.dtype)).toEqual(['float16', 'float16']);
      expect(layerNorm(half, [2], { weight: ones([2]) }).dtype).toBe('float32');
      expect(matmul(x.to('float64'), x.to('float64')).dtype).toBe('float64');
    });
    expect([matmul(x, x).dtype, half.sum().dtype]).toEqual(['float32', 'float16']);
  });

  test("follows PyTorch's lists for products that are added, dot, prelu, softplus, cumprod and distances", () => {
    const [low, v, batch] = [half.at(0), ones([2]), ones([1, 2, 2])];
    autocast({ dtype: 'float16' }, () => {
      const lowered = [
        ...[addmm(x, x, x), addmm(x, half, x), addmv(v, x, low), addr(x, v, v)],
        ...[addbmm(x, batch, batch), baddbmm(batch, batch, batch), prelu(half, ones([1]))],
        ...[tensordot(x, half, 1), inner(x, half)],
      ];
      expect(lowered.map((t) => t.dtype)).toEqual(Array(9).fill('float16'));
      const raised = [
        ...[dot(v, v), dot(v, low), softplus(half), cumprod(half, 0), cdist(half, half), pdist(half)],
        hingeEmbeddingLoss(half, x),
        ...[
          scatterAdd(half, 0, ones([2, 2], { dtype: 'int64' }), x),
          cross(ones([3]), ones([3]).to('float16')),
        ],
        gridSample(ones([1, 1, 2, 2], { dtype: 'float16' }), ones([1, 1, 1, 2])),
      ];
      expect(raised.map((t) => t.dtype)).toEqual(Array(10).fill('float32'));
      expect(dot(low, low).dtype).toBe('float16');
    });
  });

  test('runs layers on the 16-bit results of others', () => {
    const rows = ones([3, 2, 4], { dtype: 'bfloat16' });
    autocast({}, () => {
      expect(new PReLU().forward(rows).dtype).toBe('bfloat16');
      for (const layer of [new GRU(4, 5), new RNN(4, 5)]) {
        const [out, state] = layer.forward(rows);
        expect([out.dtype, state.dtype]).toEqual(['bfloat16', 'bfloat16']);
        expect(layer.forward(rows.to('float32'), state)[0].dtype).toBe('bfloat16');
      }
      const lstm = new LSTM(4, 5);
      expect(lstm.forward(rows.to('float32'), lstm.forward(rows)[1])[0].dtype).toBe('bfloat16');
      const cell = new GRUCell(4, 5);
      let h = cell.forward(ones([2, 4]));
      h = cell.forward(ones([2, 4]), h);
      expect(h.dtype).toBe('bfloat16');
      h.to('float32').sum().backward();
      expect(cell.parameters().every(({ grad }) => grad?.dtype === 'float32')).toBe(true);
    });
  });

  test('is bfloat16 by default, can be switched off inside, and follows async functions', async () => {
    await autocast({}, async () => {
      await Promise.resolve();
      expect(matmul(x, x).dtype).toBe('bfloat16');
      expect(autocast({ enabled: false }, () => matmul(x, x)).dtype).toBe('float32');
    });
    expect(matmul(x, x).dtype).toBe('float32');
    expect(codeOf(() => autocast({ dtype: 'float64' as never }, () => x))).toBe('ERR_TENSOR_ARGUMENT');
  });

  test('gives float32 gradients to float32 parameters, close to those without', () => {
    // With other weights, the input of relu could be so close to 0 that relu cuts it in one of the runs only.
    manualSeed(1);
    const model = new Sequential(new Linear(8, 16), new ReLU(), new Linear(16, 4));
    const input = tensor(
      Float32Array.from({ length: 32 }, (_, i) => Math.sin(i)),
      { shape: [4, 8] },
    );
    const labels = tensor([0n, 1n, 2n, 3n]);
    const run = (isMixed: boolean, isCheckpointed = false): Float32Array[] => {
      model.zeroGrad();
      scope(() => {
        const forward = (y: Tensor): Tensor => model.forward(y);
        const loss = (): Tensor =>
          crossEntropy(isCheckpointed ? checkpoint(forward, input) : forward(input), labels);
        const out = isMixed ? autocast({}, loss) : loss();
        expect(out.dtype).toBe('float32');
        out.backward();
      });
      return model.parameters().map((p) => (p.grad!.dataSync() as Float32Array).slice());
    };
    const [exact, mixed, again] = [run(false), run(true), run(true, true)];
    expect(mixed).not.toEqual(exact);
    expect(again).toEqual(mixed);
    for (const [i, grads] of mixed.entries())
      for (const [j, g] of grads.entries()) expect(Math.abs(g - exact[i]![j]!)).toBeLessThan(0.02);
    run(true);
    const before = memory();
    for (let i = 0; i < 5; i++) run(true);
    expect(memory()).toEqual(before);
  });
});

describe('GradScaler', () => {
  const setup = (): { p: Tensor; optimizer: SGD; scaler: GradScaler } => {
    const p = parameter(tensor([1, 2]));
    const scaler = new GradScaler({ initScale: 1024, growthInterval: 2 });
    return { p, optimizer: new SGD([p], { lr: 1 }), scaler };
  };
  const step = ({ p, optimizer, scaler }: ReturnType<typeof setup>, factor: number): boolean => {
    optimizer.zeroGrad();
    scaler.scale(p.mul(factor).sum()).backward();
    const isGood = scaler.step(optimizer);
    scaler.update();
    return isGood;
  };

  test('steps with the true gradients, and grows after good steps', () => {
    const all = setup();
    expect(step(all, 0.5)).toBe(true);
    expect(all.p.toArray()).toEqual([0.5, 1.5]);
    expect(all.scaler.getScale()).toBe(1024);
    expect(step(all, 0.5)).toBe(true);
    expect(all.scaler.getScale()).toBe(2048);
  });

  test('leaves out a step that is not finite, and shrinks', () => {
    const all = setup();
    step(all, 0.5);
    expect(step(all, Infinity)).toBe(false);
    expect([all.p.toArray(), all.scaler.getScale()]).toEqual([[0.5, 1.5], 512]);
    step(all, 0.5);
    expect(all.scaler.stateDict()).toEqual({ scale: 512, growthTracker: 1 });
    const other = new GradScaler();
    other.loadStateDict(all.scaler.stateDict());
    expect(other.stateDict()).toEqual(all.scaler.stateDict());
  });

  test('unscales once, so that gradients can be clipped', () => {
    const { p, optimizer, scaler } = setup();
    scaler.scale(p.sum()).backward();
    expect(p.grad!.toArray()).toEqual([1024, 1024]);
    scaler.unscale_(optimizer);
    expect(p.grad!.toArray()).toEqual([1, 1]);
    expect(() => scaler.unscale_(optimizer)).toThrow('unscale_ was called twice');
    scaler.step(optimizer);
    expect(p.toArray()).toEqual([0, 1]);
    expect(() => scaler.step(optimizer)).toThrow('step was called twice');
    scaler.update();
    expect(() => scaler.update()).toThrow('update was called before step');
    scaler.scale(p.sum()).backward();
    scaler.step(optimizer);
    scaler.update(4);
    expect(scaler.stateDict()).toEqual({ scale: 4, growthTracker: 1 });
    scaler.update(3);
    expect(scaler.getScale()).toBe(3);
    expect(() => scaler.update(0)).toThrow('GradScaler.update: newScale: expected a number > 0, got 0.');
    expect(() => scaler.loadStateDict({ scale: 1, growthTracker: 0.5 })).toThrow(
      'growthTracker: expected an integer',
    );
    expect(scaler.getScale()).toBe(3);
  });

  test('refuses a step without gradients, as PyTorch does, and goes on after it', () => {
    const all = setup();
    all.scaler.unscale_(all.optimizer);
    expect(() => all.scaler.step(all.optimizer)).toThrow(
      'GradScaler: step was called, but no parameter of the optimiser has a gradient.',
    );
    expect(() => all.scaler.update()).toThrow('update was called before step');
    all.scaler.update(1024);
    expect(step(all, 0.5)).toBe(true);
    expect(all.p.toArray()).toEqual([0.5, 1.5]);
  });

  test('does nothing when it is not enabled, and refuses settings that make no sense', () => {
    const { p, optimizer } = setup();
    const scaler = new GradScaler({ enabled: false });
    const loss = p.sum();
    expect([scaler.scale(loss) === loss, scaler.getScale()]).toEqual([true, 1]);
    loss.backward();
    scaler.unscale_(optimizer);
    expect(scaler.step(optimizer)).toBe(true);
    scaler.update();
    for (const options of [
      { initScale: 0 },
      { growthFactor: 1 },
      { backoffFactor: 1 },
      { growthInterval: 0 },
    ]) {
      expect(codeOf(() => new GradScaler(options))).toBe('ERR_TENSOR_ARGUMENT');
    }
  });

  test('trains a small model in float16', () => {
    const model = new Sequential(new Linear(2, 16), new ReLU(), new Linear(16, 2));
    const optimizer = new AdamW(model.parameters(), { lr: 0.05 });
    const scaler = new GradScaler();
    const input = tensor([
      [0, 0],
      [0, 1],
      [1, 0],
      [1, 1],
    ]);
    const labels = tensor([0n, 1n, 1n, 0n]);
    const losses = Array.from({ length: 150 }, () =>
      scope(() => {
        const loss = autocast({ dtype: 'float16' }, () => crossEntropy(model.forward(input), labels));
        const value = loss.item();
        optimizer.zeroGrad();
        scaler.scale(loss).backward();
        scaler.step(optimizer);
        scaler.update();
        return value;
      }),
    );
    expect(losses.at(-1)).toBeLessThan(0.1);
  });
});
