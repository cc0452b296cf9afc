// Trains a digit classifier on two ranks and returns what happened as numbers.
import { init } from '@ringwise/collectives';
import { loadMnist } from '@ringwise/data/idx';
import { syntheticDigits } from '@ringwise/data/synthetic';
import { assertInSync, ddp } from '@ringwise/ddp';
import { crossEntropy, fromHost, kernelsName, manualSeed, scope } from '@ringwise/tensor';
import { Linear, ReLU, Sequential } from '@ringwise/tensor/nn';
import { SGD } from '@ringwise/tensor/optim';

export interface History {
  readonly arch: string;
  readonly kernels: string;
  readonly backend: string;
  readonly losses: number[];
}

/** Trains `steps` steps with 32 digits per rank: MNIST's if `data` is its folder, else generated ones. */
export async function trainMnist(_rank: number, data: string | null, steps: number): Promise<History> {
  await using group = await init({ backend: 'host' });
  const digits = data ? await loadMnist(data, { split: 'test' }) : syntheticDigits({ count: 2_000 });
  manualSeed(1);
  const net = new Sequential(new Linear(784, 64), new ReLU(), new Linear(64, 10));
  const model = await ddp(net, { group });
  const optimizer = new SGD(net.parameters(), { lr: 0.05, momentum: 0.9 });
  const losses: number[] = [];
  for (let step = 0; step < steps; ++step) {
    const from = (step * group.size + group.rank) * 32;
    const pixels = Float32Array.from(
      digits.images.data.subarray(from * 784, (from + 32) * 784),
      (value) => value / 256,
    );
    const labels = Int32Array.from(digits.labels.data.subarray(from, from + 32));
    losses.push(
      scope(() => {
        const loss = crossEntropy(model.forward(fromHost(pixels, [32, 784])), fromHost(labels));
        optimizer.zeroGrad();
        loss.backward();
        optimizer.step();
        return loss.item();
      }),
    );
  }
  await assertInSync(net, group);
  return { arch: process.arch, kernels: kernelsName(), backend: group.backend, losses };
}
