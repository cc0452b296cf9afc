// Follows docs/tutorial/README.md: its programs, as the page shows them, in a folder of their own beside the packages.
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort } from '@ringwise/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ringwise, run } from '../support/run.ts';

const tutorial = fileURLToPath(new URL('../../../docs/tutorial/', import.meta.url));
const packages = fileURLToPath(new URL('../../../packages/', import.meta.url));
const page = readFileSync(join(tutorial, 'README.md'), 'utf8');
const names = readdirSync(tutorial).filter((name) => name.endsWith('.mjs'));

/** Returns the program that the page shows under the heading of a step. */
const shown = (step: number): string =>
  /```js runnable\n(.*?)```/s.exec(page.split(/^## Step /m)[step] ?? '')?.[1] ?? '';
/** Returns the lines that the page says a step prints. */
const expected = (step: number): string[] =>
  (/```text\n(.*?)```/s.exec(page.split(/^## Step /m)[step] ?? '')?.[1] ?? '').trimEnd().split('\n');
const printed = (stdout: string): string[] => stdout.trimEnd().split('\n').sort();
const losses = (stdout: string): number[] =>
  [...stdout.matchAll(/loss ([\d.]+)/g)].map(([, loss]) => Number(loss));

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'ringwise-tutorial-'));
  mkdirSync(join(folder, 'node_modules/@ringwise'), { recursive: true });
  for (const name of ['collectives', 'data', 'ddp', 'launch', 'tensor'])
    symlinkSync(join(packages, name), join(folder, 'node_modules/@ringwise', name));
  for (const [index, name] of names.entries()) writeFileSync(join(folder, name), shown(index + 1));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const ranks = (...words: string[]) => run([ringwise, 'run', '--nproc-per-node', '2', ...words], folder);

describe('docs/tutorial', () => {
  it('shows each file as it is', () => {
    expect(names.length).toBe(6);
    for (const [index, name] of names.entries()) {
      expect(shown(index + 1)).toBe(readFileSync(join(tutorial, name), 'utf8'));
      expect(page).toContain(`${name}\n`);
    }
  });

  it('step 1 trains in one process', async () => {
    const { exitCode, stdout } = await run(['1-one-process.mjs'], folder);
    const [first, , last] = losses(stdout);
    expect([exitCode, losses(stdout).length, first! > 2 * last!]).toEqual([0, 3, true]);
  });

  it.each([2, 3])('step %i prints what the page says', async (step) => {
    const { exitCode, stdout } = await ranks(names[step - 1]!);
    expect([exitCode, printed(stdout)]).toEqual([0, expected(step).sort()]);
  });

  it('step 4 trains on two ranks, which stay equal', async () => {
    const { exitCode, stdout } = await ranks('4-ddp.mjs');
    const [first, , last] = losses(stdout);
    expect([exitCode, losses(stdout).length, first! > 2 * last!]).toEqual([0, 3, true]);
  });

  it('step 4 also trains on a backend that cannot block', async () => {
    const { exitCode, stdout, stderr } = await run(
      [ringwise, 'run', '--nproc-per-node', '2', '4-ddp.mjs'],
      folder,
      { ...process.env, RINGWISE_BACKEND: 'tcp' } as Record<string, string>,
    );
    expect([exitCode, losses(stdout).length, stderr]).toEqual([0, 3, '']);
  });

  it('step 5 continues after a failure', async () => {
    const { exitCode, stdout, stderr } = await ranks('--max-restarts', '1', '5-restarts.mjs');
    expect([exitCode, printed(stdout)]).toEqual([0, expected(5).sort()]);
    expect(stderr).toContain('rank 1 gives up, once');
    const again = await ranks('--max-restarts', '1', '5-restarts.mjs');
    expect([again.exitCode, again.stderr]).toEqual([0, '']);
    expect(again.stdout).toContain('[0] tutorial.snapshot has all epochs; remove it to train again\n');
  });

  it('step 6 runs on two hosts', async () => {
    const port = `${await freePort()}`;
    const host = (index: number) => {
      const where = ['--nnodes', '2', '--node-rank', `${index}`, '--master-addr', '127.0.0.1'];
      const env = { RINGWISE_SECRET: 'of the tutorial', RINGWISE_HOST_ID: `host-${index}` };
      const words = [
        ringwise,
        'run',
        ...where,
        '--master-port',
        port,
        '--nproc-per-node',
        '1',
        '6-two-hosts.mjs',
      ];
      return run(words, folder, { ...(process.env as Record<string, string>), ...env });
    };
    const [first, second] = await Promise.all([host(0), host(1)]);
    expect([first.exitCode, second.exitCode, printed(first.stdout)]).toEqual([0, 0, expected(6).sort()]);
  });
});
