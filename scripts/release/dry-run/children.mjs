// Runs the commands of a dry run, each in a process group of its own, so that an interruption ends all that it started.
import { spawn } from 'node:child_process';
import { root } from '../../run.mjs';

/** Longest time in ms that a command may take after it was told to end. */
const graceMs = 5000;

/** Makes run(), which starts one command at a time, and interrupt(), which ends the one that runs. */
export function childrenOf(environment) {
  let current = null;
  let isInterrupted = false;

  const signal = (name) => {
    try {
      process.kill(process.platform === 'win32' ? current.pid : -current.pid, name);
    } catch {
      // All of the group have ended.
    }
  };

  return {
    /**
     * Runs a command to its end, from the root. Resolves with its exit code, 1 if a signal ended it; never after an
     * interruption, so that nothing else begins.
     */
    run: (command, args, env = {}) =>
      new Promise((resolve) => {
        const options = { cwd: root, stdio: ['ignore', 'inherit', 'inherit'], detached: true };
        current = spawn(command, args, { ...options, env: { ...process.env, ...environment, ...env } });
        current.once('error', (error) => {
          console.error(`${command}: ${error.message}`);
          resolve(1);
        });
        current.once('exit', (code) => {
          signal('SIGKILL'); // what it has left behind
          current = null;
          if (!isInterrupted) resolve(code ?? 1);
        });
      }),
    /** Ends the command that runs, and resolves when it has ended. */
    interrupt: async () => {
      isInterrupted = true;
      if (current === null) return;
      const ended = new Promise((resolve) => current.once('exit', resolve));
      const timer = setTimeout(() => signal('SIGKILL'), graceMs);
      signal('SIGINT');
      await ended;
      clearTimeout(timer);
    },
  };
}
