// Tests what all examples have in common: --help, unknown options, and an end by Ctrl-C that leaves no process.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { example, ringwise, run, tsx } from '../../support/run.ts';

const folder = new URL('../../..', import.meta.url);
const single = readdirSync(folder).filter((name) => name.endsWith('.ts'));
const examples = [
  ...single.filter((name) => !['options.ts', 'vitest.config.ts'].includes(name)),
  ...['char-gpt/main.ts', 'gpt2/main.ts', 'tfjs/main.ts'],
];

describe.each(examples)('%s', (name) => {
  it('has help: the comment with which it begins', async () => {
    const { exitCode, stdout, stderr } = await run([tsx, example(name), '--help']);
    expect([exitCode, stderr]).toEqual([0, '']);
    expect(stdout).toContain(`examples/${name}`);
    expect(stdout).not.toMatch(/^(\/\/|import)/m);
  });

  it('refuses options that it does not have', async () => {
    const { exitCode, stdout, stderr } = await run([tsx, example(name), '--colour']);
    const sentence = `${name.split('/').at(-1)}: Unknown option '--colour'. See --help.\n`;
    expect({ exitCode, stdout, stderr }).toEqual({ exitCode: 2, stdout: '', stderr: sentence });
  });
});

it('prints help once, on several ranks', async () => {
  const argv = [ringwise, 'run', '--nproc-per-node', '3', example('all-reduce.ts'), '--help'];
  const { exitCode, stdout } = await run(argv);
  expect(exitCode).toBe(0);
  expect(stdout.match(/Every rank contributes one number/g)?.length).toBe(1);
});

/** Tells whether a process group still has processes. */
function isThere({ pid }: ChildProcess): boolean {
  try {
    return process.kill(-pid!, 0);
  } catch {
    return false;
  }
}

describe('Ctrl-C', () => {
  it.each([
    ['mnist-ddp.ts', ['--epochs', '1000'], 'epoch 1/1000'],
    ['parameter-server.ts', ['--seconds', '600'], '1 workers, 600 s'],
    ['char-gpt/main.ts', ['--quick', '--steps', '100000'], 'step 50/100000'],
  ])('ends %s', async (name, args, started) => {
    const argv = [ringwise, 'run', '--nproc-per-node', '2', example(name), ...args];
    const child = spawn(process.execPath, argv, { stdio: ['ignore', 'pipe', 'ignore'], detached: true });
    const ended = once(child, 'exit');
    try {
      await new Promise<void>((resolve) => {
        child.stdout.on('data', (chunk: Buffer) => chunk.includes(started) && resolve());
      });
      process.kill(-child.pid!, 'SIGINT');
      expect(await ended).toEqual([130, null]);
      await expect.poll(() => isThere(child), { timeout: 10_000 }).toBe(false);
    } finally {
      if (isThere(child)) process.kill(-child.pid!, 'SIGKILL');
    }
  });
});
