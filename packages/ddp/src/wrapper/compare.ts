// Compares texts between the ranks: first their hashes, and the texts themselves only if hashes differ. Every
// rank sees the same hashes and texts, so all ranks come to the same result and can throw the same error.
import { createHash } from 'node:crypto';
import type { Group } from '@ringwise/collectives';
import { DdpError, refused } from '../errors.ts';
import { namingSnapshot } from '../snapshot/mismatch.ts';

/** A parameter's name, and a description of everything else that must agree. */
export type Entry = readonly [name: string, detail: string];

export interface Disagreement {
  /** The first position at which the lists differ. */
  readonly index: number;
  readonly name: string;
  /**
   * Each rank's entry at that position, or its entry of that name, in rank order.
   */
  readonly values: readonly string[];
}

/** A rank's contribution: its list, or the error that prevented it. */
type Listed =
  | { readonly entries: readonly Entry[] }
  | { readonly message: string; readonly params: readonly string[] };

/**
 * Returns the first entry that is not the same on all ranks, or null. Collective. `list` is called before
 * anything is sent; if it throws on one rank, all ranks throw its error.
 */
export async function firstDisagreement(
  group: Group,
  list: () => readonly Entry[],
): Promise<Disagreement | null> {
  let own: Listed;
  let cause: unknown;
  try {
    own = { entries: list() };
  } catch (error) {
    cause = error;
    const { message } = error instanceof Error ? error : new Error(String(error));
    own = { message, params: DdpError.is(error) ? error.params : [] };
  }
  const texts = await differingTexts(group, JSON.stringify(own));
  if (texts === null) {
    if (cause !== undefined) throw cause;
    return null;
  }
  const all = texts.map((text) => JSON.parse(text) as Listed);
  const rank = all.findIndex((listed) => 'message' in listed);
  const first = all[rank];
  if (first !== undefined && 'message' in first) throw refused(first.message, first.params, rank, cause);
  return disagreementOf(all.map((listed) => ('entries' in listed ? listed.entries : [])));
}

function disagreementOf(lists: readonly (readonly Entry[])[]): Disagreement {
  for (let index = 0; ; index++) {
    const values = lists.map((list) => describe(list, list[index]));
    if (values.every((value) => value === values[0])) continue;
    const names = lists.map((list) => list[index]?.[0]).filter((name) => name !== undefined);
    // If all ranks have an entry of one of these names with different details, report that entry: it explains more than
    // the entries at this position.
    const shared = names.find((name) => {
      const details = lists.map((list) => list.find(([other]) => other === name)?.[1]);
      return !details.includes(undefined) && details.some((detail) => detail !== details[0]);
    });
    if (shared === undefined) return { index, name: names[0] ?? '', values };
    const found = lists.map((list) => list.find(([name]) => name === shared));
    return { index, name: shared, values: lists.map((list, rank) => describe(list, found[rank])) };
  }
}

/**
 * Resolves with null if `text` is the same on all ranks, otherwise with every rank's text in rank order.
 * Collective.
 */
export async function differingTexts(group: Group, text: string): Promise<string[] | null> {
  try {
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
  } catch (error) {
    throw namingSnapshot(error);
  }
}

async function gather(group: Group, bytes: Uint8Array): Promise<Uint8Array[]> {
  const { length } = bytes;
  const all = new Uint8Array(length * group.size);
  await group.allGather(bytes, all);
  return Array.from({ length: group.size }, (_, rank) => all.subarray(rank * length, (rank + 1) * length));
}

// JSON quotes the name, so that different entries have different texts.
function describe(list: readonly Entry[], entry: Entry | undefined): string {
  return entry ? `${JSON.stringify(entry[0])} ${entry[1]}` : `no parameter (${list.length} in all)`;
}
