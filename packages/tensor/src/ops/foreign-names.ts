// Names that users of PyTorch, NumPy and TensorFlow.js look for in a tensor, and their names here.

import { foreignMember, numberOfTensor } from '../checks/argument-errors.ts';
import { type Advice, refuseForeign } from '../checks/foreign-members.ts';
import { Tensor } from '../core/tensor.ts';
import { GradTensor } from '../core/tensor-grad.ts';

const dtypes: Advice = {
  float: "to('float32')",
  double: "to('float64')",
  half: "to('float16')",
  bfloat16: "to('bfloat16')",
  int: "to('int32')",
  long: "to('int64')",
  byte: "to('uint8')",
  bool: "to('bool')",
  type: 'the property dtype, or to(dtype)',
  type_as: 'to(other.dtype)',
  astype: "to(dtype), such as to('float32')",
  asType: "to(dtype), such as to('float32')",
  toInt: "to('int32')",
  toFloat: "to('float32')",
  toBool: "to('bool')",
};

const values: Advice = {
  numpy: 'dataSync() for a typed array, or toArray() for nested arrays',
  tolist: 'toArray()',
  arraySync: 'toArray()',
  array: 'toArray()',
  print: 'console.log(tensor)',
  data_ptr: 'handle().address',
  copy: 'clone()',
  cpu: "to('cpu')",
  cuda: "to('cuda'), or to('cuda:1') for another device",
  get_device: 'the property device',
};

const operations: Advice = {
  dim: 'the property rank',
  ndimension: 'the property rank',
  numel: 'the property count',
  nelement: 'the property count',
  element_size: 'dataSync().BYTES_PER_ELEMENT',
  expandDims: 'unsqueeze(dim)',
  matMul: 'matmul(other)',
  var: 'variance()',
  logsumexp: 'logSumExp(dims)',
  multiply: 'mul(other)',
  divide: 'div(other)',
  subtract: 'sub(other)',
  negative: 'neg()',
  requires_grad_: 'requiresGrad = true',
  requiresGrad_: 'requiresGrad = true',
  clip: 'clamp(min, max)',
  detach_: 'detach()',
  unsqueeze_: 'unsqueeze(dim), which gives a view',
  squeeze_: 'squeeze(), which gives a view',
  normal_: 'init.normal_(tensor) of @ringwise/tensor/nn, or randn(shape)',
  uniform_: 'init.uniform_(tensor) of @ringwise/tensor/nn, or rand(shape)',
};

// Not `length`, which other code reads to find out whether something is a list.
const properties: Advice = {
  size: 'shape, and count for the number of elements',
  ndim: 'rank',
  T: 't()',
  mT: 'transpose(-2, -1)',
  is_cuda: "device !== 'cpu'",
  // Not `values` and `indices`: programs look for them to tell a tensor from the result of sort() and topk().
  ...Object.fromEntries(
    Array.from({ length: 10 }, (_, i) => [i, `at(${i}), because tensors have no index in brackets`]),
  ),
  '-1': 'at(-1), because tensors have no index in brackets',
};

/** Adds these names to tensors, which have their methods already. */
export function refuseForeignNames(): void {
  const methods = { ...dtypes, ...values, ...operations };
  refuseForeign(Tensor.prototype, 'tensor', foreignMember, { methods, properties, isSetRefused: true });
  const get = Object.getOwnPropertyDescriptor(GradTensor.prototype, 'grad')!.get!;
  const set = (): never => {
    throw foreignMember(
      'tensor.grad',
      'a gradient cannot be assigned; expected zeroGrad() to drop it, or noGrad(() => tensor.grad.copy_(values))',
    );
  };
  Object.defineProperty(GradTensor.prototype, 'grad', { get, set, configurable: true });
  // Without this, `loss * 2` would be NaN, and with the hint 'default' `total += loss` would join texts. Templates and
  // String() give the hint 'string'.
  Object.defineProperty(Tensor.prototype, Symbol.toPrimitive, {
    value(this: Tensor, hint: string): string {
      if (hint !== 'string') throw numberOfTensor();
      return this.toString();
    },
    configurable: true,
  });
}
