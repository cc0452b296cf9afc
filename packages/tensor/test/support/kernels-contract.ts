// The contract that every kernel set must pass. It compares each kernel with a plain implementation in float64, in
// kernels-oracle.ts or beside the cases (contract/). The test file of a kernel set calls kernelsContract().
import { beforeAll, describe } from 'vitest';
import type { Kernels } from '../../src/backends/kernels.ts';
import type { Device } from '../../src/device/device.ts';
import { attentionContract } from './contract/attention.ts';
import { crossEntropyContract } from './contract/cross-entropy.ts';
import { elementwiseContract } from './contract/elementwise.ts';
import { groupNormContract } from './contract/group-norm.ts';
import { layerContract } from './contract/layers.ts';
import { linearContract } from './contract/linear.ts';
import { lstmContract } from './contract/lstm.ts';
import { matrixContract } from './contract/matrices.ts';
import { memoryContract } from './contract/memory.ts';
import { normContract } from './contract/norm.ts';
import { optimizerContract } from './contract/optimizer.ts';
import { orderContract } from './contract/order.ts';
import { randomContract } from './contract/random.ts';
import { reduceContract } from './contract/reduce.ts';
import { Workbench } from './contract/workbench.ts';

/** Registers the suite; `load` is called once, inside it. All memory lies on `device`. */
export function kernelsContract(name: string, load: () => Kernels, device: Device = 'cpu'): void {
  describe(`${name} kernels`, () => {
    const bench = new Workbench(device);
    beforeAll(() => {
      bench.kernels = load();
    });
    for (const contract of [
      memoryContract,
      elementwiseContract,
      reduceContract,
      matrixContract,
      crossEntropyContract,
      linearContract,
      layerContract,
      orderContract,
      optimizerContract,
      normContract,
      groupNormContract,
      lstmContract,
      randomContract,
      attentionContract,
    ]) {
      contract(bench);
    }
  });
}
