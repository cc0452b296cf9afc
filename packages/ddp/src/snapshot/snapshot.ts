// Saves and loads a training run. When saving, rank 0 writes a file next to the target, flushes it to the
// disk and renames it, so that there is always a complete snapshot; the other ranks wait for the outcome.
// When loading, rank 0 reads and sends the bytes to all ranks. The number of ranks may have changed.
import type { Group } from '@ringwise/collectives';
import { checkFunction, checkGroup, checkOptions, messageOf, shown } from '../check.ts';
import { invalidArgument, snapshotFailed, tensorFailed } from '../errors.ts';
import { SnapshotFile, writeSnapshot } from './file.ts';
import { type Extent, encodeSnapshot, parseHeader, type Revive } from './format.ts';
import { meet } from './meeting.ts';
import { gathered, type OwnStates, ownStatesOf } from './own-state.ts';

/** Number of bytes that are read and sent at once. A larger array is read on its own. */
const window = 16 << 20;

/**
 * Saves `state`: plain objects and lists of JSON values, all other numbers, such as Infinity, bigints, typed arrays and
 * tensors (anything with the buffer protocol; on a device it needs `data()`, and tensors are copied to the host one at
 * a time).
 * Collective: every rank calls it with the same file name, and rank 0 writes.
 *
 * State that differs between ranks is saved for each rank: states of generators (`{ seed, offset }`), of
 * samplers and loaders, and values in perRank(). Every rank passes its own. All other state is rank 0's and
 * is ignored on other ranks.
 *
 * Resolves when the snapshot is on disk. If it fails, it rejects on all ranks, and the file of that name is
 * still the earlier snapshot (or already the complete new one, if only flushing the folder failed).
 *
 * @example
 * ```ts
 * await saveSnapshot('run.snapshot', { epoch: 3, net: net.stateDict(), optimizer: optimizer.stateDict() }, group);
 * const saved = await loadSnapshot<{ epoch: number }>('run.snapshot', group); // null if there is none
 * ```
 */
export async function saveSnapshot(file: string, state: unknown, group: Group): Promise<void> {
  checkArguments('saveSnapshot', file, group);
  await meet('saveSnapshot', file, group);
  const all = await group.gatherObject(collected(state), { root: 0 });
  await onRankZero('saveSnapshot', file, group, () => {
    const ranks = all!.map((own, rank) => {
      if (typeof own === 'string') throw new Error(`${own} (on rank ${rank})`);
      return own;
    });
    return writeSnapshot(file, encodeSnapshot(state, gathered(ranks)));
  });
}

/** Returns this rank's own state, or the message of an error in it. */
function collected(state: unknown): OwnStates | string {
  try {
    return ownStatesOf(state);
  } catch (error) {
    return (error as Error).message;
  }
}

/** Options of loadSnapshot(). */
export interface LoadSnapshotOptions {
  /**
   * Returns the replacement of a tensor, such as `({ data, shape }) => fromHost(data, shape).to('cuda')`.
   * Called for one tensor after the other, as they arrive. If it throws on a rank, loadSnapshot() rejects on all ranks.
   * Default: returns the SnapshotTensor itself.
   */
  readonly tensor?: Revive;
}

/**
 * Loads what saveSnapshot() has saved, on every rank; resolves with null if there is no such file.
 * Collective: every rank calls it with the same file name, and rank 0 reads. Each rank gets its own values
 * back. If the number of ranks has changed, generators continue on the ranks that had one, and further ranks
 * get new streams; states of loaders and values in perRank() are restored only if they were equal on all
 * ranks. Rejects with ERR_DDP_SNAPSHOT on all ranks if they cannot be restored, and for a damaged file.
 */
export async function loadSnapshot<T = unknown>(
  file: string,
  group: Group,
  options: LoadSnapshotOptions = {},
): Promise<T | null> {
  checkArguments('loadSnapshot', file, group);
  checkOptions('loadSnapshot', options, { known: ['tensor'], renamed: { map_location: 'tensor' } });
  const { tensor = (saved) => saved } = options;
  checkFunction('loadSnapshot: tensor', tensor);
  await meet('loadSnapshot', file, group);
  let opened: SnapshotFile | null = null;
  try {
    const header = await onRankZero('loadSnapshot', file, group, async () => {
      opened = await SnapshotFile.open(file);
      return opened?.header ?? null;
    });
    if (header === null) return null;
    const { extents, value } = parseHeader(header, tensor, group);
    let failure: { readonly error: unknown } | null = null;
    for (const { offset, bytes, inside } of windowsOf(extents)) {
      let memory = new Uint8Array(group.rank === 0 ? 0 : bytes);
      await onRankZero('loadSnapshot', file, group, async () => {
        memory = (await opened?.read(offset, bytes)) ?? memory;
      });
      if (group.size > 1 && bytes > 0) await group.broadcast(memory, { root: 0 });
      for (const extent of inside) {
        if (failure !== null) break;
        const at = extent.offset - offset;
        try {
          // If the array is alone in its window, it keeps the memory that was read.
          extent.fill(inside.length === 1 ? memory : memory.slice(at, at + extent.bytes));
        } catch (error) {
          // This rank still takes part in the remaining broadcasts, so that the other ranks do not wait for it.
          failure = { error };
        }
      }
    }
    await checkFilled(file, group, failure);
    return value() as T;
  } finally {
    await (opened as SnapshotFile | null)?.close();
  }
}

/** Rejects on all ranks if the option `tensor` has thrown on one: there with its error. Collective. */
async function checkFilled(
  file: string,
  group: Group,
  failure: { readonly error: unknown } | null,
): Promise<void> {
  const messages = await group.allGatherObject(failure && messageOf(failure.error));
  if (failure !== null) throw failure.error;
  const rank = messages.findIndex((message) => message !== null);
  if (rank !== -1) throw tensorFailed(file, rank, messages[rank]!);
}

function checkArguments(verb: string, file: unknown, group: unknown): void {
  if (typeof file !== 'string' || file === '') {
    throw invalidArgument(`${verb}: file`, 'the path of a file', shown(file));
  }
  checkGroup(verb, group);
}

/** Groups extents into windows that are read at once. */
function windowsOf(extents: readonly Extent[]) {
  const windows: { offset: number; bytes: number; inside: Extent[] }[] = [];
  for (const extent of extents) {
    const last = windows.at(-1);
    const bytes = last === undefined ? 0 : extent.offset + extent.bytes - last.offset;
    if (last === undefined || bytes > window) {
      windows.push({ offset: extent.offset, bytes: extent.bytes, inside: [extent] });
    } else {
      last.bytes = bytes;
      last.inside.push(extent);
    }
  }
  return windows;
}

/**
 * Runs `work` on rank 0 and sends its outcome to all ranks: resolves with its result on every rank, or rejects
 * on every rank. Collective.
 */
async function onRankZero<T>(verb: string, file: string, group: Group, work: () => Promise<T>): Promise<T> {
  let outcome: { readonly value: T } | { readonly error: string } | undefined;
  let cause: unknown;
  if (group.rank === 0) {
    try {
      outcome = { value: await work() };
    } catch (error) {
      cause = error;
      outcome = { error: messageOf(error) };
    }
  }
  const told = await group.broadcastObject(outcome, { root: 0 });
  if ('error' in told) throw snapshotFailed(verb, file, told.error, cause);
  return told.value;
}
