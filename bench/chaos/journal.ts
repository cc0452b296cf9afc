// What each rank of the chaos bench writes down, a line of JSON each, so that nothing is lost when it is killed.
// Times are nanoseconds on the monotonic clock, which all processes of a machine share.

import { createHash } from 'node:crypto';
import { openSync, readdirSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';

export type Line =
  /** The program begins. `place` is the local rank, `host` 0 or 1. */
  | {
      readonly kind: 'start';
      readonly pid: number;
      readonly slot: number;
      readonly host: number;
      readonly t: number;
    }
  /** The rank has a view, or a group; `bits` are those of its state. */
  | {
      readonly kind: 'view';
      readonly view: number;
      readonly size: number;
      readonly step: number;
      readonly bits: string;
      readonly t: number;
    }
  /** The rank has received the state of the training. */
  | { readonly kind: 'state'; readonly bytes: number; readonly t: number }
  /** The rank begins step `step` with these micro-batches, by their index. */
  | {
      readonly kind: 'try';
      readonly step: number;
      readonly view: number;
      readonly batches: readonly number[];
      readonly t: number;
    }
  /** Step `step`, as tried in `view`, is final; `bits` are those of the state after it. */
  | {
      readonly kind: 'final';
      readonly step: number;
      readonly view: number;
      readonly bits: string;
      readonly t: number;
    }
  /** The rank ends by itself. */
  | { readonly kind: 'end'; readonly why: string; readonly t: number };

export const nowNs = (): number => Number(process.hrtime.bigint());

export const hashOf = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

type WithoutTime<T> = T extends unknown ? Omit<T, 't'> : never;

/** Opens the journal of this process. */
export function openJournal(folder: string, name: string): (line: WithoutTime<Line>) => void {
  const fd = openSync(join(folder, `${name}.jsonl`), 'a');
  return (line) => {
    writeSync(fd, `${JSON.stringify({ ...line, t: nowNs() })}\n`);
  };
}

/** The journal of one process, by its name. */
export interface Journal {
  readonly name: string;
  readonly lines: readonly Line[];
}

/** Reads what all processes have written so far, from `offsets` on, which it advances. */
export function readJournals(folder: string, offsets: Map<string, number>): Journal[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith('.jsonl'))
    .map((file) => {
      const text = readFileSync(join(folder, file), 'utf8');
      const from = offsets.get(file) ?? 0;
      // A process that was killed may have left half a line.
      const to = text.lastIndexOf('\n') + 1;
      offsets.set(file, to);
      const lines = text.slice(from, to).split('\n').slice(0, -1);
      return { name: file.slice(0, -'.jsonl'.length), lines: lines.map((line) => JSON.parse(line) as Line) };
    });
}
