// Loads values into the tensors of a module. Checks all of them before it writes any.

import { copyInto } from '../core/memory/transfer.ts';
import { sameShape } from '../core/shape.ts';
import { Tensor } from '../core/tensor.ts';
import { badStateDict, nameTwice, shown } from '../errors.ts';

/** Parameters and buffers of a model by name; the tensors themselves, without a copy. */
export type StateDict = Readonly<Record<string, Tensor>>;

/** Names that only one side has; both lists are empty after a strict load. */
export interface LoadResult {
  /** Names of the model that the dict lacks. */
  readonly missing: readonly string[];
  /** Names of the dict that the model lacks. */
  readonly unexpected: readonly string[];
}

/** Returns tensors by name. Throws if two have one name, of which one would be lost. `model` is the class. */
export function named(model: string, entries: Iterable<readonly [string, Tensor]>): Record<string, Tensor> {
  const found = new Map<string, Tensor>();
  for (const [name, tensor] of entries) {
    if ((found.get(name) ?? tensor) !== tensor) throw nameTwice(model, name);
    found.set(name, tensor);
  }
  return Object.fromEntries(found);
}

const showShape = (tensor: Tensor): string => `[${tensor.shape.join(', ')}]`;

/** Returns why `value` cannot be copied into `own`, or null. */
function faultOf(own: Tensor, value: unknown): string | null {
  if (!(value instanceof Tensor)) return `expected a tensor, got ${shown(value)}`;
  if (value.isDisposed || own.isDisposed) return value.isDisposed ? 'is disposed in the dict' : 'is disposed';
  return sameShape(value.shape, own.shape) ? null : `expected ${showShape(own)}, got ${showShape(value)}`;
}

/** Prefixes that PyTorch's DistributedDataParallel and torch.compile add to the names of a model. */
const wrappers = ['module.', '_orig_mod.'];

/** Returns advice for names that only a wrapper of PyTorch makes different; undefined for other names. */
function adviceFor(missing: readonly string[], unexpected: readonly string[]): string | undefined {
  const prefix = wrappers.find(
    (each) => unexpected.length > 0 && unexpected.every((name) => name.startsWith(each)),
  );
  if (prefix === undefined || !unexpected.every((name) => missing.includes(name.slice(prefix.length))))
    return undefined;
  return `The names begin with '${prefix}', which a wrapper of PyTorch adds: load the values under name.slice(${prefix.length}).`;
}

/** Copies `dict` into `own`, converting dtypes and devices. Throws one error that names all problems. */
export function loadInto(own: StateDict, dict: StateDict, strict: boolean): LoadResult {
  const missing = Object.keys(own).filter((name) => !Object.hasOwn(dict, name));
  const unexpected = Object.keys(dict).filter((name) => !Object.hasOwn(own, name));
  const shared = Object.entries(own).filter(([name]) => Object.hasOwn(dict, name));
  const problems = shared.flatMap(([name, tensor]) => {
    const fault = faultOf(tensor, dict[name]);
    return fault === null ? [] : [`${name} ${fault}`];
  });
  if (strict && unexpected.length > 0) problems.unshift(`unexpected ${unexpected.join(', ')}`);
  if (strict && missing.length > 0) problems.unshift(`missing ${missing.join(', ')}`);
  if (problems.length > 0) throw badStateDict(problems, adviceFor(missing, unexpected));
  for (const [name, tensor] of shared) {
    const value = dict[name]!;
    if (value === tensor) continue;
    copyInto(tensor.strided, tensor.shape, value.strided);
    tensor.storage.version++;
  }
  return { missing, unexpected };
}
