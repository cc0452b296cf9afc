// Gradients through collectives: real processes get those of one process that computes everything.
import { manualSeed, type Tensor } from '@ringwise/tensor';
import { values, withRanks } from '@ringwise/testing';
import { describe, expect, it } from 'vitest';
import { cases, inputOf, type Kind } from '../support/across-cases.ts';
import { type layerOnMesh, parameters } from '../support/across-ranks.ts';

const module = new URL('../support/across-cases.ts', import.meta.url);
const more = new URL('../support/across-ranks.ts', import.meta.url);
const elements = (x: Tensor): number[] => Array.from(x.to('float64').dataSync() as Float64Array);

/** The gradients of one process, by rank. All ranks have rank 0's where they share its tensor. */
function expectedOf(kind: Kind, each: (typeof cases)[number], size: number): number[][] {
  const xs = Array.from({ length: size }, (_, rank) => inputOf(kind, each, rank, size));
  // Tensors of another rank of a shared case take no part.
  each.joined(xs, size).backward();
  const grads = xs.map((x) => (x.grad === null ? new Array<number>(x.count).fill(0) : elements(x.grad)));
  return each.isShared ? grads.map(() => grads[0]!) : grads;
}

/** Largest relative errors. Sums of bfloat16 are exact, so equal bits are expected. */
const tolerances: Record<Kind, number> = { float32: 2e-6, float64: 1e-14, bfloat16: 0 };

describe.each([2, 3, 4])('%i ranks get the gradients of one process', (size) => {
  const kinds: Kind[] = ['float32', 'float64', 'bfloat16'];
  it.each(kinds)('in %s', async (kind) => {
    manualSeed(0);
    const ranks = values(await withRanks(size, module, 'gradients', { args: [kind] })) as [
      number[],
      boolean,
    ][][];
    const wrong: string[] = [];
    let compared = 0;
    for (const [index, each] of cases.entries()) {
      if (kind === 'bfloat16' && each.divides && size === 3) continue;
      const expected = expectedOf(kind, each, size);
      for (const [rank, results] of ranks.entries()) {
        const [grad, isSame] = results[index]!;
        compared++;
        if (!isSame) wrong.push(`${each.name}: rank ${rank} gets others from the Sync form`);
        const scale = Math.max(1, ...expected[rank]!.map(Math.abs));
        const error = Math.max(0, ...expected[rank]!.map((value, i) => Math.abs(value - (grad[i] ?? NaN))));
        const isEmpty = expected[rank]!.length === 0;
        if (grad.length !== expected[rank]!.length || (!isEmpty && !(error <= tolerances[kind] * scale)))
          wrong.push(`${each.name}: rank ${rank} is wrong by ${error}`);
      }
    }
    expect(wrong).toEqual([]);
    expect(compared).toBeGreaterThan(cases.length);
  });
});

describe('beyond single verbs', () => {
  it('names what ranks disagree about, in backward too', async () => {
    for (const [leftOut, withoutGradient] of values(
      await withRanks(3, more, 'disagreements'),
    ) as string[][]) {
      expect(leftOut).toMatch(
        /labelled "gradient of across 1: allReduce of \[2\], after own, with gradient".* but rank 0 called .*"gradient of across 2: |labelled "gradient of across 2: .* but rank 2 called .*"gradient of across 1: /,
      );
      expect(withoutGradient).toMatch(
        /after own, with(out)? gradient.* but rank \d called .*after own, with(out)? gradient/,
      );
    }
  });

  it('backward may compute a block with verbs again', async () => {
    // The loss is (1 + 2 + 3) · Σ x², as each rank multiplies the same sum by its own factor.
    expect(values(await withRanks(3, more, 'recomputed'))).toEqual([1, 2, 3].map((x) => [12 * x, 24]));
  });

  it('a layer cut along two axes of a mesh is the layer', async () => {
    const { x, up, down } = parameters();
    const loss = x.matmul(up).tanh().matmul(down).square().mean();
    const expected = loss.item();
    loss.backward();
    for (const rank of values(await withRanks(4, more, 'layerOnMesh')) as Awaited<
      ReturnType<typeof layerOnMesh>
    >[]) {
      expect(rank.loss).toBeCloseTo(expected, 12);
      for (const [got, from] of [
        [rank.up, up],
        [rank.down, down],
      ] as const)
        for (const [i, value] of elements(from.grad!).entries()) expect(got[i]).toBeCloseTo(value, 12);
    }
  });
});
