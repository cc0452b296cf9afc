// gather and scatter: only the root has the whole tensor. The gradient of each is the other.
import type { Group } from '../group/group.ts';
import type { Differentiable } from './autograd.ts';
import { Call, type Started, shapeText } from './call.ts';
import { now, unused } from './gathers.ts';
import type { DimOptions, RootedOptions } from './options.ts';
import { type Parts, partsOf } from './parts.ts';

/** Starts to concatenate the ranks' parts at the root. On other ranks the result is a zero of shape []. */
function toRoot<T extends Differentiable>(
  { autograd, group }: Call<T>,
  x: T,
  { dim, whole, others, counts }: Parts,
  root: number,
  options: object,
): Started<T> {
  const input = autograd.toFront(x, dim);
  const output = group.rank === root ? autograd.empty(x, [whole, ...others]) : null;
  const work = group.gather(input, output, { ...options, ...counts, root });
  if (output === null) return { work, result: autograd.zeros(x, []), temporaries: [input], autograd };
  const result = autograd.fromFront(output, dim);
  return { work, result, temporaries: unused([input, output], result), autograd };
}

/** Starts to split the root's `x`. Other ranks have a tensor of the same dtype. */
function fromRoot<T extends Differentiable>(
  { autograd, group }: Call<T>,
  x: T,
  { dim, own, others, counts }: Parts,
  root: number,
  options: object,
): Started<T> {
  const input = group.rank === root ? autograd.toFront(x, dim) : null;
  const output = autograd.empty(x, [own, ...others]);
  const work = group.scatter(input, output, { ...options, ...counts, root });
  const result = autograd.fromFront(output, dim);
  const all = input === null ? [output] : [input, output];
  return { work, result, temporaries: unused(all, result), autograd };
}

export function gather<T extends Differentiable>(
  group: Group,
  x: T,
  options: RootedOptions & DimOptions,
): Started<T> {
  const call = new Call(group, 'gather', x, options);
  const { root = 0 } = call.options;
  const parts = partsOf(call, 'part', call.options);
  call.number(true, shapeText(call.shape, parts.dim));
  const started = toRoot(call, x, parts, root, call.forward);
  const result = call.autograd.record('gather', started.result, x, (grad) =>
    now(fromRoot(call, grad, parts, root, call.backward)),
  );
  return { ...started, result };
}

export function scatter<T extends Differentiable>(
  group: Group,
  x: T,
  options: RootedOptions & DimOptions,
): Started<T> {
  const call = new Call(group, 'scatter', x, options);
  const { root = 0 } = call.options;
  const isRoot = group.rank === root;
  const parts = partsOf(call, isRoot ? 'whole' : 'part', call.options);
  call.number(true, shapeText(call.shape, parts.dim));
  const started = fromRoot(call, x, parts, root, call.forward);
  const result = call.autograd.record('scatter', started.result, x, (grad) => {
    const whole = now(toRoot(call, grad, parts, root, call.backward));
    return isRoot ? whole : null;
  });
  return { ...started, result };
}
