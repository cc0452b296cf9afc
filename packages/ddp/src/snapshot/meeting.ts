// The first exchange of a snapshot call: all ranks have come to the same call, or every one of them is told.
import { createHash } from 'node:crypto';
import { basename } from 'node:path';
import { CollectiveError, type Group } from '@ringwise/collectives';
import { notAllCalled, snapshotCallsDiffer } from '../errors.ts';
import { differingTexts } from '../wrapper/compare.ts';
import { bools, namingSnapshot, type SnapshotVerb } from './mismatch.ts';

/** Collective. Throws ERR_DDP_SNAPSHOT on all ranks unless all are in this call, for a file of this name. */
export async function meet(verb: SnapshotVerb, file: string, group: Group): Promise<void> {
  const name = basename(file);
  const own = bitsOf(name, bools[verb]);
  const all = new Uint8Array(own.length * group.size);
  try {
    await group.allGather({ data: own, dtype: 'bool' }, { data: all, dtype: 'bool' });
  } catch (error) {
    throw isAbsence(error) ? notAllCalled(verb, error.what, error.peers, error) : namingSnapshot(error);
  }
  if (all.every((bit, i) => bit === own[i % own.length])) return;
  const names = await differingTexts(group, JSON.stringify(name));
  if (names !== null) throw snapshotCallsDiffer(verb, names);
}

/** The SHA-256 of a text, bit by bit, and zeros. */
function bitsOf(text: string, length: number): Uint8Array<ArrayBuffer> {
  const bits = new Uint8Array(length);
  for (const [i, byte] of createHash('sha256').update(text).digest().entries()) {
    for (let bit = 0; bit < 8; bit++) bits[8 * i + bit] = (byte >> bit) & 1;
  }
  return bits;
}

/** Whether ranks have not come, but live. */
function isAbsence(error: unknown): error is CollectiveError {
  if (!CollectiveError.is(error)) return false;
  const { code, what } = error;
  return code === 'ERR_COLL_TIMEOUT' || (code === 'ERR_COLL_PEER_LOST' && what.includes('closed the group'));
}
