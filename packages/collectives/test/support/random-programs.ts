// Runs random programs on a backend and on the reference, and compares all bits that they leave behind. A seed
// makes the same program in every run; RINGWISE_SEED=1234 runs only the program of that seed.
import { Pool } from '@ringwise/testing';
import { afterEach, describe, expect, it } from 'vitest';
import { type Outcome, runScenario } from '../../contract/index.ts';
import { randomProgram } from '../../contract/scenarios/random-program.ts';
import { loopbackGroups } from '../../src/index.ts';
import { hostRanks, tcpRanks } from './pool.ts';

const programsPerGroup = 250;
const wantedSeed = process.env.RINGWISE_SEED;

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

/** Returns the texts of randomPrograms() for each rank. */
function textsOf(outcomes: readonly Outcome[], what: string): string[][] {
  return outcomes.map((outcome, rank) => {
    if ('value' in outcome) return outcome.value as string[];
    throw new Error(`${what}, rank ${rank}: ${outcome.error.message}`);
  });
}

/** Names the first program, rank and step in which two lists of texts differ. */
function firstDifference(
  size: number,
  seed: number,
  found: string[][],
  reference: string[][],
): string | null {
  for (const [rank, texts] of reference.entries()) {
    for (const [index, text] of texts.entries()) {
      if (text === found[rank]?.[index]) continue;
      const digests = found[rank]?.[index]?.split(' ') ?? [];
      const step = text.split(' ').findIndex((digest, at) => digest !== digests[at]);
      const program = JSON.stringify(randomProgram(seed + index, size));
      return `RINGWISE_SEED=${seed + index} on ${size} ranks: step ${step} differs on rank ${rank} of ${program}`;
    }
  }
  return null;
}

/** Declares one test for each [number of ranks, number of programs]. */
export function randomProgramTests(
  programsBySize: readonly (readonly [number, number])[],
  backend: 'host' | 'tcp' = 'host',
): void {
  describe(`random programs on the ${backend} backend`, () => {
    it.each(programsBySize)(
      'with %i ranks leave the bits that the reference leaves, %i times',
      async (size, programs) => {
        const pool = await Pool.start(size, backend === 'host' ? hostRanks() : tcpRanks());
        pools.push(pool);
        const first = wantedSeed === undefined ? 0 : Number(wantedSeed);
        const end = wantedSeed === undefined ? programs : first + 1;
        for (let seed = first; seed < end; seed += programsPerGroup) {
          const count = Math.min(programsPerGroup, end - seed);
          const args = [seed, count];
          const [found, reference] = await Promise.all([
            pool.run<Outcome>('randomPrograms', args),
            onLoopback(size, args),
          ]);
          const what = `seeds ${seed} to ${seed + count - 1} on ${size} ranks`;
          const texts = [textsOf(found, what), textsOf(reference, `${what}, loopback`)] as const;
          expect(firstDifference(size, seed, ...texts)).toBe(null);
        }
      },
      300_000,
    );
  });
}
