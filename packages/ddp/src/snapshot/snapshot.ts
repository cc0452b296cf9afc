// A training run on disk. Rank 0 writes to a file beside the target, forces it to the disk and renames it, so that there is
// always a whole snapshot; the others wait for the outcome. Reading, rank 0 reads, and sends the bytes to all: the number
// of ranks may be another one than before.
import type { Group } from '@ringwise/collectives';
import { snapshotFailed } from '../errors.ts';
import { SnapshotFile, writeSnapshot } from './file.ts';
import { encodeSnapshot, type Place, parseHeader, type Revive } from './format.ts';

/** Bytes that are read and sent at once; a larger array is alone. */
const window = 16 << 20;

/**
 * Writes `state` of rank 0: plain objects and lists of JSON values, bigints, typed arrays and tensors (anything with the
 * buffer protocol; on a device it needs `data()`, and one tensor after the other comes to the host). Collective: other ranks
 * pass what they have, which is not looked at. When it returns, the snapshot is on disk; if it fails, it fails on all ranks,
 * and an earlier snapshot of that name is as it was.
 */
export async function saveSnapshot(file: string, state: unknown, group: Group): Promise<void> {
  await onRankZero('saveSnapshot', file, group, () => writeSnapshot(file, encodeSnapshot(state)));
}

export interface LoadSnapshotOptions {
  /**
   * What takes the place of a tensor, such as `({ data, shape }) => fromHost(data, shape).to('cuda')`. Called for one tensor
   * after the other, as they arrive. Default: the object itself.
   */
  readonly tensor?: Revive;
}

/**
 * What saveSnapshot() has written, on every rank; null if there is no such file. Collective; only rank 0 reads. Throws
 * ERR_DDP_SNAPSHOT, on all ranks, for a damaged file.
 */
export async function loadSnapshot<T = unknown>(
  file: string,
  group: Group,
  { tensor = (saved) => saved }: LoadSnapshotOptions = {},
): Promise<T | null> {
  let opened: SnapshotFile | null = null;
  try {
    const header = await onRankZero('loadSnapshot', file, group, async () => {
      opened = await SnapshotFile.open(file);
      return opened?.header ?? null;
    });
    if (header === null) return null;
    const { places, value } = parseHeader(header, tensor);
    for (const { offset, bytes, inside } of windowsOf(places)) {
      let memory = new Uint8Array(group.rank === 0 ? 0 : bytes);
      await onRankZero('loadSnapshot', file, group, async () => {
        memory = (await opened?.read(offset, bytes)) ?? memory;
      });
      if (group.size > 1 && bytes > 0) await group.broadcast(memory, { root: 0 });
      for (const place of inside) {
        const at = place.offset - offset;
        // An array that is alone keeps what was read for it.
        place.fill(inside.length === 1 ? memory : memory.slice(at, at + place.bytes));
      }
    }
    return value() as T;
  } finally {
    await (opened as SnapshotFile | null)?.close();
  }
}

/** What is read at once. */
function windowsOf(places: readonly Place[]) {
  const windows: { offset: number; bytes: number; inside: Place[] }[] = [];
  for (const place of places) {
    const last = windows.at(-1);
    const bytes = last === undefined ? 0 : place.offset + place.bytes - last.offset;
    if (last === undefined || bytes > window) {
      windows.push({ offset: place.offset, bytes: place.bytes, inside: [place] });
    } else {
      last.bytes = bytes;
      last.inside.push(place);
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
