// Differentiable messages: the gradient travels back.
import { badRank } from '../errors.ts';
import type { Group } from '../group/group.ts';
import { badTag, shown } from '../options/errors.ts';
import type { Differentiable } from './autograd.ts';
import { Call, type Started } from './call.ts';
import { now } from './gathers.ts';
import type { TaggedOptions } from './options.ts';

/** Tags from here on belong to differentiable messages: four for each tag of the caller. */
const firstTag = 2 ** 28;
const maxTag = 2 ** 26 - 1;

/** Returns the tags of a message and of its gradient, which differ from those of a message without one. */
function tagsOf<T extends Differentiable>(call: Call<T>, { tag = 0 }: TaggedOptions): [number, number] {
  if (!(Number.isInteger(tag) && tag >= 0 && tag <= maxTag)) throw call.error(badTag(call.verb, tag, maxTag));
  const first = firstTag + 4 * tag + (call.autograd.isRecorded(call.x) ? 2 : 0);
  return [first, first + 1];
}

function sent<T extends Differentiable>(
  { autograd, group, ofMessage }: Call<T>,
  x: T,
  to: number,
  tag: number,
): Started<T> {
  const input = autograd.toFront(x, 0);
  return {
    work: group.send(input, to, { ...ofMessage, tag }),
    result: input,
    temporaries: [input],
    autograd,
  };
}

function received<T extends Differentiable>(
  { autograd, group, ofMessage }: Call<T>,
  like: T,
  shape: readonly number[],
  from: number,
  tag: number,
): Started<T> {
  const result = autograd.empty(like, shape);
  return { work: group.recv(result, from, { ...ofMessage, tag }), result, temporaries: [], autograd };
}

/**
 * Sends a gradient without waiting for its end: in a ring all ranks send before they receive. A failure of the message
 * fails the group, so the next call reports it.
 */
function sendBack<T extends Differentiable>(call: Call<T>, grad: T, to: number, tag: number): void {
  const { autograd, group, ofMessage } = call;
  const copy = autograd.copy(grad);
  autograd.keep(copy);
  const end = (): void => autograd.dispose(copy);
  group.send(copy, to, { ...ofMessage, tag }).then(end, end);
}

export function send<T extends Differentiable>(
  group: Group,
  x: T,
  to: number,
  options: TaggedOptions,
): Started<T> {
  const call = new Call(group, 'send', x, options);
  const { shape, autograd } = call;
  const [tag, back] = tagsOf(call, options);
  call.requireBlocking();
  const started = sent(call, x, to, tag);
  const result = autograd.record('send', autograd.zeros(x, []), x, (grad) =>
    now(received(call, grad, shape, to, back)),
  );
  return { ...started, result };
}

export function recv<T extends Differentiable>(
  group: Group,
  like: T,
  from: number,
  options: TaggedOptions,
): Started<T> {
  const call = new Call(group, 'recv', like, options);
  // The gradient goes back to this rank, so it must be known before the message has come.
  if (typeof from !== 'number') throw call.error(badRank(call.verb, 'peer', shown(from), group.size));
  const { shape, autograd } = call;
  const [tag, back] = tagsOf(call, options);
  call.requireBlocking();
  const started = received(call, like, shape, from, tag);
  const result = autograd.record('recv', started.result, like, (grad) => {
    sendBack(call, grad, from, back);
    return null;
  });
  return { ...started, result };
}
