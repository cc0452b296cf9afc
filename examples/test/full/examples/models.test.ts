// Runs the examples of other kinds of models: an LSTM, a Llama checkpoint and a diffusion model. Each checks its own
// claim and ends with exit code 0 if it holds.
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { scope } from '@ringwise/tensor';
import { loadSafetensors, saveSafetensors } from '@ringwise/tensor/safetensors';
import { testData } from '@ringwise/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loadLlama } from '../../../llama/model.ts';
import { example, ringwise, run, tsx } from '../../support/run.ts';

interface Learnt {
  readonly loss: number;
  readonly unigram: number;
  readonly ranks: number;
  readonly isInSync: boolean;
}

describe('lstm-text.ts', () => {
  const script = example('lstm-text.ts');
  const launch = (ranks: number): string[] => [
    ringwise,
    'run',
    '--standalone',
    '--nproc-per-node',
    `${ranks}`,
  ];
  async function learnt(argv: readonly string[]): Promise<Learnt> {
    const { exitCode, stdout, stderr } = await run([...argv, '--json']);
    expect([exitCode, stderr]).toEqual([0, '']);
    const last = stdout.trimEnd().split('\n').at(-1)!;
    return JSON.parse(last.slice(last.indexOf('{'))) as Learnt;
  }

  it('learns made-up sentences on two ranks, which end with the same bits', async () => {
    const { loss, unigram, ...rest } = await learnt([...launch(2), script]);
    expect(loss).toBeLessThan(1);
    expect(unigram).toBeGreaterThan(2.5);
    expect(rest).toMatchObject({ ranks: 2, isInSync: true });
  }, 90_000);

  it('learns on three ranks, whose shares differ, as one process does', async () => {
    const few = [script, '--steps', '20'];
    const [one, three] = [await learnt([tsx, ...few]), await learnt([...launch(3), ...few])];
    expect(Math.abs(three.loss - one.loss)).toBeLessThan(1e-3);
    expect(three.ranks).toBe(3);
  }, 90_000);

  const shakespeare = testData('tinyshakespeare.txt');
  it.skipIf(shakespeare === null)(
    'learns tinyshakespeare',
    async () => {
      const { loss, unigram } = await learnt([...launch(2), script, '--data', shakespeare!]);
      expect(unigram).toBeCloseTo(3.347, 2);
      expect(loss).toBeLessThan(2.5);
    },
    90_000,
  );
});

describe('llama', () => {
  const tiny = example('llama/tiny');
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'llama-'));
    cpSync(tiny, folder, { recursive: true });
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it("gives PyTorch's scores and tokens, and learns", async () => {
    const { exitCode, stdout, stderr } = await run([tsx, example('llama/main.ts')]);
    expect([exitCode, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(
      /^69952 parameters, 2 layers\nscores differ from PyTorch's by \S+e-[5-9]\ncontinues with( \d+){20}\nloss .*\n$/,
    );
  }, 60_000);

  const editConfig = (change: object): void => {
    const config: object = JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8'));
    writeFileSync(join(folder, 'config.json'), JSON.stringify({ ...config, ...change }));
  };
  /** Loads the tensors of the checkpoint, and saves what `change` makes of them. */
  const editTensors = (
    change: (tensors: Awaited<ReturnType<typeof loadSafetensors>>) => void,
  ): Promise<void> =>
    scope(async () => {
      const file = join(folder, 'model.safetensors');
      const tensors = { ...(await loadSafetensors(file)) };
      change(tensors);
      await saveSafetensors(file, tensors);
    });

  it('loads files with the rates of rotary positions, and files that share the embedding', async () => {
    await editTensors((tensors) => {
      tensors['model.layers.0.self_attn.rotary_emb.inv_freq'] = tensors['model.norm.weight']!;
      delete tensors['lm_head.weight'];
    });
    await expect(loadLlama(folder)).rejects.toThrow('missing lm_head.weight. Nothing was changed.');
    editConfig({ tie_word_embeddings: true });
    expect((await loadLlama(folder)).parameters().length).toBe(2 + 2 * 9);
  });

  it('refuses what it does not compute', async () => {
    editConfig({ rope_scaling: { rope_type: 'llama3', factor: 8 } });
    await expect(loadLlama(folder)).rejects.toThrow('rope_scaling is not part of this example');
    editConfig({ rope_scaling: null, model_type: 'gpt2' });
    await expect(loadLlama(folder)).rejects.toThrow("expected model_type 'llama', got 'gpt2'");
  });
});

describe('diffusion.ts', () => {
  it('learns to remove noise, and draws a picture', async () => {
    const { exitCode, stdout, stderr } = await run([tsx, example('diffusion.ts')]);
    expect([exitCode, stderr]).toEqual([0, '']);
    const lines = stdout.trimEnd().split('\n');
    expect(lines.slice(8, -1).every((line) => /^[ .+#]{16}$/.test(line))).toBe(true);
    expect(lines.slice(8, -1)).toHaveLength(16);
    expect(lines.at(-1)).toMatch(/^error 0\.\d{3}, distance of drawn pictures 0\.\d{3}, of noise 0\.\d{3}$/);
  }, 90_000);

  it('fails if it has not learned', async () => {
    const { exitCode, stderr } = await run([tsx, example('diffusion.ts'), '--steps', '2']);
    expect(stderr).toContain('Error: expected an error below 0.15, got ');
    expect(exitCode).toBe(1);
  }, 60_000);
});
