// One call of a differentiable verb: its autograd, and the options of its operations in forward and in backward.
import { CollectiveError, cannotBlock, type Failure } from '../errors.ts';
import type { Group } from '../group/group.ts';
import type { Work } from '../group/work.ts';
import { shown, unknownOp } from '../options/errors.ts';
import { type CallWithOptions, checkOptions } from '../options/known-options.ts';
import type { CollectiveOptions } from '../options/options.ts';
import { type ReduceOp, reduceOps } from '../reduce-ops.ts';
import { type Autograd, autogradOf, type Differentiable } from './autograd.ts';
import { gradientCannotBlock, notDifferentiable, opHasNoGradient, useNotGiven } from './errors.ts';
import type { DifferentiableOp, Use } from './options.ts';

/** The verbs of across(), which checkOptions() knows as 'across.NAME'. */
export type AcrossVerb = CallWithOptions extends infer Name
  ? Name extends `across.${infer Verb}`
    ? Verb
    : never
  : never;

/** Calls so far in each group. Ranks compare these numbers, so that they notice when one has left out a call. */
const calls = new WeakMap<Group, number>();

/** A verb that has been started: `result` may be used once `work` has ended. */
export interface Started<T> {
  readonly work: Work<unknown>;
  readonly result: T;
  /** Tensors whose memory only the work uses; they are disposed of when it ends. */
  readonly temporaries: readonly T[];
  readonly autograd: Autograd<T>;
}

export class Call<T extends Differentiable, O extends CollectiveOptions = CollectiveOptions> {
  readonly group: Group;
  readonly autograd: Autograd<T>;
  readonly x: T;
  readonly #verb: AcrossVerb;
  readonly options: O;
  #text = '';

  constructor(group: Group, verb: AcrossVerb, x: T, options: O) {
    this.group = group;
    this.#verb = verb;
    this.x = x;
    this.options = options ?? ({} as O); // JavaScript may leave them out
    checkOptions(this, `across.${verb}`, options);
    const autograd = autogradOf(x);
    if (autograd === null) throw this.error(notDifferentiable(this.verb, shown(x)));
    this.autograd = autograd;
  }

  /** The name of the call in errors. */
  get verb(): `across.${AcrossVerb}` {
    return `across.${this.#verb}`;
  }

  get shape(): readonly number[] {
    return this.autograd.shapeOf(this.x);
  }

  /** Options of the operation in forward. */
  get forward(): CollectiveOptions {
    return this.#withTimeout(this.#text);
  }

  /** Options of the operation in backward. */
  get backward(): CollectiveOptions {
    return this.#withTimeout(`gradient of ${this.#text}`);
  }

  /** Options of messages, which have no labels. */
  get ofMessage(): { readonly timeoutMs?: number } {
    const { timeoutMs } = this.options;
    return timeoutMs === undefined ? {} : { timeoutMs };
  }

  /**
   * Numbers the call. Call it after all arguments have been checked. `hasOperation` tells whether the gradient needs
   * communication: then either all ranks or none must record it, and this group must be able to block. The ranks
   * compare `shape` and `details`.
   */
  number(hasOperation: boolean, shape: string, details = ''): void {
    if (hasOperation) this.requireBlocking();
    const isRecorded = this.autograd.isRecorded(this.x);
    const number = (calls.get(this.group) ?? 0) + 1;
    calls.set(this.group, number);
    const gradient = hasOperation ? (isRecorded ? ', with gradient' : ', without gradient') : '';
    const { label } = this.options;
    const title = label === undefined ? '' : ` ${label}`;
    this.#text = `across ${number}: ${this.#verb}${title} of ${shape}${details}${gradient}`;
  }

  /** Throws if the gradient needs communication inside backward and this group may not block. */
  requireBlocking(): void {
    const { backend, supports } = this.group;
    if (!supports.sync && this.autograd.isRecorded(this.x))
      throw this.error(gradientCannotBlock(this.verb, backend));
  }

  checkUse(name: 'after' | 'before', use: Use): Use {
    if (use !== 'same' && use !== 'own') throw this.error(useNotGiven(this.verb, name, use));
    return use;
  }

  checkOp(op: DifferentiableOp | undefined): DifferentiableOp {
    if (op === undefined || op === 'sum' || op === 'avg') return op ?? 'sum';
    if (reduceOps.includes(op as ReduceOp)) throw this.error(opHasNoGradient(this.verb, op));
    throw this.error(unknownOp(this.verb, op, reduceOps));
  }

  error(failure: Failure): CollectiveError {
    const { name, rank, size } = this.group;
    return new CollectiveError(failure, { group: name, rank, size });
  }

  #withTimeout(label: string): CollectiveOptions {
    return { label, ...this.ofMessage };
  }
}

/** Formats a shape. Dimensions in `open`, whose sizes may differ between ranks, are written as dots. */
export const shapeText = (shape: readonly number[], ...open: readonly number[]): string =>
  `[${shape.map((size, dim) => (open.includes(dim) ? '·' : size)).join(', ')}]`;

/** Waits for a verb. Returns its result. */
export async function finished<T>({ work, result, temporaries, autograd }: Started<T>): Promise<T> {
  try {
    await work;
  } finally {
    for (const each of temporaries) autograd.dispose(each);
  }
  return result;
}

/** Like finished(), but blocks this thread. */
export function finishedSync<T>({ work, result, temporaries, autograd }: Started<T>): T {
  try {
    work.fence();
  } finally {
    for (const each of temporaries) autograd.dispose(each);
  }
  return result;
}

/** Throws unless the group may block this thread. */
export function checkBlocking({ supports, backend, name, rank, size }: Group, verb: AcrossVerb): void {
  if (!supports.sync)
    throw new CollectiveError(cannotBlock(`across.${verb}`, backend), { group: name, rank, size });
}
