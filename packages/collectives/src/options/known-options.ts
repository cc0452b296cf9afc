// The options that each call accepts, and PyTorch's names for them. checkOptions() runs on every call, before
// defaults are filled in.

import type {
  AfterOptions,
  DimOptions,
  ExchangeOptions,
  OpOptions,
  PartOptions,
  RootedOptions,
  TaggedOptions,
} from '../across/options.ts';
import type { Failure } from '../errors.ts';
import { badTimeout, isTimeout, unknownOptions, wrongOption } from './errors.ts';
import type { GroupOptions } from './group-options.ts';
import type { InitOptions } from './init-options.ts';
import type { JoinNcclOptions } from './join-nccl-options.ts';
import type { MeshOptions } from './mesh-options.ts';
import { unknownOption } from './option-names.ts';
import type {
  AllReduceOptions,
  AllToAllOptions,
  CallOptions,
  CollectiveOptions,
  CountsOptions,
  MessageOptions,
  ReduceOptions,
  RootOptions,
  ShrinkOptions,
  SubgroupOptions,
} from './options.ts';

/** Returns the names of all members of `Options`. The type makes the compiler require each of them. */
function namesOf<Options>(names: { readonly [Name in keyof Options]-?: true }): readonly string[] {
  return Object.keys(names);
}

const labelled = { timeoutMs: true, label: true } as const;
const call = namesOf<CallOptions>({ timeoutMs: true });
const collective = namesOf<CollectiveOptions>({ timeoutMs: true, label: true });
const root = namesOf<RootOptions>({ timeoutMs: true, label: true, root: true });
const counts = namesOf<CountsOptions>({ timeoutMs: true, label: true, counts: true });
const message = namesOf<MessageOptions>({ timeoutMs: true, tag: true });
const reductions = {
  timeoutMs: true,
  label: true,
  op: true,
  factor: true,
  reproducible: true,
  contributions: true,
} as const;
const subgroup = namesOf<SubgroupOptions>({ name: true, timeoutMs: true });

/** Accepted options by the name of the call. The Sync forms accept the same. */
const known = {
  allReduce: namesOf<AllReduceOptions>({ ...reductions, wire: true, residual: true }),
  reduce: namesOf<ReduceOptions & RootOptions>({ ...reductions, root: true }),
  broadcast: root,
  allGather: counts,
  gather: namesOf<RootOptions & CountsOptions>({ timeoutMs: true, label: true, root: true, counts: true }),
  scatter: namesOf<RootOptions & CountsOptions>({ timeoutMs: true, label: true, root: true, counts: true }),
  reduceScatter: namesOf<ReduceOptions & CountsOptions>({ ...reductions, counts: true }),
  allToAll: namesOf<AllToAllOptions>({ timeoutMs: true, label: true, sendCounts: true, recvCounts: true }),
  send: message,
  recv: message,
  batch: call,
  barrier: collective,
  monitoredBarrier: collective,
  broadcastObject: root,
  allGatherObject: collective,
  gatherObject: root,
  scatterObject: root,
  sendObject: message,
  recvObject: message,
  split: subgroup,
  subgroup,
  shrink: namesOf<ShrinkOptions>({ name: true, timeoutMs: true, without: true, waitMs: true }),
  'across.enter': collective,
  'across.allReduce': namesOf<AfterOptions & OpOptions>({ ...labelled, after: true, op: true }),
  'across.allGather': namesOf<AfterOptions & DimOptions>({
    ...labelled,
    after: true,
    dim: true,
    sizes: true,
  }),
  'across.part': namesOf<PartOptions>({ ...labelled, before: true, dim: true, sizes: true }),
  'across.reduceScatter': namesOf<OpOptions & DimOptions>({ ...labelled, op: true, dim: true, sizes: true }),
  'across.allToAll': namesOf<ExchangeOptions>({
    ...labelled,
    split: true,
    concat: true,
    sendSizes: true,
    recvSizes: true,
  }),
  'across.broadcast': namesOf<AfterOptions & RootedOptions>({ ...labelled, after: true, root: true }),
  'across.gather': namesOf<RootedOptions & DimOptions>({ ...labelled, root: true, dim: true, sizes: true }),
  'across.scatter': namesOf<RootedOptions & DimOptions>({ ...labelled, root: true, dim: true, sizes: true }),
  'across.reduce': namesOf<OpOptions & RootedOptions>({ ...labelled, op: true, root: true }),
  'across.send': namesOf<TaggedOptions>({ timeoutMs: true, tag: true }),
  'across.recv': namesOf<TaggedOptions>({ timeoutMs: true, tag: true }),
  mesh: namesOf<MeshOptions>({ name: true, timeoutMs: true, flat: true }),
  wait: call,
  init: namesOf<InitOptions>({
    rank: true,
    size: true,
    store: true,
    url: true,
    backend: true,
    timeoutMs: true,
    name: true,
  }),
  joinNccl: namesOf<JoinNcclOptions>({
    store: true,
    key: true,
    rank: true,
    size: true,
    timeoutMs: true,
    name: true,
  }),
  loopbackGroups: subgroup,
  Group: namesOf<GroupOptions>({
    name: true,
    timeoutMs: true,
    ranks: true,
    subgroups: true,
    survivors: true,
    onClose: true,
    instead: true,
    via: true,
    placement: true,
  }),
} as const satisfies Record<string, readonly string[]>;

