// The first exchange of a snapshot call: checks that all ranks have made the same call; otherwise all ranks
// throw an error that says so.
import { createHash } from 'node:crypto';
import { basename } from 'node:path';
import { CollectiveError, type Group } from '@ringwise/collectives';
import { notAllCalled, snapshotCallsDiffer } from '../errors.ts';
import { differingTexts } from '../wrapper/compare.ts';
import { bools, namingSnapshot, type SnapshotVerb } from './mismatch.ts';

/**
 * Checks that all ranks are in this call, for a file of this name. Collective. Rejects with ERR_DDP_SNAPSHOT
 * on all ranks if not.
 */
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

/** Returns the SHA-256 of a text as one element per bit, followed by zeros. */
function bitsOf(text: string, length: number): Uint8Array<ArrayBuffer> {
  const bits = new Uint8Array(length);
  for (const [i, byte] of createHash('sha256').update(text).digest().entries()) {
    for (let bit = 0; bit < 8; bit++) bits[8 * i + bit] = (byte >> bit) & 1;
  }
  return bits;
}

/** Returns whether the error shows that ranks are alive but did not make the call. */
function isAbsence(error: unknown): error is CollectiveError {
  if (!CollectiveError.is(error)) return false;
  const { code, what } = error;
  return code === 'ERR_COLL_TIMEOUT' || (code === 'ERR_COLL_PEER_LOST' && what.includes('closed the group'));
}
