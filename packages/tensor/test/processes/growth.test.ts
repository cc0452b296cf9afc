// Tests memory that grows in a loop without turns of the event loop. Each program has a process of its own, because
// a process gets the warning once.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';

/** The output of a program: the number of its tensors at the end, and its warnings. */
interface Outcome {
  readonly tensors: number;
  readonly warnings: readonly {
    readonly code: string;
    readonly message: string;
    /** Whether the warning came before the end of the loop. */
    readonly isEarly: boolean;
  }[];
}

/** Runs `body` after a common start. `step()` trains a small model for a step and disposes of nothing. */
async function outcomeOf(body: string): Promise<Outcome> {
  const program = `
    import { setImmediate as turn } from 'node:timers/promises';
    import * as t from '@ringwise/tensor';
    import { Linear, ReLU, Sequential } from '@ringwise/tensor/nn';
    import { SGD } from '@ringwise/tensor/optim';
    const warnings = [];
    let isAtEnd = false;
    process.on('warning', ({ code, message }) => warnings.push({ code, message, isEarly: !isAtEnd }));
    const model = new Sequential(new Linear(8, 16), new ReLU(), new Linear(16, 4));
    const optimizer = new SGD(model.parameters(), { lr: 0.01 });
    const labels = t.tensor(Int32Array.from({ length: 8 }, (_, i) => i % 4));
    function step() {
      const x = t.rand([8, 8]);
      const loss = t.crossEntropy(model.forward(x), labels);
      optimizer.zeroGrad();
      loss.backward();
      optimizer.step();
      return loss;
    }
    /** Counts to the given maximum, or until a warning comes and then as far again. */
    const untilWarned = function* (most) {
      for (let i = 0, end = most; i < end; i++) {
        yield i;
        if (warnings.length > 0 && end === most) end = 2 * i;
      }
    };
    ${body}
    isAtEnd = true;
    const { tensors } = t.memory();
    await turn();
    console.log(JSON.stringify({ tensors, warnings }));`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], {
    cwd: import.meta.dirname,
    timeout: 240_000,
  });
  return JSON.parse(stdout) as Outcome;
}

describe('a loop without a turn of the event loop', () => {
  test('that disposes nothing gets one warning, while it runs, with the line', async () => {
    const { warnings } = await outcomeOf('for (const _ of untilWarned(100_000)) step();');
    expect(warnings).toEqual([
      {
        code: 'RINGWISE_UNDISPOSED',
        message: expect.stringMatching(
          /^tensor: \d+ tensors \([\d.]+ MiB\) more than .* made at step \(.*scope\(\)/,
        ),
        isEarly: true,
      },
    ]);
  });

  test('that awaits only values that are ready gets it, too', async () => {
    const { warnings } = await outcomeOf('for (const _ of untilWarned(100_000)) { step(); await null; }');
    expect(warnings.map(({ code, isEarly }) => [code, isEarly])).toEqual([['RINGWISE_UNDISPOSED', true]]);
  });

  test('of large tensors gets it after few of them', async () => {
    const { warnings } = await outcomeOf(
      'for (const _ of untilWarned(1_000)) t.zeros([2 ** 19]).add(1).dispose();',
    );
    expect(warnings).toHaveLength(1);
    expect(warnings[0]!.message).toMatch(/\(\d\d+\.\d MiB\)/);
  });

  test.each([
    ['uses a scope', 'for (let i = 0; i < 10_000; i++) t.scope(() => void step());'],
    ['keeps all that it makes', 'const kept = []; for (let i = 0; i < 40_000; i++) kept.push(t.rand([16]));'],
    [
      'loads a large model',
      'const kept = []; for (let i = 0; i < 60; i++) kept.push(new Linear(512, 2048));',
    ],
    [
      'keeps a data set, made by way of others',
      'const kept = Array.from({ length: 20_000 }, () => { const raw = t.rand([16]); const made = raw.mul(2); raw.dispose(); return made; });',
    ],
    [
      'disposes late',
      'const all = []; for (let i = 0; i < 20_000; i++) all.push(t.rand([16])); for (const each of all) each.dispose();',
    ],
    ['has turns', 'for (let i = 0; i < 10_000; i++) { step(); if (i % 100 === 0) await turn(); }'],
  ])('gets none where it %s', async (_, body) => {
    expect((await outcomeOf(body)).warnings).toEqual([]);
  });
});
