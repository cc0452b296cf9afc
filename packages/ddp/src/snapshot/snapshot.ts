// A training run on disk. Rank 0 writes to a file beside the target, forces it to the disk and renames it, so that there is
// always a whole snapshot; the others wait for the outcome. Reading, rank 0 reads, and sends the bytes to all: the number
// of ranks may be another one than before.
import type { Group } from '@ringwise/collectives';
import { checkFunction, checkGroup, checkOptions, shown } from '../check.ts';
import { invalidArgument, snapshotFailed } from '../errors.ts';
import { SnapshotFile, writeSnapshot } from './file.ts';
import { type Extent, encodeSnapshot, parseHeader, type Revive } from './format.ts';
import { meet } from './meeting.ts';
import { gathered, type OwnStates, ownStatesOf } from './own-state.ts';

/** Bytes that are read and sent at once; a larger array is alone. */
const window = 16 << 20;

/**
 * Writes `state`: plain objects and lists of JSON values, bigints, typed arrays and tensors (anything with the buffer
 * protocol; on a device it needs `data()`, and one tensor after the other comes to the host). Collective: every rank calls
 * it with the same file name, rank 0 writes. What each rank has of its own is saved for each: the states of generators
 * (`{ seed, offset }`) and of samplers and loaders, and values in perRank(); every rank passes its own, at the same extent.
 * All else is rank 0's, and is not looked at on other ranks. When it returns, the snapshot is on disk; if it fails, it fails
 * on all ranks, and an earlier snapshot of that name is as it was.
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

/** What this rank has of its own, or what is wrong with it. */
function collected(state: unknown): OwnStates | string {
  try {
    return ownStatesOf(state);
  } catch (error) {
    return (error as Error).message;
  }
}

export interface LoadSnapshotOptions {
  /**
   * What takes the place of a tensor, such as `({ data, shape }) => fromHost(data, shape).to('cuda')`. Called for one tensor
   * after the other, as they arrive. Default: the object itself.
   */
  readonly tensor?: Revive;
}

/**
 * What saveSnapshot() has written, on every rank; null if there is no such file. Collective: every rank calls it with the
 * same file name, rank 0 reads. What each rank had of its own, each gets back. On another number of ranks than before,
 * generators go on as far as there are ranks, and further ranks get streams that none has used; loaders and values in
 * perRank() can be dealt out only if they were the same on all. Throws ERR_DDP_SNAPSHOT, on all ranks, where they cannot,
 * and for a damaged file.
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
    for (const { offset, bytes, inside } of windowsOf(extents)) {
      let memory = new Uint8Array(group.rank === 0 ? 0 : bytes);
      await onRankZero('loadSnapshot', file, group, async () => {
        memory = (await opened?.read(offset, bytes)) ?? memory;
      });
      if (group.size > 1 && bytes > 0) await group.broadcast(memory, { root: 0 });
      for (const extent of inside) {
        const at = extent.offset - offset;
        // An array that is alone keeps what was read for it.
        extent.fill(inside.length === 1 ? memory : memory.slice(at, at + extent.bytes));
      }
    }
    return value() as T;
  } finally {
    await (opened as SnapshotFile | null)?.close();
  }
}

function checkArguments(verb: string, file: unknown, group: unknown): void {
  if (typeof file !== 'string' || file === '') {
    throw invalidArgument(`${verb}: file`, 'the path of a file', shown(file));
  }
  checkGroup(verb, group);
}

/** What is read at once. */
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

/** Runs `work` on rank 0 and tells all what came of it. */
async function onRankZero<T>(verb: string, file: string, group: Group, work: () => Promise<T>): Promise<T> {
  let outcome: { readonly value: T } | { readonly error: string } | undefined;
  let cause: unknown;
  if (group.rank === 0) {
    try {
      outcome = { value: await work() };
    } catch (error) {
      cause = error;
      outcome = { error: error instanceof Error ? error.message : String(error) };
    }
  }
  const told = await group.broadcastObject(outcome, { root: 0 });
  if ('error' in told) throw snapshotFailed(verb, file, told.error, cause);
  return told.value;
}
