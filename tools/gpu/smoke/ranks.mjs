// The functions that the ranks of facts.mjs run, each in a process of its own. All ranks share one GPU, or have a
// software device each.
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { testDeviceOf, useTestDevice } from '@ringwise/testing';

useTestDevice();
const { init } = await import('@ringwise/collectives');
const { convertSyncBatchNorm, ddp } = await import('@ringwise/ddp');
const { TcpStore } = await import('@ringwise/store');
const { compile, crossEntropy, emptyCache, fromHost, manualSeed, matmul, ones, scope, synchronize } =
  await import('@ringwise/tensor');
const { BatchNorm1d, Linear, ReLU, Sequential } = await import('@ringwise/tensor/nn');
const { SGD } = await import('@ringwise/tensor/optim');

/**
 * Returns memory to the driver while an all-reduce of rank 0 waits for rank 1, which comes `lateMs` late. Returns the
 * milliseconds that this takes: the driver may let it wait for the all-reduce.
 */
async function emptyBesideCollective(rank, group, x, lateMs) {
  ones([1 << 23], { device: x.device }).dispose();
  synchronize(x.device);
  if (rank === 1) await sleep(lateMs);
  const work = group.allReduce(x, { op: 'avg' });
  const startMs = performance.now();
  emptyCache();
  const tookMs = performance.now() - startMs;
  await work;
  return tookMs;
}

/**
 * Reduces `count` floats over and over until the parent kills rank 1. Returns the sum of the first all-reduce, the time
 * per all-reduce in µs, that of emptyBesideCollective() in ms, and code, message and time of the error that ends the
 * loop.
 */
export async function reduceUntilKilled(rank, port, count, lateMs) {
  const device = `cuda:${testDeviceOf(rank)}`;
  const control = await TcpStore.connect({ host: '127.0.0.1', port });
  const group = await init({ backend: 'nccl', timeoutMs: 20_000 });
  const one = ones([4], { device }).mul(rank + 1);
  await group.allReduce(one);
  const sum = one.dataSync()[0];
  const x = ones([count], { device });
  await group.allReduce(x, { op: 'avg' });
  const startMs = performance.now();
  for (let i = 0; i < 20; i++) await group.allReduce(x, { op: 'avg' });
  const us = ((performance.now() - startMs) * 1000) / 20;
  const emptiedMs = await emptyBesideCollective(rank, group, x, lateMs);
  await control.set(`running ${rank}`, '1');
  try {
    for (;;) await group.allReduce(x, { op: 'avg' });
  } catch ({ code, message }) {
    const endedAtMs = Date.now();
    await group.close().catch(() => {});
    await control.close();
    return { sum, us, emptiedMs, code, message, endedAtMs };
  }
}

/**
 * Puts about `ms` of work on the current stream, without waiting for it. Both ranks put the same work there, measured
 * while both run, because ranks that share a GPU would otherwise end their work at different times.
 */
async function queue(ms, device, group) {
  const x = ones([ms > 1000 ? 8192 : 256, ms > 1000 ? 8192 : 256], { device });
  const run = () => scope(() => void matmul(x, x));
  const measured = 4;
  run();
  synchronize(device);
  await group.barrier();
  const startMs = performance.now();
  for (let i = 0; i < measured; i++) run();
  synchronize(device);
  const onceMs = Float64Array.of((performance.now() - startMs) / measured);
  await group.allReduce(onceMs, { op: 'max' });
  for (let left = ms; left > 0; left -= onceMs[0]) run();
}

/**
 * Trains a small network with batch norm over both ranks: `steps` eager steps, then as many with a captured step, from
 * the same parameters. `queuedMs`: work that is on the device's stream before the first step.
 */
export async function train(rank, steps, { timeoutMs = 60_000, queuedMs = 0 }) {
  const device = `cuda:${testDeviceOf(rank)}`;
  const group = await init({ backend: 'nccl', timeoutMs });
  const batches = Array.from({ length: 8 }, (_, i) => [
    fromHost(
      Float32Array.from({ length: 16 * 20 }, (_, j) => Math.sin(0.7 * j + 3 * i + rank)),
      [16, 20],
    ),
    fromHost(Int32Array.from({ length: 16 }, (_, j) => (j + i + rank) % 4)),
  ]);
  const run = async (isCaptured) => {
    manualSeed(0);
    const net = new Sequential(new Linear(20, 32), new BatchNorm1d(32), new ReLU(), new Linear(32, 4)).to(
      device,
    );
    await convertSyncBatchNorm(net, group);
    const model = await ddp(net, { group });
    const optimizer = new SGD(net.parameters(), { lr: 0.01 });
    const body = (x, y) => {
      optimizer.zeroGrad();
      crossEntropy(model.forward(x), y).backward();
      optimizer.step();
    };
    const step = isCaptured ? compile(body, { device }) : body;
    if (queuedMs > 0) await queue(queuedMs, device, group);
    const startMs = performance.now();
    for (let i = 0; i < steps; i++) {
      const [x, y] = batches[i % batches.length];
      scope(() => void step(x.to(device), y.to(device)));
    }
    synchronize(device);
    const ms = (performance.now() - startMs) / steps;
    const state = net.parameters().flatMap((p) => Array.from(p.dataSync()));
    model.close();
    return { state, ms, isCaptured: isCaptured && step.isCaptured };
  };
  const eager = await run(false);
  const captured = await run(true);
  await group.close();
  return {
    eager: eager.state,
    captured: captured.state,
    eagerMs: eager.ms,
    capturedMs: captured.ms,
    isCaptured: captured.isCaptured,
  };
}
