// Converts flight records of several ranks into one Chrome trace (chrome://tracing, ui.perfetto.dev): one
// process for each process of the job, or for each thread if ranks are threads; one track for each group's
// collectives, further tracks for its messages, and arrows from the rank that an operation waited for to the ranks
// that waited.

import { endOf, offsetsOf } from './clocks.ts';
import type { FlightDump } from './dump.ts';
import type { FlightEntry } from './entry.ts';

/** The part of Chrome's trace event format that is used here. Times are microseconds. */
export interface TraceEvent {
  /**
   * M: name of a process or track; X: a slice with a duration; i: an instant; s and f: start and end of an
   * arrow.
   */
  readonly ph: 'M' | 'X' | 'i' | 's' | 'f';
  readonly name: string;
  readonly pid: number;
  readonly tid: number;
  readonly ts?: number;
  readonly dur?: number;
  readonly id?: number;
  readonly cat?: string;
  readonly bp?: 'e';
  readonly s?: 't';
  readonly args?: Record<string, unknown>;
}

/** An operation of one rank, with its position in the trace. */
interface Slice {
  readonly dump: FlightDump;
  readonly entry: FlightEntry;
  readonly pid: number;
  readonly tid: number;
  readonly fromUs: number;
  readonly toUs: number;
}

export function traceOf(dumps: readonly FlightDump[]): TraceEvent[] {
  const sorted = [...dumps]
    .sort((a, b) => b.size - a.size || a.rank - b.rank || a.index - b.index)
    .map(numbered());
  const tracks = new Tracks();
  const offsets = offsetsOf(sorted);
  const offsetOf = (dump: FlightDump) => offsets.get(dump.clock) as number;
  const begins = sorted.flatMap((dump) => dump.entries.map(({ queuedMs }) => queuedMs + offsetOf(dump)));
  const originMs = begins.reduce((first, begin) => Math.min(first, begin), Infinity);
  const slices: Slice[] = [];
  const waiting: TraceEvent[] = [];
  for (const dump of sorted) {
    const toUs = (ms: number) => (ms + offsetOf(dump) - originMs) * 1000;
    const pid = tracks.processOf(dump);
    for (const entry of dump.entries) {
      const { startedMs } = entry;
      if (startedMs === null) {
        const tid = tracks.trackOf(dump, pid, entry, 0, 0);
        waiting.push({
          ph: 'i',
          s: 't',
          name: `${nameOf(entry)} queued`,
          pid,
          tid,
          ts: toUs(entry.queuedMs),
        });
        continue;
      }
      const [from, to] = [toUs(startedMs), toUs(Math.max(endOf(entry, dump), startedMs))];
      slices.push({
        dump,
        entry,
        pid,
        tid: tracks.trackOf(dump, pid, entry, from, to),
        fromUs: from,
        toUs: to,
      });
    }
  }
  return [...tracks.names, ...slices.map(sliceEvent), ...waiting, ...arrowsOf(slices)];
}

/** Returns a key of the process or thread that made the record. */
const threadKeyOf = ({ host, pid, thread = 0 }: FlightDump): string => `${host} ${pid} ${thread}`;

/** Returns a function that renames a process's later records of groups of the same name: "world", then "world 2". */
function numbered(): (dump: FlightDump) => FlightDump {
  const times = new Map<string, number>();
  return (dump) => {
    const key = `${threadKeyOf(dump)} ${dump.group}`;
    const time = (times.get(key) ?? 0) + 1;
    times.set(key, time);
    return time === 1 ? dump : { ...dump, group: `${dump.group} ${time}` };
  };
}

function nameOf({ verb, seq, state }: FlightEntry): string {
  return `${verb} #${seq}${state === 'running' || state === 'failed' ? ` (${state})` : ''}`;
}

function sliceEvent({ dump, entry, pid, tid, fromUs, toUs }: Slice): TraceEvent {
  const known = Object.entries(entry).filter(([key, value]) => value !== null && !key.endsWith('Ms'));
  const args = { group: dump.group, ...Object.fromEntries(known) };
  return { ph: 'X', name: nameOf(entry), cat: entry.verb, pid, tid, ts: fromUs, dur: toUs - fromUs, args };
}

