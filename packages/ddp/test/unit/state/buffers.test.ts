// Tests state without gradients: all ranks get that of rank 0 at the start and after every averaged backward.
import { expect, it } from 'vitest';
import {
  buffersSymbol,
  ddp,
  type GradParamSource,
  gradParamsSymbol,
  type StateBuffer,
} from '../../../src/index.ts';
import { onRanks, reasons, values } from '../../support/ranks.ts';
import { TinyMlp } from '../../support/tiny-mlp.ts';

function withState(net: TinyMlp, running: Float32Array, name = 'running'): GradParamSource {
  return {
    [gradParamsSymbol]: () => net[gradParamsSymbol](),
    [buffersSymbol]: () => buffersOf(running, name),
  };
}

function buffersOf(host: Float32Array, name: string): StateBuffer[] {
  const device = { kind: 'cpu', index: 0 } as const;
  return [{ name, value: { dtype: 'float32', count: host.length, device, host, handle: null } }];
}

const run = (broadcastBuffers: boolean) =>
  onRanks(3, async (group) => {
    const net = new TinyMlp(1);
    const running = Float32Array.of(group.rank + 1, 7);
    const model = await ddp(withState(net, running), { group, broadcastBuffers });
    const start = [...running];
    const step = async () => {
      running[0]! += group.rank + 1;
      net.loss(group.rank, 1);
      net.autograd.backward();
      await model.finish();
      return running[0];
    };
    return [start, await step(), model.noSync(() => (running[0]! += group.rank)), await step()];
  });

it('gives all ranks the state of rank 0, but not inside noSync', async () => {
  expect(values(await run(true))).toEqual([
    [[1, 7], 2, 2, 3],
    [[1, 7], 2, 3, 3],
    [[1, 7], 2, 4, 3],
  ]);
});

it('leaves it alone after the start with broadcastBuffers: false', async () => {
  expect(values(await run(false)).map(([start, first]) => [start, first])).toEqual([
    [[1, 7], 2],
    [[1, 7], 3],
    [[1, 7], 4],
  ]);
});

it('names the first state that differs between ranks', async () => {
  const outcomes = await onRanks(2, async (group) => {
    await ddp(withState(new TinyMlp(1), new Float32Array(2 + group.rank)), { group });
  });
  for (const error of reasons(outcomes)) {
    expect(error).toMatchObject({ code: 'ERR_DDP_MISMATCH', params: ['running'] });
    expect(error.message).toContain('rank 0 has "running" [float32 × 2]; rank 1 has "running" [float32 × 3]');
  }
});

it('broadcasts buffers that share memory', async () => {
  const outcomes = await onRanks(2, async (group) => {
    const net = new TinyMlp(1);
    const memory = Float32Array.of(1, 2, 3).map((value) => value + group.rank);
    const views = { head: memory.subarray(0, 2), whole: memory, tail: memory.subarray(1) };
    const source = {
      [gradParamsSymbol]: () => net[gradParamsSymbol](),
      [buffersSymbol]: () => Object.entries(views).flatMap(([name, view]) => buffersOf(view, name)),
    };
    const model = await ddp(source, { group });
    const start = [...memory];
    for (const i of memory.keys()) memory[i]! += 10 * (group.rank + 1);
    net.loss(group.rank, 1);
    net.autograd.backward();
    await model.finish();
    return [start, [...memory]];
  });
  expect(values(outcomes)).toEqual(
    Array(2).fill([
      [1, 2, 3],
      [11, 12, 13],
    ]),
  );
});
