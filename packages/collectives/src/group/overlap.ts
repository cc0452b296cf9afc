// Finds buffers of one call that share memory where the result would depend on the order of writes.
import { byteSize } from '../dtype.ts';
import type { BufferView } from './buffer.ts';

/** Buffers of one argument of a call. `name`, with the index of a buffer behind it, names the buffer in errors. */
export interface Named {
  readonly name: string;
  readonly views: readonly BufferView[];
  readonly isWritten: boolean;
}

interface Span {
  readonly name: string;
  readonly from: number | bigint;
  readonly to: number | bigint;
  readonly isWritten: boolean;
}

/**
 * Returns whether two buffers share memory, of the host or of one device.
 * @internal
 */
export function overlap(a: BufferView, b: BufferView): boolean {
  if (a.count === 0 || b.count === 0) return false;
  const space = spaceOf(a);
  if (space === null || space !== spaceOf(b)) return false;
  return startOf(a) < endOf(b) && startOf(b) < endOf(a);
}

/**
 * Returns the names of two buffers that share memory, at least one of which is written, or null if there are none.
 * Takes `n log n` comparisons for `n` buffers.
 */
export function firstOverlap(lists: readonly Named[]): readonly [string, string] | null {
  const spaces = new Map<unknown, Span[]>();
  for (const { name, views, isWritten } of lists) {
    for (const [index, view] of views.entries()) {
      const space = view.count === 0 ? null : spaceOf(view);
      if (space === null) continue;
      const span = { name: `${name} ${index}`, from: startOf(view), to: endOf(view), isWritten };
      const spans = spaces.get(space);
      if (spans === undefined) spaces.set(space, [span]);
      else spans.push(span);
    }
  }
  for (const spans of spaces.values()) {
    const found = spans.length > 1 ? overlapOf(spans) : null;
    if (found !== null) return found;
  }
  return null;
}

/** Scans spans by their starts, and compares each with the earlier ones that reach furthest. */
function overlapOf(spans: Span[]): readonly [string, string] | null {
  spans.sort((a, b) => (a.from < b.from ? -1 : a.from > b.from ? 1 : 0));
  let [furthest, furthestWritten]: (Span | null)[] = [null, null];
  for (const span of spans) {
    const before = span.isWritten ? furthest : furthestWritten;
    if (before && span.from < before.to) return [before.name, span.name];
    if (!furthest || span.to > furthest.to) furthest = span;
    if (span.isWritten && (!furthestWritten || span.to > furthestWritten.to)) furthestWritten = span;
  }
  return null;
}

/**
 * Returns an identity of the address space of a buffer, in which addresses can be compared; null if the address is
 * unknown.
 */
function spaceOf({ host, handle, device: { kind, index } }: BufferView): unknown {
  if (host !== null) return host.buffer;
  return handle?.address === undefined ? null : `${kind}:${index}`;
}

const startOf = ({ host, handle }: BufferView): number | bigint =>
  host === null ? (handle?.address ?? 0n) : host.byteOffset;

const endOf = (view: BufferView): number | bigint => {
  const { host, count, dtype } = view;
  if (host !== null) return host.byteOffset + host.byteLength;
  return BigInt(startOf(view)) + BigInt(count * byteSize(dtype));
};