/** Assigns numbers and names to processes and tracks. */
class Tracks {
  readonly names: TraceEvent[] = [];
  readonly #processes = new Map<string, number>();
  /** Tracks by process and name. `endUs` is the end of the last slice. */
  readonly #tracks = new Map<string, { readonly tid: number; endUs: number }>();

  processOf(dump: FlightDump): number {
    const { host, pid, group, rank } = dump;
    const key = threadKeyOf(dump);
    const known = this.#processes.get(key);
    if (known !== undefined) return known;
    const number = this.#processes.size;
    this.#processes.set(key, number);
    const name = `rank ${rank} of ${group} (${host}, pid ${pid})`;
    this.names.push({ ph: 'M', name: 'process_name', pid: number, tid: 0, args: { name } });
    return number;
  }

  /**
   * Returns the track of an operation. Messages overlap in time, and overlapping ones get different tracks.
   */
  trackOf({ group }: FlightDump, pid: number, { verb }: FlightEntry, fromUs: number, toUs: number): number {
    if (verb !== 'send' && verb !== 'recv') return this.#track(pid, group).tid;
    for (let n = 1; ; n++) {
      const track = this.#track(pid, `${group} messages${n > 1 ? ` ${n}` : ''}`);
      if (track.endUs > fromUs) continue;
      track.endUs = toUs;
      return track.tid;
    }
  }

  #track(pid: number, name: string) {
    const key = `${pid} ${name}`;
    let track = this.#tracks.get(key);
    if (track === undefined) {
      track = { tid: this.#tracks.size, endUs: 0 };
      this.#tracks.set(key, track);
      this.names.push({ ph: 'M', name: 'thread_name', pid, tid: track.tid, args: { name } });
    }
    return track;
  }
}

function arrowsOf(slices: readonly Slice[]): TraceEvent[] {
  const events: TraceEvent[] = [];
  for (const group of groupedBy(slices, keyOf).values()) {
    for (const [from, to] of arrowsIn(group)) {
      const id = events.length / 2;
      const { verb, seq } = from.entry;
      const common = { name: `${verb} #${seq}`, cat: 'operation', id };
      events.push({ ph: 's', ...common, pid: from.pid, tid: from.tid, ts: from.fromUs });
      events.push({ ph: 'f', bp: 'e', ...common, pid: to.pid, tid: to.tid, ts: to.toUs });
    }
  }
  return events;
}

/**
 * Returns a key that is equal for the ranks of one collective, and for all messages of one sender, receiver
 * and tag.
 */
function keyOf({ dump: { group, rank }, entry: { verb, seq, peer, tag } }: Slice): string {
  if (verb === 'send') return `${group} from ${rank} to ${peer} ${tag}`;
  if (verb === 'recv') return `${group} from ${peer} to ${rank} ${tag}`;
  return `${group} ${seq}`;
}

function arrowsIn(slices: readonly Slice[]): (readonly [from: Slice, to: Slice])[] {
  const [first] = slices as readonly [Slice, ...Slice[]];
  const { verb, root } = first.entry;
  switch (verb) {
    case 'send':
    case 'recv': {
      const [sends, recvs] = (['send', 'recv'] as const).map((side) =>
        slices.filter(({ entry }) => entry.verb === side && entry.state === 'done'),
      ) as [Slice[], Slice[]];
      // A record may have lost its oldest entries, so match messages from the end.
      const count = Math.min(sends.length, recvs.length);
      const lastOf = (list: Slice[]) => list.slice(list.length - count);
      return lastOf(sends).map((send, i) => [send, lastOf(recvs)[i] as Slice]);
    }
    case 'broadcast':
    case 'scatter': {
      const source = slices.find(({ dump }) => dump.rank === root);
      return source === undefined ? [] : othersThan(source, slices).map((to) => [source, to]);
    }
    case 'reduce':
    case 'gather': {
      const target = slices.find(({ dump }) => dump.rank === root);
      return target === undefined ? [] : othersThan(target, slices).map((from) => [from, target]);
    }
    default: {
      const last = slices.reduce((late, slice) => (slice.fromUs > late.fromUs ? slice : late));
      return othersThan(last, slices).map((to) => [last, to]);
    }
  }
}

function othersThan(one: Slice, slices: readonly Slice[]): Slice[] {
  return slices.filter((slice) => slice !== one);
}

function groupedBy<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return groups;
}
