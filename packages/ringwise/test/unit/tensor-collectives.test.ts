// Tests collectives that write into tensors. Autograd treats such a collective as an in-place operation, so that
// backward computes no gradient from values that were overwritten.
import { type BufferLike, type Group, loopbackGroups } from '@ringwise/collectives';
import { averageGradients, ddp, ZeroRedundancyOptimizer } from '@ringwise/ddp';
import { noGrad, type Tensor, tensor, zeros } from '@ringwise/tensor';
import { Linear } from '@ringwise/tensor/nn';
import { SGD } from '@ringwise/tensor/optim';
import { describe, expect, it } from 'vitest';

const ranks = <T>(body: (group: Group) => Promise<T>): Promise<T[]> =>
  Promise.all(loopbackGroups(2, { timeoutMs: 60_000 }).map(body));

const leaf = (...values: number[]): Tensor => {
  const x = tensor(values);
  x.requiresGrad = true;
  return x;
};

/** Calls that write into `x`, which has two elements on each of two ranks. */
const writes: Record<string, (group: Group, x: BufferLike) => PromiseLike<unknown>> = {
  allReduce: (g, x) => g.allReduce(x, { op: 'avg' }),
  'allReduce of a list': (g, x) => g.allReduce([x, new Float32Array(3)]),
  broadcast: (g, x) => g.broadcast(g.rank === 0 ? new Float32Array(2) : x),
  allGather: (g, x) => g.allGather(new Float32Array(1), x),
  'allGather to a list': (g, x) => g.allGather(new Float32Array(2), [x, new Float32Array(2)]),
  gather: (g, x) => g.gather(new Float32Array(1), g.rank === 1 ? x : null, { root: 1 }),
  scatter: (g, x) => g.scatter(g.rank === 0 ? new Float32Array(4) : null, x),
  reduceScatter: (g, x) => g.reduceScatter(new Float32Array(4), x),
  allToAll: (g, x) => g.allToAll(new Float32Array(2), x),
  recv: (g, x) => (g.rank === 0 ? g.send(new Float32Array(2), 1) : g.recv(x, 0)),
  'a reproducible sum': (g, x) => g.allReduce(x, { reproducible: true }),
};
/** Calls in which rank 0 does not write into `x`. */
const onlyRank1 = ['broadcast', 'gather', 'recv'];

