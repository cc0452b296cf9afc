// Tests that the character model learns and writes, in one process and in two.
import { describe, expect, it } from 'vitest';
import { example, ringwise, run, tsx } from '../../support/run.ts';

const script = example('char-gpt/main.ts');

describe('char-gpt', () => {
  it('learns made-up sentences and writes some; the same on two processes', async () => {
    const launcher = [ringwise, 'run', '--local-ranks-filter', '0', '--nproc-per-node', '2'];
    const losses: number[] = [];
    for (const start of [[tsx], launcher]) {
      const { exitCode, stdout, stderr } = await run([...start, script, '--quick', '--json']);
      expect([exitCode, stderr]).toEqual([0, '']);
      const last = stdout.trimEnd().split('\n').at(-1)!;
      const { loss, ranks } = JSON.parse(last.slice(last.indexOf('{'))) as { loss: number; ranks: number };
      expect(ranks).toBe(start === launcher ? 2 : 1);
      losses.push(loss);
    }
    expect(losses[0]).toBeLessThan(1.6);
    expect(losses[0]).toBeGreaterThan(0.2);
    expect(Math.abs(losses[1]! - losses[0]!)).toBeLessThan(0.02);
  }, 150_000);
});
