import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const linesOf = (name: string) => readFileSync(new URL(`../../${name}`, import.meta.url), 'utf8').split('\n');

/** Counts the lines of `next` outside a longest common subsequence with `before`: those that a diff shows as new. */
function newLines(before: readonly string[], next: readonly string[]): number {
  // longest[j]: length of a longest common subsequence of the lines of `before` so far and the first j lines of `next`.
  let longest = new Array<number>(next.length + 1).fill(0);
  for (const line of before) {
    const row = [0];
    for (const [j, other] of next.entries())
      row.push(line === other ? longest[j]! + 1 : Math.max(longest[j + 1]!, row[j]!));
    longest = row;
  }
  return next.length - longest.at(-1)!;
}

it('counts added, changed and moved lines', () => {
  expect(newLines(['a', 'b', 'c', 'd'], ['a', 'x', 'c', 'd', 'y'])).toBe(2);
  expect(newLines(['a', 'b', 'c'], ['c', 'a', 'b'])).toBe(1);
  expect(newLines(['a', 'b', 'c'], ['b'])).toBe(0);
});

it('going from one process to many takes at most 15 lines', () => {
  const count = newLines(linesOf('mnist.ts'), linesOf('mnist-ddp.ts'));
  expect(count).toBeGreaterThan(0);
  expect(count).toBeLessThanOrEqual(15);
});

it('going on when processes are lost takes at most ten lines, beside imports and brackets', () => {
  const code = (name: string) =>
    linesOf(name)
      .map((line) => line.trim())
      .filter((line) => !/^(\/\/|import |[\])};,]*$)/.test(line));
  const count = newLines(code('mnist-ddp.ts'), code('mnist-elastic.ts'));
  expect(count).toBeGreaterThan(0);
  expect(count).toBeLessThanOrEqual(10);
});
