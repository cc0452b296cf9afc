import { readFile } from 'node:fs/promises';

/**
 * Resolves with a process's resident memory in bytes; null without /proc (as on macOS) or if the process has
 * ended.
 */
export async function residentBytes(pid: number): Promise<number | null> {
  const text = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  const kib = /^VmRSS:\s+(\d+) kB$/m.exec(text)?.[1];
  return kib === undefined ? null : Number(kib) * 1024;
}
