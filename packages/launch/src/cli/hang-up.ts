// Tells whether SIGHUP, which a terminal sends when it closes, must not end this process. Node.js gives every signal
// its default action when it starts, so that a process that nohup has started does not see that it is to ignore it.

import { readFileSync } from 'node:fs';
import { basename } from 'node:path';

/**
 * Tells whether the user has started this process so that it ignores SIGHUP: by nohup, whose path bash and zsh put into
 * the variable `_` of the environment, or in a shell that ignores SIGHUP, as one that nohup has started does.
 */
export function ignoresHangUp(env: NodeJS.ProcessEnv): boolean {
  return basename(env._ ?? '') === 'nohup' || parentIgnoresHangUp();
}

function parentIgnoresHangUp(): boolean {
  try {
    const status = readFileSync(`/proc/${process.ppid}/status`, 'utf8');
    const ignored = /^SigIgn:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? '';
    // The lowest bit stands for signal 1, SIGHUP.
    return (Number.parseInt(ignored.slice(-1), 16) & 1) === 1;
  } catch {
    return false; // no /proc
  }
}
