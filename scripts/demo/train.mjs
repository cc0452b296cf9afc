// Runs examples/demo.ts on a number of ranks, and reads what it prints.
import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const path = (relative) => fileURLToPath(new URL(relative, import.meta.url));
const command = path('../../packages/ringwise/bin/ringwise.js');
const example = path('../../examples/demo.ts');
const pattern = /^epoch (\d+)\/(\d+) {2}step (\d+)\/(\d+) {2}loss ([\d.]+|NaN|Infinity)$/;

/**
 * Trains, and calls `onStep` with each step. Resolves with the exit code and the example's JSON summary. Ctrl-C also
 * reaches the launcher, which stops the ranks; SIGTERM is passed on to it. Then the code is the launcher's.
 */
export async function train(ranks, args, onStep) {
  const options = args.includes('--json') ? args : [...args, '--json'];
  const argv = [command, 'run', '--standalone', '--nproc-per-node', String(ranks), example, ...options];
  const launcher = spawn(process.execPath, argv, { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = new Promise((resolve) => launcher.once('exit', (code, signal) => resolve({ code, signal })));
  const ignore = () => {};
  const stop = () => launcher.kill('SIGTERM');
  process.on('SIGINT', ignore).on('SIGTERM', stop);
  let summary = null;
  for await (const line of createInterface({ input: launcher.stdout })) {
    const text = line.replace(/^\[\d+\] /, '');
    const match = pattern.exec(text);
    if (text.startsWith('{')) summary = JSON.parse(text);
    else if (match) {
      const [epoch, epochs, step, steps] = match.slice(1, 5).map(Number);
      onStep({ epoch, epochs, step, steps, loss: match[5] });
    }
  }
  const { code, signal } = await ended;
  process.off('SIGINT', ignore).off('SIGTERM', stop);
  return { code: signal ? 128 + constants.signals[signal] : code, summary };
}
