// Runs commands of this repository from its root, with the output on the terminal.
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('..', import.meta.url));

/** Longest time in ms that one command may take. */
const limitMs = 90 * 60_000;
/** The time, as performance.now() gives it, at which commands are ended. */
let endMs = Number.POSITIVE_INFINITY;

/** Ends commands that still run at the time `ms`, as performance.now() gives it. */
export function endCommandsAt(ms) {
  endMs = ms;
}

/** Runs a command from the root. Resolves with its exit code, or 1 if a signal or the time limit ended it. */
export function run(command, ...args) {
  return runWith({}, command, ...args);
}

/**
 * Does what run() does, with variables added to the environment, or in another folder. `onMessage` gets what a Node.js
 * program sends by process.send().
 */
export function runWith({ env = {}, cwd = root, onMessage }, command, ...args) {
  return new Promise((resolve) => {
    const timeout = Math.max(1, Math.min(limitMs, Math.ceil(endMs - performance.now())));
    const stdio = ['inherit', 'inherit', 'inherit', ...(onMessage ? ['ipc'] : [])];
    const child = spawn(command, args, { cwd, stdio, timeout, env: { ...process.env, ...env } });
    if (onMessage) child.on('message', onMessage);
    child.once('error', (error) => {
      console.error(`${command}: ${error.message}`);
      resolve(1);
    });
    child.once('exit', (code) => resolve(code ?? 1));
  });
}
