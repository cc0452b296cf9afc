// Error messages of the differentiable verbs. They occur before anything is sent, so the group stays usable.
import { type Failure, local } from '../errors.ts';
import { shown } from '../options/errors.ts';

export function notDifferentiable(verb: string, got: string): Failure {
  return local(
    'ERR_COLL_INVALID',
    verb,
    `expected a tensor, which offers its autograd as a Symbol.for("ringwise.differentiable") member, got ${got}`,
    'Typed arrays have no gradients: call the verb on the group.',
  );
}

/** `name` is 'after' for what ranks do with the result, 'before' for what they do with the input. */
export function useNotGiven(verb: string, name: 'after' | 'before', got: unknown): Failure {
  const subject = name === 'after' ? 'the result' : 'x';
  return local(
    'ERR_COLL_INVALID',
    verb,
    `${name} is not usable; expected 'same' if all ranks compute the same from ${subject}, 'own' if each computes something of its own, got ${shown(got)}`,
    'There is no default: the gradient depends on it.',
  );
}

export function opHasNoGradient(verb: string, op: string): Failure {
  return local(
    'ERR_COLL_UNSUPPORTED',
    verb,
    `op '${op}' has no gradient here; expected 'sum' or 'avg'`,
    'For the values alone, call the verb on the group with a detached copy of the tensor.',
  );
}

export function badDim(verb: string, name: string, got: unknown, rank: number): Failure {
  const expected = rank === 0 ? 'a tensor with dimensions' : `a dimension from ${-rank} to ${rank - 1}`;
  return local('ERR_COLL_INVALID', verb, `${name} is not usable; expected ${expected}, got ${shown(got)}`);
}

export function badSizes(verb: string, name: string, size: number, own: string, got: unknown): Failure {
  return local(
    'ERR_COLL_INVALID',
    verb,
    `${name} is not usable; expected a length for each of ${size} ranks, ${own}, got ${shown(got)}`,
  );
}

export function unevenDim(verb: string, dim: number, length: number, size: number, sizes: string): Failure {
  return local(
    'ERR_COLL_INVALID',
    verb,
    `dimension ${dim} cannot be split evenly; expected a multiple of ${size}, got ${length}`,
    `Pass ${sizes} for parts of different lengths.`,
  );
}

export function gradientCannotBlock(verb: string, backend: string): Failure {
  return local(
    'ERR_COLL_UNSUPPORTED',
    verb,
    `its gradient needs communication inside backward, which has to block, and the ${backend} backend may not block this thread`,
    'Use the backend host or nccl, or a verb whose gradient needs none.',
  );
}
