// Tests state without gradients: all ranks get that of rank 0 at the start and after every averaged backward.
import { expect, it } from 'vitest';
import { buffersSymbol, ddp, type GradParamSource, gradParamsSymbol } from '../../../src/index.ts';
import { onRanks, reasons, values } from '../../support/ranks.ts';
import { TinyMlp } from '../../support/tiny-mlp.ts';

function withState(net: TinyMlp, running: Float32Array, name = 'running'): GradParamSource {
  const device = { kind: 'cpu', index: 0 } as const;
  const value = { dtype: 'float32', count: running.length, device, host: running, handle: null } as const;
  return {
    [gradParamsSymbol]: () => net[gradParamsSymbol](),
    [buffersSymbol]: () => [{ name, value }],
  };
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
