// The trainings of training.py: the same weights, batches and steps.
import {
  conv2d,
  crossEntropy,
  embedding,
  gelu,
  layerNorm,
  linear,
  maxPool2d,
  relu,
  type Shape,
  scaledDotProductAttention,
  scope,
  type Tensor,
  tensor,
} from '../../../../src/index.ts';
import { AdamW, type Optimizer, SGD } from '../../../../src/optim/index.ts';
import { countOf, hashed, labels } from './wave.ts';

/** Returns weights that are scaled by the number of their inputs. */
function weights(shapes: readonly Shape[]): Tensor[] {
  return shapes.map((shape, n) => {
    const inputs = shape.length > 1 ? shape.slice(1).reduce((a, b) => a * b, 1) : shape[0]!;
    const scale = 1.5 / Math.sqrt(inputs);
    const values = Float32Array.from({ length: countOf(shape) }, (_, i) => hashed(i, n) * scale);
    return tensor(values, { shape, requiresGrad: true });
  });
}

function train(optimizer: Optimizer, lossOf: (step: number) => Tensor): number[] {
  return Array.from({ length: 200 }, (_, step) =>
    scope(() => {
      const loss = lossOf(step);
      optimizer.zeroGrad();
      loss.backward();
      optimizer.step();
      return loss.item();
    }),
  );
}

const batch = (step: number, shape: Shape): Tensor => {
  const values = Float32Array.from({ length: countOf(shape) }, (_, i) => Math.sin((step % 10) + i * 0.37));
  return tensor(values, { shape });
};

export function mlp(): number[] {
  const params = weights([[32, 12], [32], [32, 32], [32], [5, 32], [5]]);
  const [w1, b1, w2, b2, w3, b3] = params as [Tensor, Tensor, Tensor, Tensor, Tensor, Tensor];
  const optimizer = new SGD(params, { lr: 0.0015, momentum: 0.9 });
  return train(optimizer, (step) => {
    const h = relu(linear(relu(linear(batch(step, [8, 12]), w1, b1)), w2, b2));
    return crossEntropy(linear(h, w3, b3), labels([8], 5));
  });
}

export function cnn(): number[] {
  const params = weights([[4, 1, 3, 3], [4], [8, 4, 3, 3], [8], [5, 32], [5]]);
  const [w1, b1, w2, b2, w3, b3] = params as [Tensor, Tensor, Tensor, Tensor, Tensor, Tensor];
  const optimizer = new SGD(params, { lr: 0.0003, momentum: 0.9 });
  return train(optimizer, (step) => {
    const x = batch(step, [6, 1, 8, 8]);
    const h = maxPool2d(relu(conv2d(x, w1, b1, { padding: 1 })), 2);
    const deep = relu(conv2d(h, w2, b2, { stride: 2, padding: 1 }));
    return crossEntropy(linear(deep.flatten(1), w3, b3), labels([6], 5));
  });
}

const norm = (x: Tensor): Tensor => layerNorm(x, [16]);

export function gpt(): number[] {
  const params = weights([
    [11, 16],
    [12, 16],
    [48, 16],
    [16, 16],
    [64, 16],
    [16, 64],
  ]);
  const [table, places, qkv, out, up, down] = params as [Tensor, Tensor, Tensor, Tensor, Tensor, Tensor];
  const optimizer = new AdamW(params, { lr: 1e-3, betas: [0.9, 0.95], weightDecay: 0.1 });
  return train(optimizer, (step) => {
    const tokens = tensor(
      [0, 1].map((b) => Array.from({ length: 13 }, (_, i) => (i * 3 + (step % 7) + b) % 11)),
      { dtype: 'int64' },
    );
    let x = embedding(tokens.narrow(1, 0, 12), table).add(places);
    const heads = linear(norm(x), qkv)
      .split(16, -1)
      .map((h) => h.reshape([2, 12, 2, 8]).transpose(1, 2));
    const [q, k, v] = heads as [Tensor, Tensor, Tensor];
    const mixed = scaledDotProductAttention(q, k, v, { causal: true });
    x = x.add(linear(mixed.transpose(1, 2).reshape([2, 12, 16]), out));
    x = x.add(linear(gelu(linear(norm(x), up)), down));
    const logits = linear(norm(x), table).reshape([-1, 11]);
    return crossEntropy(logits, tokens.narrow(1, 1, 12).reshape([-1]));
  });
}
