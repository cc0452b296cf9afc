// A training run on disk. Rank 0 writes to a file beside the target, forces it to the disk and renames it, so that there is
// always a whole snapshot; the others wait for the outcome. Reading, rank 0 reads, and sends the bytes to all: the number
// of ranks may be another one than before.
import { open, readFile, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Group } from '@ringwise/collectives';
import { snapshotFailed } from '../errors.ts';
import { decodeSnapshot, encodeSnapshot, type Revive } from './format.ts';

/**
 * Writes `state` of rank 0: plain objects and lists of JSON values, bigints, typed arrays and tensors (anything with the
 * buffer protocol). Collective: other ranks pass what they have, which is not looked at. When it returns, the snapshot is on
 * disk; if it fails, it fails on all ranks, and an earlier snapshot of that name is as it was.
 */
export async function saveSnapshot(file: string, state: unknown, group: Group): Promise<void> {
  await onRankZero('saveSnapshot', file, group, () => write(file, encodeSnapshot(state)));
}

export interface LoadSnapshotOptions {
  /** What takes the place of a tensor, such as `({ data, shape }) => fromHost(data, shape)`. Default: the object itself. */
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
  let bytes = new Uint8Array();
  const length = await onRankZero('loadSnapshot', file, group, async () => {
    const found = await readFile(file).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return null;
      throw error;
    });
    if (found === null) return -1;
    bytes = new Uint8Array(found);
    return bytes.length;
  });
  if (length === -1) return null;
  if (group.rank !== 0) bytes = new Uint8Array(length);
  if (group.size > 1) await group.broadcast(bytes, { root: 0 });
  return decodeSnapshot(bytes, file, tensor) as T;
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

async function write(file: string, pieces: readonly Uint8Array[]): Promise<void> {
  const temporary = `${file}.${process.pid}.tmp`;
  try {
    const handle = await open(temporary, 'w');
    try {
      for (const piece of pieces) await handle.writeFile(piece);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temporary, file);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  const folder = await open(dirname(file), 'r');
  try {
    await folder.sync(); // the new name
  } finally {
    await folder.close();
  }
}
