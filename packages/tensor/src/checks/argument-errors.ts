// Errors for positional arguments of operations: numbers, dimensions, indices and operands of a wrong type or
// out of range. Other errors are in errors.ts and op-errors.ts.
import { type DType, dtypeInfo } from '../core/dtype.ts';
import {
  almostTensor,
  argument,
  dtypeError,
  shapeError,
  shown,
  type TensorError,
} from '../errors/tensor-error.ts';

/** Describes a value that the caller passed: "the string '1'", 'a tensor', 'NaN'. */
export function kindOf(value: unknown): string {
  if (typeof value === 'string') return `the string '${value}'`;
  if (typeof value === 'bigint') return `the bigint ${value}n`;
  if (Array.isArray(value))
    return value.length > 8 ? `an array of ${value.length}` : `the array [${value.map(kindOf).join(', ')}]`;
  if (typeof value === 'function') return 'a function';
  if (typeof value !== 'object' || value === null) return String(value);
  return almostTensor(value) ?? ('dtype' in value && 'shape' in value ? 'a tensor' : 'an object');
}

// Values of a wrong type.

export const notAnInteger = (op: string, name: string, value: unknown): TensorError =>
  argument(`${op}: expected ${name} to be an integer, got ${kindOf(value)}.`);

export const notANumber = (op: string, name: string, value: unknown): TensorError =>
  argument(`${op}: expected ${name} to be a number, got ${kindOf(value)}.`);

export const notABoolean = (op: string, name: string, value: unknown): TensorError =>
  argument(`${op}: expected ${name} to be true or false, got ${kindOf(value)}.`);

export const notIntegers = (op: string, name: string, value: unknown): TensorError =>
  argument(
    `${op}: expected ${name} to be an array of integers, got ${kindOf(value)}.` +
      (typeof value === 'number' ? ` Put the numbers into an array: ${op}([${value}, …]).` : ''),
  );

export const notDims = (op: string, value: unknown): TensorError =>
  argument(
    `${op}: expected a dimension or an array of dimensions, which are integers, got ${kindOf(value)}. Pass dimensions by position: ${op}(x, 1).`,
  );

export const notOneTensor = (op: string, value: unknown): TensorError =>
  argument(`${op}: expected a tensor, got ${kindOf(value)}.`);

export const notAnOperand = (op: string, name: string, value: unknown): TensorError =>
  argument(`${op}: expected ${name} to be a tensor, got ${kindOf(value)}.`);

export const notAnEquation = (value: unknown): TensorError =>
  argument(`einsum: expected an equation first, such as 'ij,jk->ik', got ${kindOf(value)}.`);

export const notTensors = (op: string, value: unknown): TensorError =>
  argument(
    `${op}: expected an array of tensors, got ${kindOf(value)}.` +
      (kindOf(value) === 'a tensor' ? ` Put the tensors into an array: ${op}([a, b]).` : ''),
  );

/** `position` is the position of the value, such as "layer 1". An array is the list that PyTorch users pass. */
export const notAModule = (op: string, position: string, value: unknown): TensorError =>
  argument(
    `${op}: expected ${position} to be a module with a forward method, got ${kindOf(value)}.` +
      (Array.isArray(value)
        ? ` Pass modules one by one: new ${op}(...modules).`
        : typeof value === 'function'
          ? ' If that is the class of a layer, make one with new.'
          : ''),
  );

export const notModules = (op: string, expected: string, value: unknown): TensorError =>
  argument(`${op}: expected ${expected}, got ${kindOf(value)}.`);

// Indices and dimensions.

export const badIndexKind = (op: string, index: unknown): TensorError =>
  argument(
    `${op}: expected an integer, a range [start, end, step], ':', '...', null, or a tensor of positions or bool, ` +
      `got ${kindOf(index)}.`,
  );

export const notAnOperandOf = (op: string, value: unknown): TensorError =>
  argument(`${op}: expected the value to be a tensor or a number, got ${kindOf(value)}.`);

export const indexListNeeded = (op: string, indices: unknown): TensorError =>
  argument(`${op}: expected a list of indices, such as [0, ':'], got ${kindOf(indices)}.`);

