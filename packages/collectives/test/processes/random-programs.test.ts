// Random programs on the host backend leave the same bits behind as on the reference. A seed makes the same program
// in every run: to see one alone, call randomPrograms(group, seed, 1).
import { Pool } from '@ringwise/testing';
import { afterEach, describe, expect, it } from 'vitest';
import { type Outcome, runScenario } from '../../contract/index.ts';
import { randomProgram } from '../../contract/scenarios/random-program.ts';
import { loopbackGroups } from '../../src/index.ts';
import { hostRanks } from '../support/pool.ts';

const programsPerGroup = 250;

const pools: Pool[] = [];
afterEach(async () => {
  for (const pool of pools.splice(0)) await pool.end();
});

async function onLoopback(size: number, args: readonly unknown[]): Promise<Outcome[]> {
  const groups = loopbackGroups(size);
  const outcomes = await Promise.all(groups.map((group) => runScenario(group, 'randomPrograms', args)));
  await Promise.all(groups.map((group) => group.close()));
  return outcomes;
}

/** By rank: the texts of randomPrograms(). */
function textsOf(outcomes: readonly Outcome[], what: string): string[][] {
  return outcomes.map((outcome, rank) => {
    if ('value' in outcome) return outcome.value as string[];
    throw new Error(`${what}, rank ${rank}: ${outcome.error.message}`);
  });
}

/** Names the first program, rank and step in which two lists of texts differ. */
function firstDifference(size: number, seed: number, host: string[][], reference: string[][]): string | null {
  for (const [rank, texts] of reference.entries()) {
    for (const [index, text] of texts.entries()) {
      if (text === host[rank]?.[index]) continue;
      const digests = host[rank]?.[index]?.split(' ') ?? [];
      const step = text.split(' ').findIndex((digest, at) => digest !== digests[at]);
      const program = JSON.stringify(randomProgram(seed + index, size));
      return `seed ${seed + index} on ${size} ranks: step ${step} differs on rank ${rank} of ${program}`;
    }
  }
  return null;
}

describe('random programs on the host backend', () => {
  it.each([
    [1, 500],
    [2, 4_000],
    [3, 3_000],
    [4, 2_500],
  ])(
    'with %i ranks leave the bits that the reference leaves, %i times',
    async (size, programs) => {
      const pool = await Pool.start(size, hostRanks());
      pools.push(pool);
      for (let seed = 0; seed < programs; seed += programsPerGroup) {
        const args = [seed, programsPerGroup];
        const [host, reference] = await Promise.all([
          pool.run<Outcome>('randomPrograms', args),
          onLoopback(size, args),
        ]);
        const what = `seeds ${seed} to ${seed + programsPerGroup - 1} on ${size} ranks`;
        const texts = [textsOf(host, what), textsOf(reference, `${what}, loopback`)] as const;
        expect(firstDifference(size, seed, ...texts)).toBe(null);
      }
    },
    300_000,
  );
});
