// The character model: that it learns and writes.
import { describe, expect, it } from 'vitest';
import { example, run, tsx } from './run.ts';

describe('char-gpt', () => {
  it('learns made-up sentences and writes some', async () => {
    const { exitCode, stdout, stderr } = await run([tsx, example('char-gpt/main.ts'), '--quick', '--json']);
    expect([exitCode, stderr]).toEqual([0, '']);
    const { loss } = JSON.parse(stdout.trimEnd().split('\n').at(-1)!) as { loss: number };
    expect(loss).toBeLessThan(1.6);
    expect(loss).toBeGreaterThan(0.2);
  }, 90_000);
});
