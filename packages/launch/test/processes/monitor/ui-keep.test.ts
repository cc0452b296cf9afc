// --ui-keep: the page stays when the job has ended, until a signal.

import { describe, expect, it } from 'vitest';
import { type Command, finished, ringwise, script, until } from '../../support/command.ts';

const addressOf = ({ out }: Command) => /live page at (http\S+)\n/.exec(out.stderr)?.[1];

async function kept(
  source: string,
  args: readonly string[] = [],
): Promise<{ command: Command; address: string }> {
  const command = ringwise(['run', '--ui-keep', ...args, script('train.mjs', source)]);
  await until('the end of the job', () => command.out.stderr.includes('the live page stays at'));
  return { command, address: addressOf(command)! };
}

/** Reads the first message of the page's event stream. */
async function firstMessage(address: string): Promise<{ job: { end: { exitCode: number } | null } }> {
  const reader = (await fetch(`${address}events`)).body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  while (!text.includes('\n\n')) text += (await reader.read()).value;
  await reader.cancel();
  return JSON.parse(text.replace('data: ', ''));
}

describe('--ui-keep', () => {
  it.each([
    ['SIGINT', 'process.exit(0)', 0],
    ['SIGTERM', 'process.exit(3)', 3],
  ] as const)(
    'serves the page after the job until %s, and ends with the exit code of the job',
    async (...row) => {
      const [signal, source, code] = row;
      const { command, address } = await kept(source);
      expect((await fetch(address)).status).toBe(200);
      expect((await firstMessage(address)).job.end?.exitCode).toBe(code);
      command.child.kill(signal);
      expect(await command.exitCode).toBe(code);
      await expect(fetch(address)).rejects.toThrow();
    },
  );

  it('ends with a reader that is still there', async () => {
    const { command, address } = await kept('');
    const reader = (await fetch(`${address}events`)).body!.getReader();
    await reader.read();
    command.child.kill('SIGINT');
    expect(await command.exitCode).toBe(0);
    await reader.read().catch(() => {});
  });

  it('does not keep the page of a job that a signal has ended', async () => {
    const command = ringwise([
      'run',
      '--ui-keep',
      script('train.mjs', `console.log('up'); setInterval(() => {}, 1000);`),
    ]);
    await until('the rank', () => command.out.stdout.includes('up'));
    command.child.kill('SIGINT');
    expect(await command.exitCode).toBe(130);
    expect(command.out.stderr).not.toContain('stays at');
  });

  it('takes the address of --ui, and contradicts --ui=0', async () => {
    const { command, address } = await kept('', ['--ui=127.0.0.1:0']);
    expect(address).toMatch(/^http:\/\/127\.0\.0\.1:\d+\//);
    command.child.kill('SIGINT');
    await command.exitCode;
    const { exitCode, stderr } = await finished(['run', '--ui=0', '--ui-keep', script('train.mjs', '')]);
    expect(exitCode).toBe(2);
    expect(stderr).toContain('--ui-keep');
  });

  it('starts no page when there is nothing to start', async () => {
    const { exitCode, stderr } = await finished(['run', '--ui-keep', 'missing.mjs']);
    expect(exitCode).toBe(2);
    expect(stderr).not.toContain('live page');
  });
});