describe('a collective that writes into a tensor', () => {
  it.each(Object.keys(writes))('keeps backward from values that %s has overwritten', async (name) => {
    const told = await ranks(async (group) => {
      const [x, w] = [tensor([1, 2]), leaf(3, 4)];
      const y = x.mul(w).sum(); // saves x for the gradient of w
      await writes[name]!(group, x);
      return [group.rank, errorOf(() => y.backward())] as const;
    });
    for (const [rank, error] of told) {
      if (rank === 0 && onlyRank1.includes(name)) expect(error).toBeNull();
      else expect(error).toContain("a value that 'mul' saved was changed in place afterwards");
    }
  });

  it.each(Object.keys(writes))(
    'refuses a parameter as the result of %s, and names what is right',
    async (name) => {
      const [, group] = loopbackGroups(2);
      const w = leaf(3, 4);
      await expect(writes[name]!(group!, w)).rejects.toMatchObject({
        code: 'ERR_COLL_INVALID',
        message: expect.stringMatching(/the tensor requires a gradient.*noGrad\(\(\) => ….*ddp\(\)/),
      });
      expect(w.toArray()).toEqual([3, 4]);
      w.mul(w).sum().backward(); // the refused call counts as no change of w
      expect(group!.failure).toBeNull();
    },
  );

  it.each(Object.keys(writes))('refuses a tensor with a tape as the result of %s', async (name) => {
    const [, group] = loopbackGroups(2);
    const w = leaf(3, 4);
    const y = w.mul(w);
    await expect(writes[name]!(group!, y)).rejects.toMatchObject({
      code: 'ERR_COLL_INVALID',
      message: expect.stringMatching(/operations made the tensor.*detach\(\)\.clone\(\).*ddp\(\)/),
    });
    y.sum().backward();
    expect(w.grad!.toArray()).toEqual([6, 8]);
  });

  it('sets parameters inside noGrad, also of an async function', async () => {
    const values = await ranks(async (group) => {
      const [a, b] = [leaf(group.rank, 1), leaf(group.rank, 2)];
      await noGrad(() => group.broadcast(a, { root: 1 }));
      await noGrad(async () => {
        await group.allReduce(b, { op: 'avg' });
      });
      a.mul(b).sum().backward();
      return [a.toArray(), b.toArray(), a.grad!.toArray()];
    });
    for (const each of values)
      expect(each).toEqual([
        [1, 1],
        [0.5, 2],
        [0.5, 2],
      ]);
  });

  it('averages a copy of what was computed, and gradients', async () => {
    const values = await ranks(async (group) => {
      const w = leaf(group.rank + 1, 0);
      const y = w.mul(w).sum();
      const shown = y.detach().clone();
      await group.allReduce(shown, { op: 'avg' });
      y.backward();
      await group.allReduce(w.grad!, { op: 'avg' });
      return [shown.item(), w.grad!.toArray()];
    });
    for (const each of values) expect(each).toEqual([2.5, [3, 0]]);
  });

  it('reads a parameter as it is', async () => {
    const values = await ranks(async (group) => {
      const w = leaf(group.rank, 7);
      const all = zeros([4]);
      await group.allGather(w, all);
      if (group.rank === 0) await group.send(w, 1);
      else await group.recv(zeros([2]), 0);
      w.sum().backward();
      return all.toArray();
    });
    for (const each of values) expect(each).toEqual([0, 7, 1, 7]);
  });

  it('sees through views: what is written through one is changed in the others', async () => {
    const [group] = loopbackGroups(1);
    const w = leaf(1, 2, 3, 4);
    const y = w.mul(w).sum();
    await group!.allReduce(w.detach().narrow(0, 0, 2));
    expect(errorOf(() => y.backward())).toContain("'mul' saved was changed in place");
  });

  it('leaves what ddp(), the sharded optimiser and averageGradients() do on purpose', async () => {
    const values = await ranks(async (group) => {
      const net = new Linear(2, 1);
      const model = await ddp(net, { group }); // broadcasts rank 0's parameters to all ranks
      const optimizer = new ZeroRedundancyOptimizer(
        net.parameters(),
        group,
        (shard) => new SGD(shard, { lr: 0.1 }),
      );
      model
        .forward(tensor([[1, group.rank]]))
        .sum()
        .backward();
      await model.finish();
      await optimizer.stepAsync();
      await averageGradients(
        net.parameters().map((param) => param.grad!),
        group,
      );
      const refused = averageGradients([leaf(1), leaf(2)], group);
      await expect(refused).rejects.toMatchObject({
        code: 'ERR_DDP_INVALID',
        message: expect.stringContaining('noGrad'),
      });
      return net.parameters().map((param) => param.toArray());
    });
    expect(values[0]).toEqual(values[1]);
  });

  it('keeps backward from parameters that others have stepped meanwhile', async () => {
    await ranks(async (group) => {
      const net = new Linear(2, 1);
      await ddp(net, { group });
      const optimizer = new ZeroRedundancyOptimizer(
        net.parameters(),
        group,
        (shard) => new SGD(shard, { lr: 0.1 }),
      );
      const x = leaf(1, 2);
      const y = net.forward(x.reshape([1, 2])).sum();
      await optimizer.stepAsync(); // writes the weights that the gradient of x needs
      expect(errorOf(() => y.backward())).toContain('saved was changed in place');
    });
  });
});

function errorOf(call: () => void): string | null {
  try {
    call();
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}
