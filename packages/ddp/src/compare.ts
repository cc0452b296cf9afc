// What all ranks must agree on is compared as text: a hash first, and the texts themselves only if hashes differ.
// Every rank sees the same hashes and texts, so all come to the same verdict and can throw the same sentence.
import { createHash } from 'node:crypto';
import type { Group } from '@ringwise/collectives';

/** A parameter's name, and what else about it has to agree. */
export type Entry = readonly [name: string, detail: string];

export interface Disagreement {
  /** The first position where the lists differ. */
  readonly index: number;
  readonly name: string;
  /** What each rank has there, in rank order. */
  readonly values: readonly string[];
}

/** The first entry that is not the same on all ranks, or null. Collective. */
export async function firstDisagreement(
  group: Group,
  entries: readonly Entry[],
): Promise<Disagreement | null> {
  const texts = await differingTexts(group, JSON.stringify(entries));
  if (texts === null) return null;
  const lists = texts.map((text) => JSON.parse(text) as Entry[]);
  for (let index = 0; ; index++) {
    const values = lists.map((list) => describe(list, index));
    const name = lists.find((list) => index < list.length)?.[index]?.[0] ?? '';
    if (values.some((value) => value !== values[0])) return { index, name, values };
  }
}

/** Null if `text` is the same on all ranks, otherwise every rank's text in rank order. Collective. */
export async function differingTexts(group: Group, text: string): Promise<string[] | null> {
  const hash = createHash('sha256').update(text).digest();
  const hashes = await gather(group, hash);
  if (hashes.every((other) => hash.equals(other))) return null;

  const bytes = Buffer.from(text);
  const lengths = new Uint32Array(group.size);
  await group.allGather(Uint32Array.of(bytes.length), lengths);
  const padded = new Uint8Array(Math.max(...lengths));
  padded.set(bytes);
  const all = await gather(group, padded);
  return all.map((part, rank) => Buffer.from(part.subarray(0, lengths[rank])).toString());
}

async function gather(group: Group, bytes: Uint8Array): Promise<Uint8Array[]> {
  const { length } = bytes;
  const all = new Uint8Array(length * group.size);
  await group.allGather(bytes, all);
  return Array.from({ length: group.size }, (_, rank) => all.subarray(rank * length, (rank + 1) * length));
}

// The name is quoted as JSON, so that different entries never read the same.
function describe(list: readonly Entry[], index: number): string {
  const entry = list[index];
  return entry ? `${JSON.stringify(entry[0])} ${entry[1]}` : `no parameter (${list.length} in all)`;
}
