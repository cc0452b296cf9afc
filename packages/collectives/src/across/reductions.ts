// Differentiable verbs that keep the shape: enter, allReduce, reduce and broadcast.
import type { Group } from '../group/group.ts';
import type { CollectiveOptions } from '../options/options.ts';
import type { Differentiable } from './autograd.ts';
import { Call, type Started, shapeText } from './call.ts';
import { now } from './gathers.ts';
import type { AfterOptions, DifferentiableOp, OpOptions, RootedOptions } from './options.ts';

/** Starts to reduce a copy of `x`. */
function reduceCopy<T extends Differentiable>(
  { autograd, group }: Call<T>,
  x: T,
  options: object,
  op: DifferentiableOp,
): Started<T> {
  const result = autograd.copy(x);
  return { work: group.allReduce(result, { ...options, op }), result, temporaries: [], autograd };
}

/** Starts to reduce a copy of `x` to the root. Only the root's copy becomes the result of the verb. */
function reduceToRoot<T extends Differentiable>(
  { autograd, group }: Call<T>,
  x: T,
  root: number,
  options: object,
  op: DifferentiableOp,
): Started<T> {
  const copy = autograd.copy(x);
  return { work: group.reduce(copy, { ...options, op, root }), result: copy, temporaries: [], autograd };
}

/** Starts to send the root's `x` to all ranks. Each receives it in a new tensor. */
function sendToAll<T extends Differentiable>(
  { autograd, group }: Call<T>,
  x: T,
  shape: readonly number[],
  root: number,
  options: object,
): Started<T> {
  const result = group.rank === root ? autograd.copy(x) : autograd.empty(x, shape);
  return { work: group.broadcast(result, { ...options, root }), result, temporaries: [], autograd };
}

/** Returns `x`. Nothing is sent in forward. */
export function enter<T extends Differentiable>(group: Group, x: T, options: CollectiveOptions): T {
  const call = new Call(group, 'enter', x, options);
  call.number(true, shapeText(call.shape));
  return call.autograd.record('enter', x, x, (grad) => now(reduceCopy(call, grad, call.backward, 'sum')));
}

export function allReduce<T extends Differentiable>(
  group: Group,
  x: T,
  options: AfterOptions & OpOptions,
): Started<T> {
  const call = new Call(group, 'allReduce', x, options);
  const after = call.checkUse('after', call.options.after);
  const op = call.checkOp(call.options.op);
  call.number(after === 'own', shapeText(call.shape), `, after ${after}`);
  const { autograd } = call;
  const started = reduceCopy(call, x, call.forward, op);
  const result = autograd.record('allReduce', started.result, x, (grad) => {
    if (after === 'own') return now(reduceCopy(call, grad, call.backward, op));
    return op === 'avg' ? autograd.scale(grad, 1 / group.size) : grad;
  });
  return { ...started, result };
}

export function reduce<T extends Differentiable>(
  group: Group,
  x: T,
  options: OpOptions & RootedOptions,
): Started<T> {
  const call = new Call(group, 'reduce', x, options);
  const op = call.checkOp(call.options.op);
  const { root = 0 } = call.options;
  const { shape, autograd } = call;
  call.number(true, shapeText(call.shape));
  const started = reduceToRoot(call, x, root, call.forward, op);
  const isRoot = group.rank === root;
  const output = isRoot ? started.result : autograd.zeros(x, []);
  const result = autograd.record('reduce', output, x, (grad) => {
    const whole = now(sendToAll(call, grad, shape, root, call.backward));
    return op === 'avg' ? autograd.scale(whole, 1 / group.size) : whole;
  });
  return { ...started, result, temporaries: isRoot ? [] : [started.result] };
}

export function broadcast<T extends Differentiable>(
  group: Group,
  x: T,
  options: AfterOptions & RootedOptions,
): Started<T> {
  const call = new Call(group, 'broadcast', x, options);
  const after = call.checkUse('after', call.options.after);
  const { root = 0 } = call.options;
  call.number(after === 'own', shapeText(call.shape), `, after ${after}`);
  const started = sendToAll(call, x, call.shape, root, call.forward);
  const isRoot = group.rank === root;
  const result = call.autograd.record('broadcast', started.result, x, (grad) => {
    if (after === 'same') return isRoot ? grad : null;
    const sum = now(reduceToRoot(call, grad, root, call.backward, 'sum'));
    return isRoot ? sum : null;
  });
  return { ...started, result };
}
