// Times workloads of @ringwise/tensor on cuda:0 and prints one JSON array to standard output: { name, us, unit, rate }.
// torch_bench.py uses the same names. With --small every workload runs once at a small size, to see that it runs; the
// output then has no figures.
import {
  addLayerNorm,
  compile,
  conv2d,
  crossEntropy,
  dropout,
  indexSelect,
  layerNorm,
  matmul,
  noGrad,
  randint,
  randn,
  scaledDotProductAttention,
  scope,
  synchronize,
} from '../../packages/tensor/dist/index.js';
import { BatchNorm2d, TransformerBlock } from '../../packages/tensor/dist/nn/index.js';
import { AdamW } from '../../packages/tensor/dist/optim/index.js';
import { device, isSmall, medianOf, microseconds, mlp, rows, size } from './bench-common.mjs';

/**
 * Adds a row with the microseconds per call: the median of 20 batches of `calls`, waiting for the device after each
 * batch. `work` is what one call does, in bytes or floating-point operations; `rate` is `work` per second in `unit`,
 * TB/s or TFLOP/s. With an empty `unit` the row has no rate.
 */
function time(name, calls, unit, work, fn) {
  const batch = () => {
    const us = microseconds(() => {
      // `void`, because a tensor that the function returns to scope() would not be disposed.
      for (let i = 0; i < size(calls, 1); i++) scope(() => void fn());
      synchronize(device);
    });
    return us / calls;
  };
  batch();
  if (isSmall) return void rows.push({ name });
  const us = medianOf(20, batch);
  rows.push({ name, us, unit, rate: unit === '' ? null : work / us / 1e6 });
}

const random = (...shape) => randn(shape, { device });
/** Makes a random tensor that requires gradients. */
const leaf = (dtype, ...shape) => {
  const x = random(...shape)
    .to(dtype)
    .detach();
  x.requiresGrad = true;
  return x;
};

/** Runs backward and drops the gradients, so that the next call makes new ones. */
function backward(out, grad, leaves) {
  out.backward(grad);
  for (const x of leaves) x.zeroGrad();
}

noGrad(() => {
  const n = size(1 << 26, 1 << 10);
  const [a, b] = [random(n), random(n)];
  time('copy 64Mi float32', 10, 'TB/s', 8 * n, () => a.clone());
  time('add 64Mi float32', 10, 'TB/s', 12 * n, () => a.add(b));
  time('gelu 64Mi float32', 10, 'TB/s', 8 * n, () => a.gelu());
  time('sum 64Mi float32', 10, 'TB/s', 4 * n, () => a.sum());
  time('dropout 64Mi float32', 10, 'TB/s', 8 * n, () => dropout(a, 0.1));
  time('randn 64Mi float32', 10, 'TB/s', 4 * n, () => random(n));
  const side = size(8192, 32);
  time('transposed copy 8Ki x 8Ki float32', 10, 'TB/s', 8 * side ** 2, () =>
    a
      .narrow(0, 0, side ** 2)
      .reshape([side, side])
      .t()
      .contiguous(),
  );
  const tiny = random(4, 4);
  time('add 4 x 4 float32', 1000, '', 0, () => tiny.add(tiny));
  const m = size(4096, 64);
  const x = random(m, m);
  time('matmul 4096^3 float32', 3, 'TFLOP/s', 2 * m ** 3, () => matmul(x, x));
  for (const dtype of ['float16', 'bfloat16']) {
    const low = x.to(dtype);
    time(`matmul 4096^3 ${dtype}`, 3, 'TFLOP/s', 2 * m ** 3, () => matmul(low, low));
  }
  // The products of GPT-2's layers, qkv and the second of its MLP, for 64 Ki tokens.
  for (const [k, n] of [
    [768, 2304],
    [3072, 768],
  ]) {
    for (const dtype of ['float32', 'bfloat16']) {
      const [p, q] = [random(size(65536, 16), size(k, 16)), random(size(k, 16), size(n, 16))];
      const operands = [p.to(dtype), q.to(dtype)];
      time(`matmul 64Ki x ${k} x ${n} ${dtype}`, 3, 'TFLOP/s', 2 * 65536 * k * n, () => matmul(...operands));
    }
  }
  const [tokens, classes] = [size(8192, 8), size(4096, 64)];
  const logits = random(tokens, classes);
  time('logSoftmax 8192 x 4096 float32', 10, 'TB/s', 8 * tokens * classes, () => logits.logSoftmax(1));
});

