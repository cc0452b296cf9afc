// Splits the state of an optimizer by parameter, and combines such states for other lists of parameters.
import {
  asBuffer,
  type BufferCarrier,
  type BufferView,
  elementsOf,
  type TypedArray,
} from '@ringwise/collectives';
import { stateOutOfReach } from '../errors.ts';
import { bytesOf } from '../reducer/memory.ts';

/** A tensor of an optimizer's state. */
export type Remembered = BufferCarrier & {
  readonly shape: readonly number[];
  /** Returns a copy in host memory, for tensors that JavaScript cannot access. */
  readonly dataSync?: () => ArrayBufferView;
};

/** Memory with a shape, as plain data. */
export interface SavedTensor {
  /** Type of the elements. */
  readonly dtype: BufferView['dtype'];
  /** Size of each dimension. */
  readonly shape: readonly number[];
  /** The elements, row by row. */
  readonly bytes: Uint8Array;
}

/** A group of parameters: their positions, and options such as a learning rate. */
export type SavedGroup = { readonly params: readonly number[] } & object;

/** State of an optimizer. */
export interface StateOf<T> {
  /** Options of each group of parameters, with the positions of its parameters. */
  readonly groups: readonly SavedGroup[];
  /** Number of steps of each parameter. */
  readonly steps: readonly number[];
  /** State of the parameters, by "<name>.<position of the parameter>". */
  readonly tensors: Readonly<Record<string, T>>;
}

/** State of one parameter: its number of steps, and its tensors by name. */
export interface ParamStateOf<T> {
  /** Number of steps. */
  readonly steps: number;
  /** State, by name. */
  readonly tensors: Readonly<Record<string, T>>;
}

/** Returns the states of the parameters, in their order in `state`. */
export function byParam<T>({ steps, tensors }: StateOf<T>): ParamStateOf<T>[] {
  const own = steps.map((): Record<string, T> => ({}));
  for (const [name, tensor] of Object.entries(tensors)) {
    const dot = name.lastIndexOf('.');
    own[Number(name.slice(dot + 1))]![name.slice(0, dot)] = tensor;
  }
  return steps.map((count, i) => ({ steps: count, tensors: own[i]! }));
}

/**
 * Combines the states of parameters into the state of one optimizer, with all parameters in one group with `options`.
 */
export function together<T>(states: readonly ParamStateOf<T>[], options: object = {}): StateOf<T> {
  const tensors = states.flatMap((state, i) =>
    Object.entries(state.tensors).map(([name, tensor]) => [`${name}.${i}`, tensor] as const),
  );
  return {
    groups: [{ ...options, params: [...states.keys()] }],
    steps: states.map(({ steps }) => steps),
    tensors: Object.fromEntries(tensors),
  };
}

/** Copies a tensor to plain data. */
export function saved(tensor: Remembered): SavedTensor {
  const { dtype, host } = asBuffer(tensor);
  const elements = host ?? tensor.dataSync?.();
  if (elements === undefined) throw stateOutOfReach();
  return { dtype, shape: [...tensor.shape], bytes: bytesOf(elements).slice() };
}

/** Returns a tensor of a state as plain data with elements, which share the memory of `tensor` where possible. */
export function loadable(tensor: SavedTensor | LoadableTensor | Remembered): LoadableTensor {
  if ('data' in tensor && ArrayBuffer.isView(tensor.data)) return tensor as LoadableTensor;
  const { dtype, shape, bytes } = 'bytes' in tensor ? tensor : saved(tensor as Remembered);
  const cpu = { kind: 'cpu', index: 0 } as const;
  // Elements may have to begin at a multiple of their size.
  const host = bytes.byteOffset % 8 === 0 ? bytes : bytes.slice();
  const count = shape.reduce((product, length) => product * length, 1);
  return { dtype, shape, data: elementsOf({ dtype, count, device: cpu, host, handle: null }) as TypedArray };
}

/** A tensor as plain data with elements, in the form that optimizers of @ringwise/tensor load. */
export interface LoadableTensor {
  /** Type of the elements. */
  readonly dtype: BufferView['dtype'];
  /** Size of each dimension. */
  readonly shape: readonly number[];
  /** The elements, row by row. */
  readonly data: TypedArray;
}

export const mapTensors = <T, U>(
  { steps, tensors }: ParamStateOf<T>,
  map: (tensor: T) => U,
): ParamStateOf<U> => ({
  steps,
  tensors: Object.fromEntries(Object.entries(tensors).map(([name, each]) => [name, map(each)])),
});