export const badIndexRange = (op: string, range: unknown): TensorError =>
  argument(
    `${op}: expected a range [start, end, step] of integers, where start and end may be null, got ${kindOf(range)}. ` +
      'For a list of positions use a tensor of int64.',
  );

export const repeatedDim = (op: string, dim: number): TensorError =>
  shapeError(`${op}: dimension ${dim} is named more than once. Name each dimension once.`);

export const turnedRange = (op: string, start: number, end: number): TensorError =>
  shapeError(`${op}: startDim ${start} comes after endDim ${end}. Swap them.`);

// Values and dtypes.

export const doesNotFit = (op: string, value: number | bigint, dtype: DType): TensorError => {
  const { least, most } = dtypeInfo[dtype];
  return argument(
    `${op}: ${value} does not fit into ${dtype}, which holds ${least} to ${most}. Use a wider dtype, or another value.`,
  );
};

export const noBounds = (): TensorError =>
  argument(
    'clamp: expected a lower bound, an upper bound or both, got none. Pass null for the one to leave out.',
  );

/** Error for the form of PyTorch's clamp(x, min=0). */
export const boundsByName = (): TensorError =>
  argument(
    'clamp: expected a tensor or a number as bound, got an object. Pass bounds by position: clamp(x, 0) for a lower one, ' +
      'clamp(x, null, 1) for an upper one.',
  );

export const negativeLimit = (op: string, limit: number, dtype: DType): TensorError =>
  argument(`${op}: expected limits ≥ 0 for ${dtype}, got ${limit}. Use .to('int32').`);

export const crossedLimits = (op: string, low: number, high: number): TensorError =>
  argument(`${op}: expected min ≤ max, got ${low} and ${high}. Swap them.`);

export const zeroAlpha = (): TensorError => argument('celu: expected an alpha other than 0, got 0.');

export const negativePower = (exponent: number): TensorError =>
  argument(
    `pow: integers have no power of ${exponent} among the integers. Use .to('float32') on the base first.`,
  );

export const notOfBool = (op: string, instead: string): TensorError =>
  dtypeError(`${op}: expected numbers, got bool. Use ${instead}.`);

export const badFillValue = (op: string, shape: readonly number[]): TensorError =>
  shapeError(
    `${op}: expected a number or a tensor without dimensions as value, got shape [${shape.join(', ')}]. Use where.`,
  );

export const notAProbability = (what: string, value: number, position: number): TensorError =>
  argument(
    `bce: expected ${what} from 0 to 1, got ${value} at position ${position}. Use sigmoid, or bceWithLogits for logits.`,
  );

export const cycleEnded = (totalSteps: number, steps: number): TensorError =>
  argument(
    `OneCycleLR: expected at most ${totalSteps} steps, as totalSteps says, got ${steps}. Raise totalSteps, or end the training.`,
  );

// Usages that other libraries accept.

/** The error of a member that only other libraries have; see checks/foreign-members.ts. */
export const foreignMember = (member: string, fault: string): TensorError => argument(`${member}: ${fault}.`);

/** Error for options where PyTorch has keywords, and `op` numbers by position. */
export const numbersByPosition = (op: string, example: string): TensorError =>
  argument(`${op}: expected numbers, got an object. Pass them by position: ${example}.`);

/** Error for `new Tensor()`, which only this package may call. */
export const notConstructed = (): TensorError =>
  argument(
    'new Tensor(): expected tensor(values), fromHost(typedArray, shape), or a function such as zeros([2, 3]).',
  );

export const numberOfTensor = (): TensorError =>
  argument(
    'tensor: a tensor is no number, so JavaScript cannot compute with it by + − * / or compare it by < or ==. Use item() for ' +
      'the number of a tensor with one element, or methods such as add, mul, eq and lt. Its text is String(tensor), also ' +
      'in a template.',
  );

/** `got` is a model, a function such as model.parameters without its call, or another value. */
export const notParams = (op: string, expected: string, got: unknown): TensorError => {
  const isModel = typeof (got as { readonly parameters?: unknown } | null)?.parameters === 'function';
  const next = isModel
    ? ' Pass its parameters: model.parameters().'
    : typeof got === 'function'
      ? ' If that is model.parameters, call it: model.parameters().'
      : '';
  return argument(`${op}: expected ${expected}, got ${shown(got)}.${next}`);
};
