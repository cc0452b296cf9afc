// The error class of this package, and helpers for its messages.

import { captureDeeply } from './deep-stack.ts';

/** The codes of a TensorError. The README lists cause and next step of each. */
export type TensorErrorCode =
  | 'ERR_TENSOR_ANOMALY'
  | 'ERR_TENSOR_ARGUMENT'
  | 'ERR_TENSOR_AUTOGRAD'
  | 'ERR_TENSOR_CAPTURE'
  | 'ERR_TENSOR_DEVICE'
  | 'ERR_TENSOR_DISPOSED'
  | 'ERR_TENSOR_DTYPE'
  | 'ERR_TENSOR_GRAD_CHECK'
  | 'ERR_TENSOR_KERNELS'
  | 'ERR_TENSOR_LABEL'
  | 'ERR_TENSOR_LINALG'
  | 'ERR_TENSOR_MEMORY'
  | 'ERR_TENSOR_NPY'
  | 'ERR_TENSOR_SAFETENSORS'
  | 'ERR_TENSOR_SHAPE'
  | 'ERR_TENSOR_STATE_DICT';

/** The error class of this package; `code` is stable, the text is not. */
export class TensorError extends Error {
  /** Name of the class. */
  override readonly name = 'TensorError';
  /** Stable code, which programs may compare. */
  readonly code: TensorErrorCode;

  constructor(code: TensorErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    captureDeeply(this, TensorError);
  }
}

export type Shape = readonly number[];
/** Writes a shape as messages show it. */
export const show = (shape: Shape): string => `[${shape.join(', ')}]`;

export const argument = (message: string): TensorError => new TensorError('ERR_TENSOR_ARGUMENT', message);
export const shapeError = (message: string): TensorError => new TensorError('ERR_TENSOR_SHAPE', message);
export const dtypeError = (message: string): TensorError => new TensorError('ERR_TENSOR_DTYPE', message);
export const autograd = (message: string): TensorError => new TensorError('ERR_TENSOR_AUTOGRAD', message);

const mostShown = 8;

/** Is in every tensor of this copy of the package. A program may have several copies, which npm has not merged. */
export const copySymbol = Symbol('ringwise.copy');
const rowsSymbol = Symbol.for('ringwise.rows');

/** Describes what is often passed in place of a tensor and says how to get one of it; null for everything else. */
export function almostTensor(value: object): string | null {
  if (value instanceof Promise) return 'a promise, which needs an await';
  if (rowsSymbol in value && !(copySymbol in value))
    return 'a tensor of another copy of @ringwise/tensor, of which a program needs one (npm ls @ringwise/tensor lists them)';
  if (ArrayBuffer.isView(value) && !(value instanceof DataView))
    return `a ${value.constructor.name}, of which fromHost(array, shape) makes a tensor`;
  if ('shape' in value && 'data' in value && ArrayBuffer.isView(value.data))
    return 'an object { data, shape }, of which fromHost(data, shape) makes a tensor';
  return null;
}

/** Describes a value that a user gave, as part of a sentence. */
export function shown(value: unknown): string {
  if (typeof value === 'string') return `'${value.slice(0, 60)}'`;
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'function') return 'a function';
  if (Array.isArray(value)) {
    const parts = value.slice(0, mostShown).map(shown);
    return `[${[...parts, ...(value.length > mostShown ? ['…'] : [])].join(', ')}]`;
  }
  if (typeof value !== 'object' || value === null) return String(value);
  const almost = ArrayBuffer.isView(value) ? null : almostTensor(value);
  if (almost !== null) return almost;
  const name = (value.constructor as { readonly name?: string } | undefined)?.name;
  if ('dtype' in value && 'shape' in value) return 'a tensor';
  return name === undefined || name === 'Object' ? 'an object' : `an object ${name}`;
}
