// What Linux knows of a job: its processes, the abstract names of its sockets, its shared memory.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** The processes that a launcher with this run id has started, and what those have started. Zombies do not count. */
export function processesOf(runId: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => readIfThere(`/proc/${pid}/environ`).includes(`RINGWISE_RUN_ID=${runId}`));
}

/** The abstract names under which a process can be reached. */
export function socketNamesOf(pid: number): string[] {
  const descriptors = readdirSync(`/proc/${pid}/fd`).map((fd) => linkIfThere(`/proc/${pid}/fd/${fd}`));
  return namedSockets()
    .filter(({ inode }) => descriptors.includes(`socket:[${inode}]`))
    .map(({ name }) => name);
}

/** The abstract names of all sockets of this host. */
export function socketNames(): string[] {
  return namedSockets().map(({ name }) => name);
}

/** The files that a process shares as memory. One without a name in the file system ends with "(deleted)". */
export function sharedMemoryOf(pid: number): string[] {
  const maps = readFileSync(`/proc/${pid}/maps`, 'utf8');
  return [...maps.matchAll(/ (\/(?:memfd:|dev\/shm\/).*)$/gm)].map((match) => match[1]!);
}

function namedSockets(): { name: string; inode: string }[] {
  const table = readFileSync('/proc/net/unix', 'utf8');
  return [...table.matchAll(/ (\d+) @(.+)$/gm)].map((match) => ({ inode: match[1]!, name: match[2]! }));
}

// Processes and descriptors may go while they are listed.

function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return '';
  }
}

function linkIfThere(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}
