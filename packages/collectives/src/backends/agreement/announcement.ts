// What a rank says it has called: a text with a line for each operation of one call. Short ones are announced as they are,
// longer ones by their length, a digest and their beginning. All announcements have the same length.
export const announcedBytes = 160;
const headBytes = 8;

export interface Announcement {
  readonly bytes: Uint8Array;
  /** Bytes of the whole text. */
  readonly length: number;
  /** As much of it as has been announced. */
  readonly text: Uint8Array;
}

export const textOf = (lines: readonly string[]): Uint8Array => Buffer.from(lines.join('\n'));

export function announce(text: Uint8Array, place: Uint8Array): void {
  const head = new DataView(place.buffer, place.byteOffset, headBytes);
  head.setUint32(0, text.length, true);
  head.setUint32(4, digestOf(text), true);
  place.set(text.subarray(0, announcedBytes - headBytes), headBytes);
}

export function announcementOf(rank: number, all: Uint8Array): Announcement {
  const bytes = all.subarray(rank * announcedBytes, (rank + 1) * announcedBytes);
  const length = new DataView(bytes.buffer, bytes.byteOffset, headBytes).getUint32(0, true);
  return { bytes, length, text: bytes.subarray(headBytes, Math.min(headBytes + length, announcedBytes)) };
}

/** Where two texts differ first: the number of the operation, and what each has there. */
export function differenceOf(
  one: Uint8Array,
  other: Uint8Array,
): { readonly index: number; readonly sides: readonly [string, string] } {
  const [mine, theirs] = [linesOf(one), linesOf(other)];
  const found = mine.findIndex((line, at) => line !== theirs[at]);
  const index = found < 0 ? mine.length : found;
  const isList = mine.length > 1 || theirs.length > 1;
  return { index, sides: [sideOf(mine, index, isList), sideOf(theirs, index, isList)] };
}

function linesOf(text: Uint8Array): string[] {
  return Buffer.from(text.buffer, text.byteOffset, text.byteLength).toString().split('\n');
}

/** "allReduce sum 3 × float32", or that as a part of a list. */
function sideOf(lines: readonly string[], index: number, isList: boolean): string {
  const line = lines[index];
  if (!isList && line !== undefined) return line;
  if (line === undefined) return `no more than ${lines.length} on the device`;
  return `${line} as number ${index + 1} of ${lines.length} on the device`;
}

/** FNV-1a. */
function digestOf(text: Uint8Array): number {
  let hash = 0x811c9dc5;
  for (const byte of text) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash >>> 0;
}
