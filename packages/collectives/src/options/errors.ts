// Error messages about options. They occur before anything is sent, so they do not poison the group.

import { type Failure, local } from '../errors.ts';
import type { ReduceOp } from '../reduce-ops.ts';

/** `fault` is the text that unknownOption() returned. */
export function unknownOptions(verb: string, fault: string, next?: string): Failure {
  return local('ERR_COLL_INVALID', verb, fault, next);
}

/** Returns the failure for an option or argument of the wrong type or out of range. */
export function wrongOption(
  verb: string,
  name: string,
  expected: string,
  got: unknown,
  next?: string,
): Failure {
  return local(
    'ERR_COLL_INVALID',
    verb,
    `${name} is not usable; expected ${expected}, got ${shown(got)}`,
    next,
  );
}

export function badTimeout(verb: string, got: unknown, name = 'timeoutMs'): Failure {
  return wrongOption(verb, name, '1 to 2147483647 milliseconds', got);
}

export function badTimeoutVariable(verb: string, text: string): Failure {
  const what = `timeoutMs is not usable; expected 1 to 2147483647 milliseconds, got ${text} (RINGWISE_TIMEOUT_MS)`;
  return local('ERR_COLL_INVALID', verb, what);
}

export function badTag(verb: string, got: unknown, max: number): Failure {
  return wrongOption(verb, 'tag', `0 to ${max}`, got);
}

/** Names of the ops in other libraries. */
const foreignOps: Readonly<Record<string, ReduceOp>> = {
  add: 'sum',
  mean: 'avg',
  average: 'avg',
  product: 'prod',
  minimum: 'min',
  maximum: 'max',
  and: 'band',
  or: 'bor',
  xor: 'bxor',
};

export function unknownOp(verb: string, op: unknown, known: readonly ReduceOp[]): Failure {
  const plain = typeof op === 'string' ? op.replace(/[_-]|bitwise/gi, '').toLowerCase() : '';
  const foreign = Object.hasOwn(foreignOps, plain) ? foreignOps[plain] : undefined;
  const ours = known.find((name) => name.toLowerCase() === plain) ?? foreign;
  const expected = ours === undefined ? `one of ${known.join(', ')}` : `'${ours}'`;
  return local('ERR_COLL_INVALID', verb, `unknown op ${shown(op)}; expected ${expected}`);
}

/** Returns the failure of a member that only other libraries have; see foreign-members.ts. */
export function foreignMember(member: string, fault: string): Failure {
  return local('ERR_COLL_INVALID', member, fault);
}

/** Formats a value of any type for a message. */
export function shown(value: unknown): string {
  if (typeof value === 'string') return `'${value.length > 40 ? `${value.slice(0, 40)}…` : value}'`;
  if (Array.isArray(value)) return `[${value.map(shown).join(', ')}]`;
  if (typeof value === 'function') return 'a function';
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value !== 'object' || value === null) return String(value);
  if (value instanceof Promise) return 'a promise, which needs an await';
  return `an object (${value.constructor?.name ?? 'without a prototype'})`;
}

/** Returns the text of a reason that a program gives, which may be any value. Does not throw. */
export function reasonText(reason: unknown): string {
  const text: unknown = reason instanceof Error ? reason.message : reason;
  try {
    return String(text);
  } catch {
    return shown(text); // an object without a prototype, or with a toString() that throws
  }
}

export function isTimeout(value: unknown): value is number {
  return typeof value === 'number' && value >= 1 && value <= 0x7fffffff;
}
