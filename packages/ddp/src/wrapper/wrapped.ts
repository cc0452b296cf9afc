// Tracks which parameters have a wrapper that averages their gradients, over all models of this thread. Two wrappers of
// one parameter would average its gradient at the same time, each in its own bucket. All copies of this package in the
// thread share the table.
import { sameParamTwice, wrappedAlready } from '../errors.ts';
import type { FrozenParam, GradParam } from './grad-param.ts';

type Identified = Pick<GradParam, 'name' | 'key' | 'value'> | FrozenParam;

/**
 * Descriptions of wrappers, by the parameter's object and its position in it (one memory may hold several).
 */
type Table = WeakMap<object, Map<string, string>>;

const slots = globalThis as { [key: symbol]: Table | undefined };
const tableSymbol = Symbol.for('ringwise.ddp.wrapped');
slots[tableSymbol] ??= new WeakMap();
const table: Table = slots[tableSymbol];

/** The parameters of one wrapper. */
export class Claim {
  readonly #owner: string;
  #held: (readonly [key: object, position: string])[] = [];

  /** `owner` describes the wrapper, for the error of a second one. */
  constructor(owner: string) {
    this.#owner = owner;
  }

  /** Claims all parameters; if one is taken, throws ERR_DDP_INVALID and claims none. */
  take(params: readonly Identified[]): void {
    const taken = new Map<object, Map<string, string>>();
    for (const param of params) {
      const [key, position] = identityOf(param);
      const owner = table.get(key)?.get(position);
      if (owner !== undefined) throw wrappedAlready(param.name, owner);
      const names = taken.get(key) ?? new Map<string, string>();
      const first = names.get(position);
      if (first !== undefined) throw sameParamTwice(first, param.name);
      taken.set(key, names.set(position, param.name));
    }
    for (const [key, names] of taken) for (const position of names.keys()) this.#hold(key, position);
  }

  /** Releases all parameters. Idempotent. */
  release(): void {
    for (const [key, position] of this.#held.splice(0)) table.get(key)?.delete(position);
  }

  #hold(key: object, position: string): void {
    const positions = table.get(key) ?? new Map<string, string>();
    table.set(key, positions.set(position, this.#owner));
    this.#held.push([key, position]);
  }
}

/** Returns whether a wrapper averages the gradients of this parameter. */
export function isWrapped(param: Identified): boolean {
  const [key, position] = identityOf(param);
  return table.get(key)?.has(position) === true;
}

function identityOf(param: Identified): [key: object, position: string] {
  if (param.key !== undefined) return [param.key, ''];
  const { host, handle, count } = param.value;
  // Memory without elements does not identify a parameter.
  if (count === 0) return [param, ''];
  if (host !== null) return [host.buffer, String(host.byteOffset)];
  return handle === null ? [param, ''] : [handle.owner, String(handle.address)];
}
