// An optimiser's state of one parameter: the number of steps, and tensors, which belong to no scope.
import { kernels } from '../backends/index.ts';
import { allocate } from '../core/memory/storage.ts';
import { copyInto } from '../core/memory/transfer.ts';
import { countOf, type Shape } from '../core/shape.ts';
import { Tensor } from '../core/tensor.ts';
import { capturing } from '../device/capture.ts';
import { stateOutsideStep } from '../errors.ts';

export class ParamState {
  steps = 0;
  readonly tensors = new Map<string, Tensor>();

  /**
   * Returns the tensor of this name, which is made with zeros at the first call. It has the dtype and the device of the
   * parameter, and is converted if those have changed; with a `shape` of null it is a number: float64 without
   * dimensions, in host memory. While a step is captured, throws ERR_TENSOR_CAPTURE instead of either: each run
   * of the step would make or convert the tensor again, so that no run saw the state of the run before.
   */
  tensor(name: string, param: Tensor, shape: Shape | null = param.shape): Tensor {
    let tensor = this.tensors.get(name);
    const { dtype, device } = shape === null ? ({ dtype: 'float64', device: 'cpu' } as const) : param;
    const isFitting = tensor?.dtype === dtype && tensor.device === device;
    if (capturing() !== null && !isFitting) throw stateOutsideStep(name, param.shape);
    if (tensor === undefined) {
      const own = shape ?? [];
      tensor = new Tensor(allocate(dtype, countOf(own), device), own);
      kernels().copy(own, tensor.strided, 0);
      this.tensors.set(name, tensor);
    }
    tensor.convert(dtype, device);
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
    shapeOf: (name: string) => Shape | null,
  ): void {
    this.steps = steps;
    for (const name of new Set([...this.tensors.keys(), ...names])) {
      const from = saved(name);
      if (from !== undefined && from === this.tensors.get(name)) continue; // its own state, as stateDict() returned it
      if (from !== undefined)
        copyInto(this.tensor(name, param, shapeOf(name)).strided, from.shape, from.strided);
      else if (names.includes(name)) {
        const tensor = this.tensors.get(name);
        if (tensor !== undefined) kernels().copy(tensor.shape, tensor.strided, 0);
      } else {
        this.tensors.get(name)?.dispose();
        this.tensors.delete(name);
      }
    }
  }
}
