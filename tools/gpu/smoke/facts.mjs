// Checks one of the facts that matter most about CUDA on this machine, on the GPU or the software device:
//   node --import ./packages/testing/loader/register.mjs tools/gpu/smoke/facts.mjs NAME [--small]
// Prints what was measured, in one line. The exit code is 1 if the check fails. --small: sizes for the software device.
import { performance } from 'node:perf_hooks';
import { useTestDevice, values } from '@ringwise/testing';

useTestDevice();
const { compile, cudaInfo, layerNorm, matmul, memory, noGrad, ones, randn, scope, sum, synchronize, zeros } =
  await import('@ringwise/tensor');
const { startRanks } = await import('@ringwise/testing');
const { serveStore, TcpStore } = await import('@ringwise/store');

const [name] = process.argv.slice(2);
const isSmall = process.argv.includes('--small');
const device = 'cuda';
const ranks = new URL('./ranks.mjs', import.meta.url);
const mib = (bytes) => `${(bytes / 2 ** 20).toFixed(1)} MiB`;

/** Times one kernel of each kind: bytes or multiply-adds per second, which the decisions compare with the roofline. */
function rates() {
  const n = isSmall ? 1 << 10 : 1 << 26;
  const side = isSmall ? 64 : 4096;
  const wide = randn([n], { device });
  const rows = randn([n / 1024, 1024], { device });
  const square = randn([side, side], { device });
  const [halves, low] = [rows.to('bfloat16'), square.to('bfloat16')];
  const byBytes = (bytes, run) => [run, bytes / 1e12, 'TB/s'];
  const byProducts = (run) => [run, (2 * side ** 3) / 1e12, 'TFLOP/s'];
  const cases = {
    copy: byBytes(8 * n, () => wide.clone()),
    'gelu bfloat16': byBytes(4 * n, () => halves.gelu()),
    'sum over rows': byBytes(4 * n, () => sum(rows, 1)),
    'sum over columns bfloat16': byBytes(2 * n, () => sum(halves, 0)),
    'layerNorm bfloat16': byBytes(4 * n, () => layerNorm(halves, [1024])),
    'matmul bfloat16': byProducts(() => matmul(low, low)),
    'matmul float32': byProducts(() => matmul(square, square)),
  };
  const count = isSmall ? 1 : 10;
  const found = Object.entries(cases).map(([name, [run, work, unit]]) => {
    const once = () => {
      const startMs = performance.now();
      for (let i = 0; i < count; i++) scope(() => void run());
      synchronize(device);
      return (performance.now() - startMs) / 1000 / count;
    };
    once();
    return `${name} ${(work / Math.min(once(), once(), once())).toPrecision(3)} ${unit}`;
  });
  return {
    isGood: true,
    found: isSmall ? `${found.length} kernels ran; small sizes, no figures` : found.join(', '),
  };
}

/**
 * Launches a captured step very often, each time with new input from the host, and reads nothing back until the end.
 */
async function launches() {
  const [count, elements] = isSmall ? [60, 1 << 16] : [3000, 2_500_000];
  const weight = randn([elements], { device });
  const total = zeros([1], { device });
  const step = compile((x) => void total.add_(x.mul(weight).sum().reshape([1])), { device });
  const inputs = [ones([elements]), ones([elements]).mul(2), ones([elements]).mul(3)];
  const want = inputs.map((x) => x.to(device).mul(weight).sum().item());
  let mostPinned = 0;
  synchronize(device);
  const startMs = performance.now();
  for (let i = 0; i < count; i++) {
    scope(() => step(inputs[i % 3].to(device, { nonBlocking: true })));
    mostPinned = Math.max(mostPinned, memory(device).pinnedBytes);
  }
  const enqueuedMs = performance.now() - startMs;
  synchronize(device);
  const endedMs = performance.now() - startMs;
  let expected = 0;
  for (let i = 0; i < count; i++) expected += want[i % 3];
  const got = total.item();
  const error = Math.abs(got - expected) / Math.max(1, Math.abs(expected));
  return {
    isGood: step.isCaptured && error < 1e-2 && mostPinned < 2 ** 30,
    found:
      `${count} launches with ${mib(4 * elements)} each: ${((enqueuedMs * 1000) / count).toFixed(1)} µs to enqueue, ` +
      `${((endedMs * 1000) / count).toFixed(1)} µs to run, at most ${mib(mostPinned)} pinned, ` +
      `relative difference from eager ${error.toExponential(1)}`,
  };
}

