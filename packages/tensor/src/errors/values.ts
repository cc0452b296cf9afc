// Errors about dtypes, arguments and labels.
import { type DType, dtypes } from '../core/dtype.ts';
import { argument, dtypeError, type Shape, shapeError, show, shown, TensorError } from './tensor-error.ts';

// Dtypes.

export const needsFloat = (op: string, dtype: DType): TensorError =>
  dtypeError(`${op}: expected a floating dtype, got ${dtype}. Use .to('float32').`);

export const onlyFloatGrad = (dtype: DType): TensorError =>
  dtypeError(`gradient: expected a floating dtype, got ${dtype}. Only floating tensors have gradients.`);

export const gradDtype = (gradient: DType, tensor: DType): TensorError =>
  dtypeError(`backward: expected a gradient of ${tensor}, got ${gradient}. Use .to('${tensor}').`);

/** Other names of dtypes: those of PyTorch, C and NumPy. */
const dtypeNames: Readonly<Record<string, DType>> = {
  ...{ float: 'float32', single: 'float32', f32: 'float32', double: 'float64', f64: 'float64' },
  ...{ half: 'float16', f16: 'float16', fp16: 'float16', bf16: 'bfloat16' },
  ...{ int: 'int32', i32: 'int32', long: 'int64', i64: 'int64', bigint: 'int64', byte: 'uint8', u8: 'uint8' },
  boolean: 'bool',
};

/** Returns a sentence that names our dtype for another library's name; empty for an unknown name. */
export function meantDtype(name: unknown): string {
  const word = (typeof name === 'string' ? name : shown(name))
    .replace(/^(torch|np|numpy)\./, '')
    .toLowerCase();
  const dtype = Object.hasOwn(dtypeNames, word) ? dtypeNames[word] : dtypes.find((known) => known === word);
  return dtype === undefined ? '' : ` Use '${dtype}'.`;
}

export const unknownDtype = (op: string, dtype: unknown): TensorError =>
  dtypeError(`${op}: expected dtype ${dtypes.join(', ')}, got ${shown(dtype)}.${meantDtype(dtype)}`);

export const mixedDtypes = (op: string, a: DType, b: DType): TensorError =>
  dtypeError(`${op}: expected one dtype, got ${a} and ${b}. Use .to().`);

export const needsMask = (op: string, dtype: DType): TensorError =>
  dtypeError(`${op}: expected a mask of bool, got ${dtype}. Compare, or use .to('bool').`);

export const badAttentionMask = (op: string, mask: DType, dtype: DType): TensorError =>
  dtypeError(
    `${op}: expected a mask of bool, float32 or ${dtype}, got ${mask}. Compare, or use .to('${dtype}').`,
  );

export const needsIndex = (op: string, dtype: DType): TensorError =>
  dtypeError(`${op}: expected indices of int32 or int64, got ${dtype}. Use .to('int64').`);

// Arguments.

export const badHostArray = (array: unknown, dtype: DType | undefined): TensorError => {
  if (!ArrayBuffer.isView(array) && !Array.isArray(array) && typeof array !== 'number')
    return argument(`fromHost: expected a typed array, got ${shown(array)}.`);
  const name = ArrayBuffer.isView(array)
    ? array.constructor.name
    : `a plain ${Array.isArray(array) ? 'array' : 'number'}`;
  const held = dtype ?? 'elements of a dtype';
  return argument(`fromHost: ${name} does not hold ${held}. Use tensor(), which copies and converts.`);
};

/** Error for an array without memory. */
export const lostMemory = (op: string): TensorError =>
  argument(
    `${op}: the memory of the array was transferred, so the array is empty. Copy it before the transfer.`,
  );

/** Error for an array in memory that can shrink. */
export const resizableMemory = (): TensorError =>
  argument(
    'fromHost: the array is in a resizable ArrayBuffer; expected memory of a fixed length. Use tensor(), which copies.',
  );

export const notDense = (shape: Shape): TensorError =>
  argument(
    `buffer: the tensor ${show(shape)} is not dense in memory. Use contiguous(), which copies, and copy the result back.`,
  );

export const indexOutOfRange = (op: string, index: number | bigint, at: number, size: number): TensorError =>
  argument(`${op}: index ${index} at position ${at} is out of range; expected 0 to ${size - 1}.`);

export const positionOutOfRange = (op: string, index: number, at: number, size: number): TensorError =>
  argument(
    `${op}: index ${index} at position ${at} is out of range; expected ${size === 0 ? 'none, as there is no element' : `${-size} to ${size - 1}, where negative ones count from the end`}.`,
  );

export const unknownData = (data: unknown): TensorError =>
  argument(
    `tensor: expected a number, a boolean, nested arrays of these or a typed array, got ${shown(data)}.`,
  );

export const badArange = (start: number, end: number, step: number): TensorError =>
  argument(
    `arange: expected finite numbers and a step that leads from start to end, got ${[start, end, step].map(shown).join(', ')}.`,
  );

export const badEinsum = (equation: string, expected: string): TensorError =>
  shapeError(`einsum: expected ${expected}, got '${equation}'.`);

export const badSeed = (seed: number): TensorError =>
  argument(`manualSeed: expected an integer from 0 to 2^53 − 1, got ${shown(seed)}.`);

export const badState = (offset: number): TensorError =>
  argument(`setState: expected an offset that is an integer ≥ 0, got ${offset}.`);

/** `got`: the weight or the row that is wrong. */
export const badWeights = (needed: number, got: string): TensorError =>
  argument(
    `multinomial: expected finite weights ≥ 0 of which at least ${needed} are above 0 in each row, got ${got}.`,
  );

export const unsafeInteger = (method: string, value: bigint): TensorError =>
  argument(`${method}: ${value} does not fit into a number without loss. Read it from dataSync().`);

/** `got`: a description of the value, or the value as shown() formats it. */
export const badOption = (what: string, expected: string, got: string, next?: string): TensorError =>
  argument(`${what}: expected ${expected}, got ${got}.${next === undefined ? '' : ` ${next}`}`);

/** `fault` is what unknownOption() returns, `next` a sentence of advice. */
export const unknownOptions = (op: string, fault: string, next?: string): TensorError =>
  argument(`${op}: ${fault}.${next === undefined ? '' : ` ${next}`}`);

// Losses.

export const badLabels = (op: string, scores: Shape, labels: Shape): TensorError =>
  shapeError(
    `${op}: expected scores [rows, classes] and labels [rows], or scores [classes] and one label, got ${show(scores)} and ${show(labels)}.`,
  );

export const badLabelDtype = (op: string, dtype: DType): TensorError =>
  dtypeError(`${op}: expected labels of int32, int64 or uint8, got ${dtype}. Use labels.to('int64').`);

export const ignoredProbabilities = (op: string, ignoreIndex: number): TensorError =>
  argument(
    `${op}: expected no ignoreIndex beside probabilities of classes, got ${ignoreIndex}. Use labels of int64.`,
  );

export const labelOutOfRange = (
  op: string,
  label: number | bigint,
  row: number,
  classes: number,
): TensorError =>
  new TensorError(
    'ERR_TENSOR_LABEL',
    `${op}: label ${label} in row ${row} is out of range; expected 0 to ${classes - 1} for ${classes} classes.`,
  );

export const lossShapes = (op: string, prediction: Shape, target: Shape): TensorError =>
  shapeError(`${op}: expected equal shapes, got ${show(prediction)} and ${show(target)}. Use reshape.`);
