// Finds what a job leaves on Linux: processes, abstract socket names and shared memory.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** Returns the processes that the launcher with this run id started, and their descendants, without zombies. */
export function processesOf(runId: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => readIfThere(`/proc/${pid}/environ`).includes(`RINGWISE_RUN_ID=${runId}`));
}

/** Returns the abstract names of a process's Unix sockets. */
export function socketNamesOf(pid: number): string[] {
  const descriptors = readdirSync(`/proc/${pid}/fd`).map((fd) => linkIfThere(`/proc/${pid}/fd/${fd}`));
  return namedSockets()
    .filter(({ inode }) => descriptors.includes(`socket:[${inode}]`))
    .map(({ name }) => name);
}

/** Returns the abstract names of all Unix sockets of this host. */
export function socketNames(): string[] {
  return namedSockets().map(({ name }) => name);
}

/** Returns the files that a process maps as shared memory. "(deleted)" ends those without a name in the file system. */
export function sharedMemoryOf(pid: number): string[] {
  const maps = readFileSync(`/proc/${pid}/maps`, 'utf8');
  return [...maps.matchAll(/ (\/(?:memfd:|dev\/shm\/).*)$/gm)].map((match) => match[1]!);
}

function namedSockets(): { name: string; inode: string }[] {
  const table = readFileSync('/proc/net/unix', 'utf8');
  return [...table.matchAll(/ (\d+) @(.+)$/gm)].map((match) => ({ inode: match[1]!, name: match[2]! }));
}

// These readers return an empty string if the process or descriptor has disappeared since it was listed.

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
