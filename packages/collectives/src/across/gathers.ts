// allGather, part and reduceScatter with their gradients: the gradient of each is another one of them.
import type { Group } from '../group/group.ts';
import type { Differentiable } from './autograd.ts';
import { Call, type Started, shapeText } from './call.ts';
import type { AfterOptions, DimOptions, OpOptions, PartOptions } from './options.ts';
import { type Parts, partsOf } from './parts.ts';

/** Starts to concatenate the ranks' parts `x` along a dimension. */
function joinParts<T extends Differentiable>(
  { autograd, group }: Call<T>,
  x: T,
  { dim, whole, others, counts }: Parts,
  options: object,
): Started<T> {
  const input = autograd.toFront(x, dim);
  const output = autograd.empty(x, [whole, ...others]);
  const work = group.allGather(input, output, { ...options, ...counts });
  const result = autograd.fromFront(output, dim);
  return { work, result, temporaries: unused([input, output], result), autograd };
}

/** Starts to reduce `x` over all ranks and to keep this rank's part of the result. */
function reduceParts<T extends Differentiable>(
  { autograd, group }: Call<T>,
  x: T,
  { dim, own, others, counts }: Parts,
  options: object,
): Started<T> {
  const input = autograd.toFront(x, dim);
  const output = autograd.empty(x, [own, ...others]);
  const work = group.reduceScatter(input, output, { ...options, ...counts });
  const result = autograd.fromFront(output, dim);
  return { work, result, temporaries: unused([input, output], result), autograd };
}

/** Returns the tensors that are not the result. They may share its memory, which lives as long as one of them. */
export const unused = <T>(tensors: readonly T[], result: T): T[] => tensors.filter((each) => each !== result);

/** Blocks until a verb inside backward has ended. */
export function now<T>({ work, result, temporaries, autograd }: Started<T>): T {
  work.fence();
  for (const each of temporaries) autograd.dispose(each);
  return result;
}

export function allGather<T extends Differentiable>(
  group: Group,
  x: T,
  options: AfterOptions & DimOptions,
): Started<T> {
  const call = new Call(group, 'allGather', x, options);
  const after = call.checkUse('after', call.options.after);
  const parts = partsOf(call, 'part', call.options);
  call.number(after === 'own', shapeText(call.shape, parts.dim), `, after ${after}`);
  const { autograd } = call;
  const started = joinParts(call, x, parts, call.forward);
  const result = autograd.record('allGather', started.result, x, (grad) =>
    after === 'same'
      ? autograd.narrow(grad, parts.dim, parts.from, parts.own)
      : now(reduceParts(call, grad, parts, call.backward)),
  );
  return { ...started, result };
}

export function reduceScatter<T extends Differentiable>(
  group: Group,
  x: T,
  options: OpOptions & DimOptions,
): Started<T> {
  const call = new Call(group, 'reduceScatter', x, options);
  const op = call.checkOp(call.options.op);
  const parts = partsOf(call, 'whole', call.options);
  call.number(true, shapeText(call.shape, parts.dim), `, ${op}`);
  const { autograd } = call;
  const started = reduceParts(call, x, parts, { ...call.forward, op });
  const result = autograd.record('reduceScatter', started.result, x, (grad) => {
    const all = now(joinParts(call, grad, parts, call.backward));
    return op === 'avg' ? autograd.scale(all, 1 / group.size) : all;
  });
  return { ...started, result };
}

/** Returns this rank's part. Nothing is sent in forward. */
export function part<T extends Differentiable>(group: Group, x: T, options: PartOptions): T {
  const call = new Call(group, 'part', x, options);
  const before = call.checkUse('before', call.options.before);
  const parts = partsOf(call, 'whole', call.options);
  const { dim, from, own } = parts;
  const { autograd } = call;
  if (before === 'own') return autograd.narrow(x, dim, from, own);
  call.number(true, shapeText(call.shape, dim), ', before same');
  const result = autograd.untracked(() => autograd.narrow(x, dim, from, own));
  return autograd.record('part', result, x, (grad) => now(joinParts(call, grad, parts, call.backward)));
}
