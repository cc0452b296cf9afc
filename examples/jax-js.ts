// Makes jax-js, an autograd that we did not write and that knows nothing of ringwise, data-parallel. The adapter is the
// functions `over`, `broadcast` and `averaged`.
//
//   npx ringwise run --nproc-per-node 2 examples/jax-js.ts
//
// Claim: all ranks end with the same bits, and with the parameters of one process that trains on the joined batches.
import { defaultDevice, init as initJax, numpy as np, tree, valueAndGrad } from '@jax-js/jax';
import { type Group, init } from '@ringwise/collectives';
import { averageGradients } from '@ringwise/ddp';
import { reportMetrics } from '@ringwise/launch';
import { readOptions } from './options.ts';

readOptions(import.meta.url, {});

type Params = { readonly w1: np.Array; readonly b1: np.Array; readonly w2: np.Array };
type Loss = (params: Params, x: np.Array, y: np.Array) => np.Array;

/** Copies arrays into typed arrays, runs `communicate` on these, and returns new arrays. Frees the old ones. */
async function over(
  params: Params,
  communicate: (host: Float32Array[]) => PromiseLike<void>,
): Promise<Params> {
  const [leaves, structure] = tree.flatten<np.Array>(params);
  const host = await Promise.all(leaves.map((leaf) => leaf.ref.data() as Promise<Float32Array>));
  await communicate(host);
  const changed = leaves.map(({ shape }, i) =>
    np.array(host[i]! as Float32Array<ArrayBuffer>).reshape(shape),
  );
  tree.dispose(params);
  return tree.unflatten(structure, changed) as Params;
}

/** Returns rank 0's parameters on all ranks. Collective. */
const broadcast = (params: Params, group: Group) => over(params, (host) => group.broadcast(host));

/** Returns a function for the loss and its gradients, which are averages over all ranks. Its calls are collective. */
function averaged(loss: Loss, group: Group) {
  const differentiate = valueAndGrad(loss);
  return async (params: Params, x: np.Array, y: np.Array): Promise<[np.Array, Params]> => {
    const [value, gradients] = differentiate(params, x, y) as [np.Array, Params];
    return [value, await over(gradients, (host) => averageGradients(host, group))];
  };
}

const batch = 24; // samples per step, of all ranks together
const hidden = 8;
const wave = (count: number, phase: number) =>
  Float32Array.from({ length: count }, (_, i) => Math.sin(i * i + phase));

function meanSquare({ w1, b1, w2 }: Params, x: np.Array, y: np.Array): np.Array {
  const out = np.matmul(np.tanh(np.matmul(x, w1).add(b1)), w2);
  return np.mean(np.square(out.sub(y)));
}

async function train(group: Group, seed: number): Promise<{ params: Float32Array[]; losses: number[] }> {
  const start = {
    w1: np.array(wave(2 * hidden, seed)).reshape([2, hidden]),
    b1: np.array(wave(hidden, seed + 1)),
    w2: np.array(wave(hidden, seed + 2)).reshape([hidden, 1]),
  };
  let params = await broadcast(start, group);
  const lossAndGradients = averaged(meanSquare, group);
  const losses: number[] = [];
  const share = batch / group.size;
  for (let step = 0; step < 60; step++) {
    const points = wave(2 * batch, step % 5);
    const mine = points.subarray(2 * share * group.rank, 2 * share * (group.rank + 1));
    const products = Float32Array.from({ length: share }, (_, i) => mine[2 * i]! * mine[2 * i + 1]!);
    const [x, y] = [np.array(mine.slice()).reshape([share, 2]), np.array(products).reshape([share, 1])];
    const [loss, gradients] = await lossAndGradients(tree.ref(params), x, y);
    params = tree.map(
      (param: np.Array, gradient: np.Array) => param.sub(gradient.mul(0.3)),
      params,
      gradients,
    );
    losses.push(loss.js() as number);
    reportMetrics({ loss: losses.at(-1)!, samples: share });
  }
  const leaves = tree.leaves<np.Array>(params);
  return { params: await Promise.all(leaves.map((leaf) => leaf.data() as Promise<Float32Array>)), losses };
}

await initJax('wasm');
defaultDevice('wasm');
const group = await init();
const together = await train(group, group.rank); // ranks start apart, and get rank 0's parameters
const all = await group.allGatherObject(together.params);
if (JSON.stringify(all) !== JSON.stringify(all.map(() => all[0]))) throw new Error('ranks differ');
const self = (await group.split(group.rank))!; // a group of one
const alone = await train(self, 0);
const difference = Math.max(
  ...together.params.flatMap((each, i) =>
    [...each].map((value, k) => Math.abs(value - alone.params[i]![k]!)),
  ),
);
if (!(difference < 1e-5)) throw new Error(`off by ${difference}`);
if (!(alone.losses.at(-1)! < alone.losses[0]! / 4)) throw new Error(`not learned: ${alone.losses.join(' ')}`);
if (group.rank === 0) console.log(`${group.size} ranks: the same bits on all, off by less than 1e-5`);
await self.close();
await group.close();
