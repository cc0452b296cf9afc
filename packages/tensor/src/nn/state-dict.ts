// Loads values into the tensors of a module. Checks all of them before it writes any.

import { sameShape } from '../core/shape.ts';
import type { Tensor } from '../core/tensor.ts';
import { copyInto } from '../core/transfer.ts';
import { badStateDict } from '../errors.ts';

export type StateDict = Readonly<Record<string, Tensor>>;

/** Names that only one side has; both lists are empty after a strict load. */
export interface LoadResult {
  readonly missing: readonly string[];
  readonly unexpected: readonly string[];
}

const showShape = (tensor: Tensor): string => `[${tensor.shape.join(', ')}]`;

/** Copies `dict` into `own`, converting dtypes. Throws one error that names all problems. */
export function loadInto(own: StateDict, dict: StateDict, strict: boolean): LoadResult {
  const missing = Object.keys(own).filter((name) => !Object.hasOwn(dict, name));
  const unexpected = Object.keys(dict).filter((name) => !Object.hasOwn(own, name));
  const shared = Object.entries(own).filter(([name]) => Object.hasOwn(dict, name));
  const problems = shared
    .filter(([name, tensor]) => !sameShape(dict[name]!.shape, tensor.shape))
    .map(([name, tensor]) => `${name} expected ${showShape(tensor)}, got ${showShape(dict[name]!)}`);
  if (strict && unexpected.length > 0) problems.unshift(`unexpected ${unexpected.join(', ')}`);
  if (strict && missing.length > 0) problems.unshift(`missing ${missing.join(', ')}`);
  if (problems.length > 0) throw badStateDict(problems);
  for (const [name, tensor] of shared) {
    const value = dict[name]!;
    if (value === tensor) continue;
    copyInto(tensor.strided, tensor.shape, value.strided);
    tensor.storage.version++;
  }
  return { missing, unexpected };
}
