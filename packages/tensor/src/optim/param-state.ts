// What an optimiser remembers of one parameter: how often it was changed, and tensors in its shape and dtype. They
// belong to no scope.
import { kernels } from '../backends/index.ts';
import { allocate } from '../core/storage.ts';
import { Tensor } from '../core/tensor.ts';
import { copyInto } from '../core/transfer.ts';

export class ParamState {
  steps = 0;
  readonly tensors = new Map<string, Tensor>();

  /** The tensor of this name; zeros when it is asked for the first time. Follows the parameter to another dtype
   *  or device. */
  tensor(name: string, param: Tensor): Tensor {
    let tensor = this.tensors.get(name);
    if (tensor === undefined) {
      tensor = new Tensor(allocate(param.dtype, param.count, param.device), param.shape);
      kernels().copy(param.shape, tensor.strided, 0);
      this.tensors.set(name, tensor);
    }
    tensor.convert(param.dtype, param.device);
    return tensor;
  }

  /** Takes over what was saved, and forgets the rest. */
  load(
    param: Tensor,
    steps: number,
    saved: (name: string) => Tensor | undefined,
    names: readonly string[],
  ): void {
    this.steps = steps;
    for (const name of new Set([...this.tensors.keys(), ...names])) {
      const from = saved(name);
      if (from !== undefined) copyInto(this.tensor(name, param).strided, param.shape, from.strided);
      else {
        this.tensors.get(name)?.dispose();
        this.tensors.delete(name);
      }
    }
  }
}
