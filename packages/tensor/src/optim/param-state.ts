// An optimiser's state of one parameter: the number of steps, and tensors with its shape and dtype, which
// belong to no scope.
import { kernels } from '../backends/index.ts';
import { allocate } from '../core/storage.ts';
import { Tensor } from '../core/tensor.ts';
import { copyInto } from '../core/transfer.ts';

export class ParamState {
  steps = 0;
  readonly tensors = new Map<string, Tensor>();

  /**
   * Returns the tensor of this name, which is made with zeros at the first call. Converts it if the parameter
   * has another dtype or device now.
   */
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

  /** Copies the saved tensors and drops all others. */
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
