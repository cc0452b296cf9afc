// Reads the flight records that ranks have written: one file for each group of each process.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { FlightEntry } from './entry.ts';

export interface FlightDump {
  readonly ringwise: 'flight record';
  readonly group: string;
  readonly rank: number;
  readonly size: number;
  readonly host: string;
  /** Equal for processes whose monotonic clocks agree. */
  readonly clock: string;
  readonly pid: number;
  /** Id of the thread in its process; missing in records of earlier versions. */
  readonly thread?: number;
  /** Number of groups that the thread made before this one. */
  readonly index: number;
  /** Why the record was written: 'SIGUSR2', or the error. */
  readonly reason: string;
  /** When the record was written, on the monotonic clock and on the wall clock. */
  readonly nowMs: number;
  readonly unixMs: number;
  readonly entries: readonly FlightEntry[];
}

/** An error that the user can correct; the message says how. */
export class UsageError extends Error {}

/** Reads these files, and all .json files of these folders. Throws UsageError. */
export function readDumps(paths: readonly string[]): FlightDump[] {
  const dumps = paths.flatMap(filesOf).map(readDump);
  if (dumps.length === 0) throw usage(`no flight records in ${paths.join(', ')}`);
  return dumps;
}

function filesOf(path: string): string[] {
  try {
    if (!statSync(path).isDirectory()) return [path];
    const names = readdirSync(path).filter((name) => name.endsWith('.json'));
    return names.sort().map((name) => join(path, name));
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    throw usage(
      isMissing ? `no file or folder ${path}` : `${path} cannot be read (${(error as Error).message})`,
    );
  }
}

function readDump(file: string): FlightDump {
  let dump: Partial<FlightDump> | null;
  try {
    dump = JSON.parse(readFileSync(file, 'utf8')) as Partial<FlightDump> | null;
  } catch (error) {
    throw usage(`${file} cannot be read (${(error as Error).message})`);
  }
  if (dump?.ringwise !== 'flight record') throw usage(`${file} is no flight record`);
  if (!Array.isArray(dump.entries)) throw usage(`${file} is no whole flight record: it has no entries`);
  return dump as FlightDump;
}

export function usage(what: string): UsageError {
  return new UsageError(`ringwise flight: ${what}. See ringwise flight --help.`);
}
