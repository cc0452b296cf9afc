// Tests that the GPT-2 example learns, that a run continues from its checkpoint, and that its files use GPT-2's names.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { manualSeed, noGrad, scope, tensor } from '@ringwise/tensor';
import { loadSafetensors } from '@ringwise/tensor/safetensors';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { fromGpt2, Gpt2, toGpt2 } from '../../../gpt2/model.ts';
import { example, ringwise, run, tsx } from '../../support/run.ts';

describe('gpt2', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'gpt2-'));
    // The tokens count up and down, which is easy to predict.
    const tokens = Uint16Array.from({ length: 6000 }, (_, i) => Math.abs((i % 60) - 30) + 1);
    writeFileSync(join(folder, 'train.bin'), tokens);
    writeFileSync(join(folder, 'val.bin'), tokens.subarray(0, 1000));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const tiny = ['--layers', '1', '--heads', '2', '--width', '16', '--context', '16', '--vocab', '40'];
  const argv = (steps: number, ...more: string[]): string[] => [
    example('gpt2/main.ts'),
    ...['--train', join(folder, 'train.bin'), '--val', join(folder, 'val.bin'), '--out', join(folder, 'out')],
    ...[...tiny, '--batch', '4', '--accumulate', '2', '--lr', '1e-2', '--warmup', '2', '--eval-batches', '5'],
    ...['--steps', `${steps}`, '--json', ...more],
  ];
  const summary = (stdout: string): Record<string, number> =>
    JSON.parse(
      stdout
        .trimEnd()
        .split('\n')
        .at(-1)!
        .replace(/^\[0\] /, ''),
    ) as Record<string, number>;

  it('learns, and goes on where it stopped; its file has the names and shapes of GPT-2', async () => {
    const first = await run([tsx, ...argv(20)]);
    expect([first.exitCode, first.stderr]).toEqual([0, '']);
    const { after } = summary(first.stdout);
    expect(after).toBeLessThan(Math.log(31));
    const second = await run([tsx, ...argv(30)]);
    expect([second.exitCode, second.stderr]).toEqual([0, '']);
    expect(summary(second.stdout)).toMatchObject({ first: 20, before: after });
    const shapes = Object.entries(await loadSafetensors(join(folder, 'out', 'model.safetensors'))).map(
      ([name, { shape }]) => `${name} ${shape.join('×')}`,
    );
    expect(shapes).toEqual(
      expect.arrayContaining([
        ...[
          'wte.weight 40×16',
          'wpe.weight 16×16',
          'ln_f.weight 16',
          'h.0.ln_1.bias 16',
          'h.0.ln_2.weight 16',
        ],
        ...['h.0.attn.c_attn.weight 16×48', 'h.0.attn.c_attn.bias 48', 'h.0.attn.c_proj.weight 16×16'],
        ...['h.0.mlp.c_fc.weight 16×64', 'h.0.mlp.c_proj.weight 64×16'],
      ]),
    );
    expect(shapes).toHaveLength(16);
  }, 120_000);

  it('trains on two ranks', async () => {
    const launch = [ringwise, 'run', '--standalone', '--nproc-per-node', '2'];
    const { exitCode, stdout, stderr } = await run([...launch, ...argv(15, '--ddp')]);
    expect([exitCode, stderr]).toEqual([0, '']);
    expect(summary(stdout)).toMatchObject({ ranks: 2 });
  }, 90_000);

  it('gives its parameters to another model by the names of GPT-2, also with a prefix', () => {
    const config = { layers: 2, heads: 2, width: 8, context: 4, vocab: 11, dropout: 0 };
    manualSeed(1);
    const [one, other] = [new Gpt2(config), new Gpt2(config)];
    const x = tensor([[1, 2, 3]], { dtype: 'int32' });
    const scores = (model: Gpt2): unknown => noGrad(() => scope(() => model.forward(x).toArray()));
    expect(scores(one)).not.toEqual(scores(other));
    const prefixed = Object.entries(toGpt2(one)).map(([name, value]) => [`transformer.${name}`, value]);
    fromGpt2(other, Object.fromEntries(prefixed));
    expect(scores(one)).toEqual(scores(other));
  });
});
