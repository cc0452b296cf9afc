// What the ranks of across.test.ts run besides the cases of across-cases.ts.
import { checkpoint, ones, type Tensor, tensor } from '@ringwise/tensor';
import { type Across, across, type Group, init, mesh } from '../../src/index.ts';

async function messageOf(call: () => unknown): Promise<string> {
  try {
    await call();
    return 'no error';
  } catch (error) {
    return (error as Error).message;
  }
}

/** Runs `call` on a group of its own. Returns the message of its error. */
async function failing(group: Group, call: (verbs: Across, x: Tensor) => unknown): Promise<string> {
  const own = (await group.split(0, group.rank, { name: 'own', timeoutMs: 60_000 }))!;
  return messageOf(() => call(across(own), ones([2], { requiresGrad: true })));
}

/** The last rank does something else than the others: leaves a result out of its loss, or has no gradient. */
export async function disagreements(rank: number): Promise<string[]> {
  await using group = await init();
  const isLast = rank === group.size - 1;
  const leftOut = await failing(group, async (verbs, x) => {
    const first = await verbs.allReduce(x, { after: 'own' });
    const second = await verbs.allReduce(x, { after: 'own' });
    (isLast ? first : first.add(second)).sum().backward();
  });
  const withoutGradient = await failing(group, (verbs, x) =>
    verbs.allGather(isLast ? x.detach() : x, { after: 'own' }),
  );
  return [leftOut, withoutGradient];
}

/** Returns the gradient through a block that backward computes again, with verbs in it. */
export async function recomputed(rank: number): Promise<number[]> {
  await using group = await init();
  const verbs = across(group);
  const x = tensor([rank + 1, 2], { requiresGrad: true });
  const block = (a: Tensor): Tensor => {
    const sum = verbs.allReduceSync(a.mul(a), { after: 'same' });
    return verbs.enter(sum).mul(rank + 1);
  };
  checkpoint(block, x).sum().backward();
  return Array.from(x.grad!.dataSync() as Float32Array);
}

/** A layer on a mesh of 2 × 2: columns on one rank of `tp`, samples on one of `dp`. Returns loss and gradients. */
export async function layerOnMesh(_rank: number): Promise<{ loss: number; up: number[]; down: number[] }> {
  await using group = await init();
  const grid = await mesh(group, { dp: 2, tp: 2 });
  const [data, tp] = [across(grid.axis('dp')), across(grid.axis('tp'))];
  const { x, up, down } = parameters();
  const [rows, columns] = [grid.at.dp * 2, grid.at.tp * 3];
  const own = x.narrow(0, rows, 2);
  const myUp = up.narrow(1, columns, 3);
  const myDown = down.narrow(0, columns, 3);
  const hidden = tp.enter(own).matmul(myUp).tanh();
  const y = tp.allReduceSync(hidden.matmul(myDown), { after: 'same' });
  const loss = data.allReduceSync(y.square().mean(), { op: 'avg', after: 'same' });
  const value = loss.item();
  loss.backward();
  // Each rank has the gradients of its columns from its rows: the others are zero, so a sum over all has all.
  const grads = [up.grad!, down.grad!];
  await group.allReduce(grads);
  const [first, second] = grads.map((grad) => Array.from(grad.dataSync() as Float64Array));
  return { loss: value, up: first!, down: second! };
}

/** The operands of layerOnMesh(), the same on all ranks. */
export function parameters(): { x: Tensor; up: Tensor; down: Tensor } {
  const values = (count: number, seed: number) =>
    Float64Array.from({ length: count }, (_, i) => Math.sin(1.7 * i + seed));
  return {
    x: tensor(values(4 * 5, 0), { shape: [4, 5] }),
    up: tensor(values(5 * 6, 1), { shape: [5, 6], requiresGrad: true }),
    down: tensor(values(6 * 4, 2), { shape: [6, 4], requiresGrad: true }),
  };
}
