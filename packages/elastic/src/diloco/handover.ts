// Brings the ranks of a group to the same state: at the beginning, when ranks join, and when some ranks have applied an
// average that others have not. A rank with the latest state sends it to the ranks without it.
import { elementsOf, type Group, type TypedArray } from '@ringwise/collectives';
import type { FrozenParam, StateBuffer } from '@ringwise/ddp';
import { notInSync, settingsDiffer } from './errors.ts';
import type { Fragment } from './fragment.ts';
import type { PlainState } from './outer-state.ts';

/** The facts about a rank that the other ranks need. */
interface Facts {
  /** Model and options, as text that is equal on all ranks. */
  readonly settings: string;
  /** Number of averages that the rank has applied; null if it has no state of the training yet. */
  readonly applied: number | null;
  /** The hash of each fragment's global parameters. */
  readonly hashes: readonly number[];
}

/** The rank that sends its state and the ranks that receive it. Equal on all ranks. */
export interface Handover {
  readonly source: number;
  readonly receivers: readonly number[];
  /** Number of averages in the state of the source. */
  readonly applied: number;
}

/**
 * Compares models and options, finds the rank with the latest state, and checks that all ranks with that state have the
 * same global parameters. Collective. All ranks throw the same error.
 */
export async function planHandover(verb: string, group: Group, own: Facts): Promise<Handover> {
  const all = await group.allGatherObject(own);
  if (all.some(({ settings }) => settings !== all[0]!.settings))
    throw settingsDiffer(
      verb,
      all.map(({ settings }) => settings),
    );
  const applied = all.reduce((most, each) => Math.max(most, each.applied ?? 0), 0);
  const latest = [...all.keys()].filter((rank) => all[rank]!.applied === applied);
  const source = latest[0] ?? 0; // at the beginning no rank has a state, and rank 0's parameters are taken
  for (const [fragment, hash] of all[source]!.hashes.entries()) {
    if (latest.every((rank) => all[rank]!.hashes[fragment] === hash)) continue;
    const differing = all.map(({ hashes }, rank) =>
      latest.includes(rank) ? hashes[fragment]!.toString(16) : 'none',
    );
    throw notInSync(verb, fragment, differing);
  }
  const receivers = [...all.keys()].filter((rank) => rank !== source && !latest.includes(rank));
  return { source, receivers, applied };
}

/** Progress of the source in its round of averages. */
export interface RoundProgress {
  readonly steps: number;
  /** Averages that have started and are not applied, in order. */
  readonly pending: readonly { readonly fragment: number; readonly dueStep: number }[];
  /** Fragments whose average is due in this step and has not started. */
  readonly toStart: readonly number[];
  /** Whether the ranks are in finish(). */
  readonly isFinishing: boolean;
}

/**
 * Sends the global parameters, the state of the outer optimizers and `progress` from the source to the receivers.
 * Collective: the other ranks take part too. Overwrites the `flat` of all fragments. Returns the source's progress.
 */
export async function handOver(
  group: Group,
  { source, receivers }: Handover,
  fragments: readonly Fragment[],
  progress: RoundProgress,
): Promise<RoundProgress> {
  const isSource = group.rank === source;
  const isReceiver = receivers.includes(group.rank);
  const told = await group.broadcastObject(
    isSource ? { progress, plain: fragments.map(({ outer }) => outer?.plain() ?? null) } : undefined,
    { root: source },
  );
  for (const [f, fragment] of fragments.entries()) {
    const plain: PlainState | null = told.plain[f]!;
    if (isReceiver && plain !== null) fragment.outer!.prepare(plain);
    if (isSource) fragment.pack();
    await group.broadcast(fragment.flat, { root: source });
    if (isReceiver) fragment.unpack();
    if (plain === null) continue;
    const memory = plain.names.length === 0 ? [] : fragment.outer!.memory();
    await sendMemory(group, source, memory, isSource || isReceiver);
    if (isReceiver) fragment.outer!.complete(plain);
  }
  return told.progress;
}

/** Sends the frozen parameters and state buffers of a model to new ranks. Collective. */
export async function handOverRest(
  group: Group,
  { source }: Handover,
  rest: readonly (FrozenParam | StateBuffer)[],
  isNew: boolean,
): Promise<void> {
  const memory = rest.map(({ value }) => elementsOf(value) as TypedArray);
  await sendMemory(group, source, memory, isNew || group.rank === source);
  if (isNew) for (const { value } of rest) value.written?.();
}

/** Broadcasts memory from the source. Ranks that are neither the source nor receivers take part with copies. */
async function sendMemory(
  group: Group,
  source: number,
  memory: readonly TypedArray[],
  isInEarnest: boolean,
): Promise<void> {
  const bytes = memory.map(
    ({ buffer, byteOffset, byteLength }) => new Uint8Array(buffer, byteOffset, byteLength),
  );
  for (const each of bytes) {
    if (each.length > 0) await group.broadcast(isInEarnest ? each : each.slice(), { root: source });
  }
}
