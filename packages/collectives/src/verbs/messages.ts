// send, recv and batch: messages from one rank to another.
import type { Recv, Send } from '../backend.ts';
import { badRank } from '../errors.ts';
import type { Admission } from '../group/admission.ts';
import { asBuffer, type BufferLike, type BufferView } from '../group/buffer.ts';
import type { LastStep } from '../group/steps.ts';
import { badTag, shown, unknownOptions, wrongOption } from '../options/errors.ts';
import { checkOptions } from '../options/known-options.ts';
import { unknownOption } from '../options/option-names.ts';
import {
  anySource,
  type CallOptions,
  type Message,
  type MessageOptions,
  type Source,
} from '../options/options.ts';

/**
 * The largest tag for callers. Higher tags are used by the object forms and the agreement of the nccl
 * backend.
 */
export const maxTag = 2 ** 29 - 1;

export function send(group: Admission, buffer: BufferLike, to: number, options: MessageOptions): Send {
  checkOptions(group, 'send', options);
  return group.acceptMessage(sendOf(group, buffer, to, options));
}

export function recv(group: Admission, buffer: BufferLike, from: Source, options: MessageOptions): Recv {
  checkOptions(group, 'recv', options);
  return group.acceptMessage(recvOf(group, buffer, from, options));
}

/** Returns the steps of a batch. Its value is the other side's rank of each message. */
export function batch(
  group: Admission,
  messages: readonly Message[],
  options: CallOptions,
): LastStep<number[]> {
  checkOptions(group, 'batch', options);
  checkMessages(group, messages);
  const operationOf = (message: Message) => {
    const { tag = 0 } = message;
    if ('send' in message) return sendOf(group, message.send, message.to, { ...options, tag });
    return recvOf(group, message.recv, message.from, { ...options, tag });
  };
  const buffers = { send: [] as BufferView[], recv: [] as BufferView[] };
  for (const message of messages) {
    const operation = operationOf(message);
    group.check(operation);
    buffers[operation.verb].push(operation.buffer);
  }
  group.checkApart('batch', [
    { name: 'send', views: buffers.send, isWritten: false },
    { name: 'recv', views: buffers.recv, isWritten: true },
  ]);
  group.tell('recv', buffers.recv);
  const operations = messages.map((message) => group.countMessage(operationOf(message)));
  return { operations, finish: (sources) => operations.map(({ peer }, index) => sources[index] ?? peer) };
}

const expectedMessages = 'a list of { send, to, tag } and { recv, from, tag }';
const foreignNames = { dst: 'to', src: 'from', peer: 'to or from', group_peer: 'to or from' };

function checkMessages(group: Admission, messages: readonly Message[]): void {
  if (!Array.isArray(messages))
    throw group.error(wrongOption('batch', 'messages', expectedMessages, messages));
  for (const [index, message] of messages.entries()) {
    const isObject = typeof message === 'object' && message !== null;
    const isSend = isObject && 'send' in message;
    if (!isSend && !(isObject && 'recv' in message))
      throw group.error(
        wrongOption('batch', `message ${index}`, '{ send, to, tag } or { recv, from, tag }', message),
      );
    const names = isSend ? ['send', 'to', 'tag'] : ['recv', 'from', 'tag'];
    const fault = unknownOption(message, names, foreignNames);
    if (fault !== null) throw group.error(unknownOptions('batch', `${fault} (message ${index})`));
  }
}

function sendOf(group: Admission, like: BufferLike, peer: number, options: MessageOptions): Send {
  const buffer = asBuffer(like, 'send');
  const { timeoutMs = group.timeoutMs } = options;
  const tag = tagOf(group, 'send', options);
  // anySource, a symbol, can be compared with no number.
  if (typeof peer !== 'number') throw group.error(badRank('send', 'peer', shown(peer), group.size));
  return { verb: 'send', seq: group.messageSeq('send', peer), timeoutMs, buffer, peer, tag };
}

function recvOf(group: Admission, like: BufferLike, from: Source, options: MessageOptions): Recv {
  const buffer = asBuffer(like, 'recv');
  const { timeoutMs = group.timeoutMs } = options;
  const tag = tagOf(group, 'recv', options);
  const peer = peerOf(group, 'recv', from);
  return { verb: 'recv', seq: group.messageSeq('recv', peer), timeoutMs, buffer, peer, tag };
}

/**
 * Returns the peer of a receive as operations name it, with -1 for any rank. Throws if the caller itself
 * passes -1.
 */
export function peerOf(group: Admission, verb: string, from: Source): number {
  if (from === anySource) return -1;
  if (typeof from === 'number' && from >= 0) return from;
  throw group.error(badRank(verb, 'peer', shown(from), group.size));
}

export function tagOf(group: Admission, verb: string, { tag = 0 }: MessageOptions): number {
  if (Number.isInteger(tag) && tag >= 0 && tag <= maxTag) return tag;
  throw group.error(badTag(verb, tag, maxTag));
}
