// An optimiser's state of one parameter: the number of steps, and tensors with its shape and dtype, which
// belong to no scope.
import { kernels } from '../backends/index.ts';
import { allocate } from '../core/memory/storage.ts';
import { copyInto } from '../core/memory/transfer.ts';
import { Tensor } from '../core/tensor.ts';
import { capturing } from '../device/capture.ts';
import { stateOutsideStep } from '../errors.ts';

export class ParamState {
  steps = 0;
  readonly tensors = new Map<string, Tensor>();

  /**
   * Returns the tensor of this name, which is made with zeros at the first call. Converts it if the parameter
   * has another dtype or device now. While a step is captured, throws ERR_TENSOR_CAPTURE instead of either: each run
   * of the step would make or convert the tensor again, so that no run saw the state of the run before.
   */
  tensor(name: string, param: Tensor): Tensor {
    let tensor = this.tensors.get(name);
    const isFitting = tensor?.dtype === param.dtype && tensor.device === param.device;
    if (capturing() !== null && !isFitting) throw stateOutsideStep(name, param.shape);
    if (tensor === undefined) {
      tensor = new Tensor(allocate(param.dtype, param.count, param.device), param.shape);
      kernels().copy(param.shape, tensor.strided, 0);
      this.tensors.set(name, tensor);
    }
    tensor.convert(param.dtype, param.device);
    return tensor;
  }

  /**
   * Sets the step count and copies the tensors that `saved` returns. Of the others, those in `names` become zero: they
   * are kept because captured steps go on with their memory. The rest is dropped.
   */
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
      else if (names.includes(name)) {
        const tensor = this.tensors.get(name);
        if (tensor !== undefined) kernels().copy(param.shape, tensor.strided, 0);
      } else {
        this.tensors.get(name)?.dispose();
        this.tensors.delete(name);
      }
    }
  }
}
