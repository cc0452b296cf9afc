// The saved state of an optimiser, and the check that it fits another one.

import { type Check, checkValue } from '../checks/value-checks.ts';
import { fromHost } from '../core/creation.ts';
import type { DType, HostArray } from '../core/dtype.ts';
import { type Shape, sameShape } from '../core/shape.ts';
import { Tensor } from '../core/tensor.ts';
import { show } from '../errors/tensor-error.ts';

/** The options of a group, and the positions of its parameters; plain JSON. */
export interface SavedGroup {
  readonly params: readonly number[];
  readonly [option: string]: unknown;
}

/** State of an optimiser: its groups, and its state for each parameter. */
export interface OptimizerState {
  /** Options of each group, with the positions of its parameters. */
  readonly groups: readonly SavedGroup[];
  /** Number of steps of each parameter. */
  readonly steps: readonly number[];
  /**
   * State tensors by "<state>.<position of the parameter>": the optimiser's own, not copies. saveSafetensors accepts
   * them.
   */
  readonly tensors: Readonly<Record<string, Tensor>>;
}

/** A tensor as plain data, as loadSnapshot() and the consolidated state of ZeRO of @ringwise/ddp have it. */
export interface SavedTensor {
  /** The elements, row by row: a typed array of `dtype`. */
  readonly data: ArrayBufferView;
  /** Type of the elements: a DType. */
  readonly dtype: string;
  /** Size of each dimension. */
  readonly shape: Shape;
}

/** State of an optimiser whose tensors may be plain data. */
export interface SavedOptimizerState extends Omit<OptimizerState, 'tensors'> {
  /** State of the parameters, by "<name>.<position of the parameter>". */
  readonly tensors: Readonly<Record<string, Tensor | SavedTensor>>;
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;

const isGroup = (value: unknown): boolean =>
  isObject(value) && Array.isArray((value as Partial<SavedGroup>).params);

const aState: Check = {
  expected: 'a state with groups, steps and tensors, as stateDict() returns',
  fits: (value) => {
    const { groups, steps, tensors } = (value ?? {}) as Partial<SavedOptimizerState>;
    if (!Array.isArray(groups) || !Array.isArray(steps) || !isObject(tensors)) return false;
    return groups.every(isGroup) && Object.values(tensors).every(isObject);
  },
};

/** Throws ERR_TENSOR_ARGUMENT for a value that is no state of an optimizer. */
export const checkIsState = (state: unknown): void => checkValue('loadStateDict: state', state, aState);

/** Returns the state with a tensor over the memory of each one that is plain data. */
export function withTensors(state: SavedOptimizerState): OptimizerState {
  const tensors = Object.entries(state.tensors).map(([name, each]): [string, Tensor] => {
    if (each instanceof Tensor) return [name, each];
    // fromHost() refuses other arrays and dtypes than its own.
    return [name, fromHost(each.data as HostArray, each.shape, { dtype: each.dtype as DType })];
  });
  return { ...state, tensors: Object.fromEntries(tensors) };
}

/**
 * Returns the reasons why `state` cannot be loaded. `names` lists the state tensors of each parameter, and `shapeOf`
 * returns their shapes.
 */
export function checkState(
  state: OptimizerState,
  groups: readonly { readonly params: readonly Tensor[] }[],
  params: readonly Tensor[],
  names: readonly (readonly string[])[],
  shapeOf: (name: string, param: Tensor) => Shape,
): string[] {
  const sizes = groups.map((group) => group.params.length);
  const given = state.groups.map((group) => group.params.length);
  if (sizes.join() !== given.join() || state.steps.length !== params.length) {
    const steps = state.steps.length === params.length ? '' : `, with ${state.steps.length} step counts`;
    return [`expected groups of ${sizes.join(', ')} parameters, got ${given.join(', ')}${steps}`];
  }
  const problems: string[] = [];
  for (const [i, count] of state.steps.entries())
    if (!Number.isSafeInteger(count) || count < 0)
      problems.push(`steps.${i} expected an integer ≥ 0, got ${count}`);
  for (const [name, tensor] of Object.entries(state.tensors)) {
    const [, what, at] = /^(\w+)\.(\d+)$/.exec(name) ?? [];
    const param = params[Number(at)];
    if (!param || !names[Number(at)]!.includes(what!)) problems.push(`unexpected ${name}`);
    else {
      const shape = shapeOf(what!, param);
      if (!sameShape(shape, tensor.shape))
        problems.push(`${name} expected ${show(shape)}, got ${show(tensor.shape)}`);
    }
  }
  const missing = names.flatMap((own, i) =>
    state.steps[i] === 0 ? [] : own.map((what) => `${what}.${i}`).filter((name) => !(name in state.tensors)),
  );
  if (missing.length > 0) problems.push(`missing ${missing.join(', ')}`);
  return problems;
}