// The sizes of one GPT-2 layer: width 768, 12 heads of 64.
const [batch, seq, width, heads] = size([16, 1024, 768, 12], [1, 16, 64, 1]);
for (const dtype of ['float32', 'bfloat16']) {
  const bytes = dtype === 'float32' ? 4 : 2;
  const [x, y] = [leaf(dtype, batch * seq, width), leaf(dtype, batch * seq, width)];
  const [weight, bias] = [leaf(dtype, width), leaf(dtype, width)];
  const elements = batch * seq * width;
  noGrad(() => {
    time(`layerNorm 16Ki x 768 ${dtype}`, 10, 'TB/s', 2 * bytes * elements, () =>
      layerNorm(x, [width], { weight, bias }),
    );
    time(`addLayerNorm 16Ki x 768 ${dtype}`, 10, 'TB/s', 4 * bytes * elements, () =>
      addLayerNorm(x, y, [width], { weight, bias }),
    );
  });
  const ones = random(batch * seq, width).to(dtype);
  time(`layerNorm 16Ki x 768 ${dtype}, both ways`, 10, 'TB/s', 5 * bytes * elements, () =>
    backward(layerNorm(x, [width], { weight, bias }), ones, [x, weight, bias]),
  );
  timeAttention(`16 x 12 x 1024 x 64 causal ${dtype}`, dtype, heads, { causal: true });
}
timeAttention('16 x 12 x 1024 x 64 causal bfloat16, dropout 0.1', 'bfloat16', heads, {
  causal: true,
  dropout: 0.1,
});
timeAttention('16 x 12 x 1024 x 64 bfloat16, an added mask', 'bfloat16', heads, {
  mask: random(seq, seq).to('bfloat16'),
});
timeAttention('16 x 3 x 1024 x 256 causal bfloat16, dropout 0.1', 'bfloat16', size(3, 1), {
  causal: true,
  dropout: 0.1,
});

/** Times attention of `heads` heads that share `width` columns, forward and both ways. */
function timeAttention(name, dtype, heads, options) {
  const shape = [batch, heads, seq, width / heads];
  const [q, k, v] = [1, 2, 3].map(() => leaf(dtype, ...shape));
  const grad = random(...shape).to(dtype);
  // The causal mask leaves half of the products.
  const flops = (options.causal ? 2 : 4) * batch * seq ** 2 * width;
  noGrad(() => {
    time(`attention ${name}`, 3, 'TFLOP/s', flops, () => scaledDotProductAttention(q, k, v, options));
  });
  time(`attention ${name}, both ways`, 3, 'TFLOP/s', 3.5 * flops, () =>
    backward(scaledDotProductAttention(q, k, v, options), grad, [q, k, v]),
  );
}

for (const dtype of ['float32', 'bfloat16']) {
  const [images, channels, high] = size([128, 64, 28], [2, 3, 4]);
  const [x, w] = [leaf(dtype, images, channels, high, high), leaf(dtype, channels, channels, 3, 3)];
  const b = leaf(dtype, channels);
  const grad = random(images, channels, high, high).to(dtype);
  const flops = 6 * x.count * channels * 9;
  time(`conv2d 128 x 64 x 28 x 28, 64 of 3 x 3, ${dtype}, both ways`, 3, 'TFLOP/s', flops, () =>
    backward(conv2d(x, w, b, { padding: 1 }), grad, [x, w, b]),
  );
}

{
  const [images, channels, high] = size([128, 64, 28], [2, 3, 4]);
  const layer = new BatchNorm2d(channels).to(device);
  const x = leaf('float32', images, channels, high, high);
  const grad = random(images, channels, high, high);
  time('batchNorm 128 x 64 x 28 x 28, both ways', 10, 'TB/s', 4 * 8 * x.count, () =>
    backward(layer.forward(x), grad, [x, ...layer.parameters()]),
  );
  const [tokens, classes] = size([8192, 50304], [4, 64]);
  const labels = randint(0, classes, [tokens], { device });
  for (const [dtype, bytes] of [
    ['float32', 4],
    ['bfloat16', 2],
  ]) {
    const logits = leaf(dtype, tokens, classes);
    time(`crossEntropy 8192 x 50304 ${dtype}, both ways`, 3, 'TB/s', 3 * bytes * tokens * classes, () =>
      backward(crossEntropy(logits, labels), undefined, [logits]),
    );
  }
  const table = leaf('float32', classes, width);
  const rowGrads = random(tokens, width);
  time('embedding 8192 of 50304 x 768 float32, both ways', 3, '', 0, () =>
    backward(indexSelect(table, 0, labels), rowGrads, [table]),
  );
  noGrad(() => {
    const scores = random(size(64, 2), classes);
    time('cumsum 64 x 50304 float32', 10, 'TB/s', 8 * scores.count, () => scores.cumsum(1));
    time('topk 50 of 64 x 50304 float32', 10, '', 0, () => scores.topk(50));
    const long = random(size(10_000_000, 100));
    time('cumsum 10M float32', 10, 'TB/s', 8 * long.count, () => long.cumsum(0));
    time('sort 10M float32', 3, '', 0, () => long.sort());
  });
  const block = new TransformerBlock(width, heads, { causal: true }).to(device);
  const hidden = leaf('float32', size(8, 1), seq, width);
  const ones = random(size(8, 1), seq, width);
  time('transformer block 8 x 1024 x 768 float32, both ways', 3, '', 0, () =>
    backward(block.forward(hidden), ones, [hidden, ...block.parameters()]),
  );
  const parameters = Array.from({ length: size(100, 2) }, () => leaf('float32', size(1 << 20, 64)));
  for (const parameter of parameters) parameter.backward(random(parameter.count));
  const optimizer = new AdamW(parameters, { lr: 1e-4 });
  time('AdamW 100Mi float32', 10, 'TB/s', 28 * parameters.length * parameters[0].count, () =>
    optimizer.step(),
  );
}

const train = await mlp();
time('MLP 784-512-512-10 step, batch 32, eager', 50, '', 0, train);
const step = compile(train, { device });
for (let i = 0; i < 3; i++) step();
time('MLP 784-512-512-10 step, batch 32, captured', 50, '', 0, step);
process.stdout.write(JSON.stringify(rows));
