// Converts the times of all flight records to one clock. Processes on one host share a monotonic clock.
// Clocks of different hosts are aligned by collectives that end at about the same time on all ranks, because
// every rank waits for every other rank.

import type { FlightDump } from './dump.ts';
import type { FlightEntry } from './entry.ts';

/** Verbs in which every rank waits for every other rank. */
const synchronizing: ReadonlySet<string> = new Set([
  'allReduce',
  'allGather',
  'reduceScatter',
  'allToAll',
  'barrier',
]);

/** Returns, by clock, the milliseconds to add to its times to get times of the first dump's clock. */
export function offsetsOf(dumps: readonly FlightDump[]): Map<string, number> {
  const reference = dumps[0] as FlightDump;
  const offsets = new Map([[reference.clock, 0]]);
  const ends = new Map<string, Map<string, number>>();
  for (const dump of dumps) {
    const ofClock = ends.get(dump.clock) ?? new Map<string, number>();
    ends.set(dump.clock, ofClock);
    for (const entry of dump.entries) {
      if (entry.endedMs === null || entry.state !== 'done' || !synchronizing.has(entry.verb)) continue;
      const key = `${dump.group} ${entry.seq}`;
      ofClock.set(key, Math.min(ofClock.get(key) ?? Infinity, entry.endedMs));
    }
  }
  const there = ends.get(reference.clock) as Map<string, number>;
  for (const dump of dumps) {
    if (offsets.has(dump.clock)) continue;
    const here = ends.get(dump.clock) as Map<string, number>;
    const gaps = [...here].flatMap(([key, endedMs]) => (there.has(key) ? [there.get(key)! - endedMs] : []));
    // Without a common collective, align by the wall clocks.
    const byWall = dump.unixMs - dump.nowMs - (reference.unixMs - reference.nowMs);
    offsets.set(dump.clock, median(gaps) ?? byWall);
  }
  return offsets;
}

function median(values: number[]): number | undefined {
  return values.sort((a, b) => a - b)[values.length >> 1];
}

/** Returns when an operation ended, or for one that has not ended when its dump was written. */
export function endOf(entry: FlightEntry, dump: FlightDump): number {
  return entry.endedMs ?? dump.nowMs;
}
