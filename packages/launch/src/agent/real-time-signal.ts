// Finds out whether a real-time signal ended a rank. Node.js has no names for these signals, and reports such an end as
// exit code 0.

import { readFileSync } from 'node:fs';

/** The number of the first real-time signal of Linux. Other systems have none that end a process. */
const firstRealTime = 32;

/**
 * Returns the number of the real-time signal that has ended process `pid`; null if none has, or if this is not known.
 * Call it between the closing of the process's pipes and its exit event, when the system still knows the process: it
 * closes the pipes first, and Node.js handles signals, such as that of an ended child, after pipes.
 */
export function realTimeSignalOf(pid: number): number | null {
  if (process.platform !== 'linux') return null;
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The name of the program, in parentheses, may contain spaces. The wait status is field 52, the 50th after it.
    const status = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[49]);
    const signal = status & 0x7f;
    return signal >= firstRealTime ? signal : null;
  } catch {
    return null; // no /proc
  }
}
