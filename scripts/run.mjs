// Runs commands of this repository from its root, with the output on the terminal.
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('..', import.meta.url));

/** Longest time in ms that one command may take. */
const limitMs = 45 * 60_000;
/** The time, as performance.now() gives it, at which commands are ended. */
let endMs = Number.POSITIVE_INFINITY;

/** Ends commands that still run at the time `ms`, as performance.now() gives it. */
export function endCommandsAt(ms) {
  endMs = ms;
}

/** Runs a command to its end. Resolves with its exit code, or 1 if a signal or the time limit ended it. */
export function run(command, ...args) {
  return runWith({}, command, ...args);
}

/** Does what run() does, with variables added to the environment. */
function runWith(env, command, ...args) {
  return new Promise((resolve) => {
    const timeout = Math.max(1, Math.min(limitMs, Math.ceil(endMs - performance.now())));
    const options = { cwd: root, stdio: 'inherit', timeout, env: { ...process.env, ...env } };
    const child = spawn(command, args, options);
    child.once('error', (error) => {
      console.error(`${command}: ${error.message}`);
      resolve(1);
    });
    child.once('exit', (code) => resolve(code ?? 1));
  });
}

/**
 * Runs vitest on `projects`, names that may have wildcards. If there are filters, runs only the test files whose paths
 * contain one of them. Resolves with the exit code.
 */
export function vitest(projects, ...filter) {
  return vitestWith({}, projects, ...filter);
}

/** Does what vitest() does, with variables added to the environment. */
export function vitestWith(env, projects, ...filter) {
  const chosen = projects.flatMap((project) => ['--project', project]);
  return runWith(env, process.execPath, 'node_modules/vitest/vitest.mjs', 'run', ...chosen, ...filter);
}