/**
 * Reduces among two ranks, measures whether memory can be freed beside a collective that waits, and kills one rank
 * while its kernel runs. The other must notice within 2 s.
 */
async function nccl() {
  const server = await serveStore();
  const control = await TcpStore.connect({ host: '127.0.0.1', port: server.port });
  const lateMs = 500;
  const started = await startRanks(2, ranks, 'reduceUntilKilled', {
    args: [server.port, isSmall ? 1 << 16 : 1 << 24, lateMs],
    timeoutMs: 60_000,
  });
  await control.wait(['running 0', 'running 1'], { timeoutMs: 50_000 });
  const killedAtMs = Date.now();
  started.kill(1);
  const [survivor] = await started.results;
  await control.close();
  await server.close();
  if (!('value' in survivor)) return { isGood: false, found: JSON.stringify(survivor) };
  const { sum: first, us, emptiedMs, code, endedAtMs, message } = survivor.value;
  const tookMs = endedAtMs - killedAtMs;
  return {
    isGood: first === 3 && code === 'ERR_COLL_PEER_LOST' && tookMs < 2000,
    found:
      `1 + 2 = ${first}; ${us.toFixed(0)} µs per all-reduce; emptyCache() beside one that waits for its peer for ` +
      `${lateMs} ms takes ${emptiedMs.toFixed(0)} ms; killed rank noticed after ${tookMs} ms: ${message}`,
  };
}

/**
 * Trains with DDP and SyncBatchNorm on two ranks, eagerly and captured. Compares the eager results of the ranks, and on
 * rank 0 the eager with the captured ones.
 */
const training = (options) => async () => {
  const steps = isSmall ? 20 : 500;
  const started = await startRanks(2, ranks, 'train', { args: [steps, options], timeoutMs: 110_000 });
  const [a, b] = values(await started.results);
  const areEqual = JSON.stringify(a.eager) === JSON.stringify(b.eager);
  const difference = Math.max(...a.eager.map((value, i) => Math.abs(value - a.captured[i])));
  return {
    isGood: areEqual && difference < 1e-3 && a.isCaptured,
    found:
      `${steps} steps: ${a.eagerMs.toFixed(2)} ms eager, ${a.capturedMs.toFixed(2)} ms captured (${a.isCaptured ? '' : 'not '}captured); ` +
      `ranks ${areEqual ? 'equal' : 'DIFFER'}; eager and captured differ by ${difference.toExponential(1)}`,
  };
};

/** Captures a step while the device is almost full. It must throw an error of memory and leave the device usable. */
async function full() {
  const part = Math.floor(cudaInfo().devices[0].memoryBytes / 64);
  const held = [];
  const step = compile((x) => matmul(x, x), { device, warmUps: 1 });
  const side = Math.floor(Math.sqrt(part / 4));
  const x = ones([side, side], { device });
  let text = 'no error';
  try {
    for (;;) held.push(zeros([Math.floor(part / 4)], { device }));
  } catch (error) {
    text = error.code;
  }
  let refusal = 'none';
  try {
    for (let i = 0; i < 3; i++) scope(() => step(x));
  } catch (error) {
    refusal = `${error.code}: ${error.message}`;
  }
  const parts = held.length;
  for (const tensor of held) tensor.dispose();
  const again = compile((y) => sum(matmul(y, y)), { device, warmUps: 1 });
  let right = true;
  for (let i = 0; i < 3; i++) scope(() => (right &&= again(ones([64, 64], { device })).item() === 64 ** 3));
  return {
    isGood: text === 'ERR_TENSOR_MEMORY' && refusal.startsWith('ERR_TENSOR_MEMORY') && right,
    found: `${parts} tensors of ${mib(part)} fit (then ${text}); the step: ${refusal}; a later step is ${right ? 'right' : 'WRONG'}`,
  };
}

const facts = {
  rates: () => noGrad(rates),
  launches,
  nccl,
  training: training({}),
  // The work that is queued before the first step takes longer than the deadline. The deadline must not count it.
  queued: training({ timeoutMs: 3000, queuedMs: isSmall ? 300 : 10_000 }),
  full,
};
if (!Object.hasOwn(facts, name)) {
  process.stderr.write(`facts.mjs: there is no fact '${name}'; there are ${Object.keys(facts).join(', ')}\n`);
  process.exit(2);
}
let result;
try {
  result = await facts[name]();
} catch (error) {
  result = { isGood: false, found: String(error.stack ?? error) };
}
process.stdout.write(`${result.found.replaceAll('\n', ' / ')}\n`);
process.exit(result.isGood ? 0 : 1);
