// Measures what an eager operation costs besides its kernel: runs ops on 4 × 4 tensors, where the kernel
// itself takes a few ns.
//
//   npx tsx bench/op-cost.ts [--seconds 0.5] [--only neg,add]
//
// Prints one JSON line per op, in nanoseconds: `plain` without gradients; `recorded` with an input that
// requires a gradient, where the graph is made and dropped; `backward` for the gradient alone. Each is the
// median of rounds of 2,000 calls, measured for --seconds. The result of every op is disposed.
import { parseArgs } from 'node:util';
import { add, fromHost, kernelsName, linear, matmul, sum, type Tensor } from '@ringwise/tensor';
import { median } from './median.ts';

const { values } = parseArgs({
  options: { seconds: { type: 'string', default: '0.5' }, only: { type: 'string', default: '' } },
});
const measuringUs = Number(values.seconds) * 1e6;
const only = values.only.split(',').filter((name) => name !== '');

const square = (): Tensor =>
  fromHost(
    Float32Array.from({ length: 16 }, (_, i) => i / 8 - 0.9),
    [4, 4],
  );
const row = (): Tensor => fromHost(Float32Array.of(1, 2, 3, 4), [4]);
const b = square();
const bias = row();

const ops: Readonly<Record<string, (a: Tensor) => Tensor>> = {
  neg: (a) => a.neg(),
  relu: (a) => a.relu(),
  add: (a) => add(a, b),
  mul: (a) => a.mul(b),
  'add number': (a) => a.add(2),
  'add row': (a) => a.add(bias),
  matmul: (a) => matmul(a, b),
  linear: (a) => linear(a, b, bias),
  sum: (a) => sum(a),
  softmax: (a) => a.softmax(),
  reshape: (a) => a.reshape([2, 8]),
  transpose: (a) => a.transpose(0, 1),
  slice: (a) => a.narrow(0, 1, 2),
};

const nowNs = (): number => Number(process.hrtime.bigint());
const calls = 2000;

/** Returns the median ns of one call over rounds that take `measuringUs` together; the first third only warms up. */
function measure(call: () => void): number {
  const times: number[] = [];
  for (const end = nowNs() + measuringUs * 1000; times.length < 9 || nowNs() < end; ) {
    const start = nowNs();
    for (let i = 0; i < calls; i++) call();
    times.push((nowNs() - start) / calls);
  }
  return Math.round(median(times.slice(Math.floor(times.length / 3))));
}

function disposeOutput(out: Tensor, a: Tensor): void {
  if (out !== a) out.dispose();
}

console.log(JSON.stringify({ bench: 'op-cost', kernels: kernelsName(), node: process.version }));
for (const [name, op] of Object.entries(ops)) {
  if (only.length > 0 && !only.includes(name)) continue;
  const data = square();
  const plain = measure(() => disposeOutput(op(data), data));
  const leaf = square();
  leaf.requiresGrad = true;
  const recorded = measure(() => disposeOutput(op(leaf), leaf));
  const shape = op(data).shape;
  const grad = fromHost(new Float32Array(shape.reduce((x, y) => x * y, 1)).fill(1), [...shape]);
  const both = measure(() => {
    const out = op(leaf);
    out.backward(grad);
    disposeOutput(out, leaf);
  });
  console.log(JSON.stringify({ op: name, plain, recorded, backward: both - recorded }));
}
