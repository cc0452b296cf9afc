import { expect, test } from 'vitest';
import { fewestToRemove } from '../../../src/membership/protocol/reachable.ts';
import { Random } from '../../support/simulation/random.ts';

/** Tries all sets of members, and returns the best one: the fewest, and of these the one that keeps the lowest. */
function bruteForce(count: number, cut: readonly (readonly [number, number])[]): number[] {
  const sets = Array.from({ length: 2 ** count }, (_, bits) =>
    Array.from({ length: count }, (_, member) => member).filter((member) => bits & (1 << member)),
  );
  const fits = sets.filter((set) => cut.every(([a, b]) => set.includes(a) || set.includes(b)));
  const fewest = Math.min(...fits.map((set) => set.length));
  const key = (set: readonly number[]) =>
    Array.from({ length: count }, (_, member) => (set.includes(member) ? '1' : '0')).join('');
  return fits.filter((set) => set.length === fewest).sort((a, b) => (key(a) < key(b) ? -1 : 1))[0]!;
}

test('finds what trying all sets finds', () => {
  const random = new Random(1);
  for (let run = 0; run < 300; run++) {
    const count = 2 + random.whole(6);
    const cut = Array.from(
      { length: random.whole(10) },
      () => [random.whole(count), random.whole(count)] as const,
    ).filter(([a, b]) => a !== b);
    expect(fewestToRemove(count, cut), JSON.stringify(cut)).toEqual(bruteForce(count, cut));
  }
});

test('finds the smaller side of a partition of 1,024 members', () => {
  const cut: [number, number][] = [];
  for (let a = 0; a < 300; a++) for (let b = 300; b < 1_024; b++) cut.push([a, b]);
  expect(fewestToRemove(1_024, cut)).toEqual(Array.from({ length: 300 }, (_, member) => member));
});
