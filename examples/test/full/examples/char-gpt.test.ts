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

  it.each(['1', '2', '5'])('trains for %s steps, too', async (steps) => {
    const { exitCode, stdout, stderr } = await run([tsx, script, '--quick', '--json', '--steps', steps]);
    expect([exitCode, stderr]).toEqual([0, '']);
    expect(JSON.parse(stdout.trimEnd().split('\n').at(-1)!)).toMatchObject({ steps: Number(steps) });
  });

  it.each(['0', '-1', '1.5', 'many', ''])('refuses %j steps in one sentence', async (steps) => {
    const stderr = `main.ts: --steps: expected a whole number of at least 1, got '${steps}'. See --help.\n`;
    expect(await run([tsx, script, `--steps=${steps}`])).toEqual({ exitCode: 2, stdout: '', stderr });
  });

  it('divides a batch among three processes, whose shares differ', async () => {
    const losses: number[] = [];
    for (const ranks of ['1', '3']) {
      const launcher = [
        ringwise,
        'run',
        '--nproc-per-node',
        ranks,
        script,
        '--quick',
        '--json',
        '--steps',
        '20',
      ];
      const { exitCode, stdout, stderr } = await run(launcher);
      expect([exitCode, stderr]).toEqual([0, '']);
      const last = stdout.trimEnd().split('\n').at(-1)!;
      losses.push((JSON.parse(last.slice(last.indexOf('{'))) as { loss: number }).loss);
    }
    expect(Math.abs(losses[1]! - losses[0]!)).toBeLessThan(1e-4);
  });
});