export type CallWithOptions = keyof typeof known;

/**
 * PyTorch's names for our options. Options that ringwise does not have are not listed; `hints` may explain
 * them.
 */
const ofPyTorch = {
  timeout: 'timeoutMs',
  wait_timeout: 'timeoutMs',
  src: 'root',
  dst: 'root',
  group_src: 'root',
  group_dst: 'root',
  reduce_op: 'op',
  input_split_sizes: 'sendCounts',
  output_split_sizes: 'recvCounts',
  world_size: 'size',
  worldSize: 'size',
  init_method: 'url',
  initMethod: 'url',
  group_name: 'name',
  group_desc: 'name',
} as const;

const hints: Readonly<Record<string, string>> = {
  async_op: 'Every verb returns a Work at once; its Sync form blocks.',
  asyncOp: 'Every verb returns a Work at once; its Sync form blocks.',
  group: 'A group is what the call is made on: subgroup.allReduce(x).',
  process_group: 'A group is what the call is made on: subgroup.allReduce(x).',
  tensor: 'Buffers are arguments, not options.',
  tensor_list: 'Buffers are arguments, not options.',
  gather_list: 'Buffers are arguments, not options.',
  scatter_list: 'Buffers are arguments, not options.',
  object_list: 'Values are arguments, not options.',
  device_id: 'A group takes the device of the memory that it is given.',
};

/**
 * PyTorch's names by call, limited to the options that the call has: for messages `src` is not an option but
 * an argument.
 */
const renamedOf = Object.fromEntries(
  Object.entries(known).map(([name, names]: [string, readonly string[]]) => [
    name,
    Object.fromEntries(Object.entries(ofPyTorch).filter(([, ours]) => names.includes(ours))),
  ]),
) as Readonly<Record<CallWithOptions, Readonly<Record<string, string>>>>;

/** The options of a call that was given none, which need no check: it takes a fifth of the time before the backend. */
export const noOptions: Readonly<Record<string, never>> = Object.freeze({});

/**
 * Returns the failure for the first option that `verb` does not have, or null. Allocates nothing if all are
 * known.
 */
export function optionsFault(verb: CallWithOptions, options: unknown): Failure | null {
  const names = known[verb];
  if (unknownOption(options, names) === null) return null;
  const fault = unknownOption(options, names, renamedOf[verb])!;
  const key = /^unknown option '(.*?)'/.exec(fault)?.[1] ?? '';
  return unknownOptions(verb, fault, Object.hasOwn(hints, key) ? hints[key] : undefined);
}

/** The object whose `error` builds the errors of a call. */
interface Refusing {
  readonly error: (failure: Failure) => Error;
}

/** Throws if `options` is not an object, has a member that `verb` does not know, or a wrong `timeoutMs`. */
export function checkOptions(calls: Refusing, verb: CallWithOptions, options: unknown): void {
  if (options === noOptions) return;
  const fault = optionsFault(verb, options);
  if (fault !== null) throw calls.error(fault);
  const { timeoutMs } = (options ?? {}) as CallOptions;
  if (timeoutMs !== undefined && !isTimeout(timeoutMs)) throw calls.error(badTimeout(verb, timeoutMs));
}

/** Like checkOptions(), for calls that make a group and accept a name. */
export function checkGroupOptions(calls: Refusing, verb: CallWithOptions, options: SubgroupOptions): void {
  checkOptions(calls, verb, options);
  const { name } = options;
  if (name !== undefined && (typeof name !== 'string' || name === ''))
    throw calls.error(wrongOption(verb, 'name', 'a string that is not empty', name));
}

/**
 * Like checkOptions(), and throws for values of the wrong type that would otherwise be taken for the default.
 */
export function checkReduceOptions(
  calls: Refusing,
  verb: 'allReduce' | 'reduce' | 'reduceScatter',
  options: ReduceOptions,
): void {
  if (options === noOptions) return;
  checkOptions(calls, verb, options);
  const { reproducible, contributions } = options;
  if (reproducible !== undefined && typeof reproducible !== 'boolean')
    throw calls.error(wrongOption(verb, 'reproducible', 'true or false', reproducible));
  if (contributions !== undefined && !Array.isArray(contributions))
    throw calls.error(wrongOption(verb, 'contributions', 'a list of buffers', contributions));
}
