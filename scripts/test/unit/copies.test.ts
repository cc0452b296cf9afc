// Checks that the copies of small files are equal that several packages have, so as not to import each other for so
// little.
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const text = (path: string): string =>
  readFileSync(new URL(`../../../packages/${path}`, import.meta.url), 'utf8');

it.each([
  [
    'unknown options are described',
    [
      ...['store', 'ddp', 'data', 'launch'].map((name) => `${name}/src/option-names.ts`),
      'collectives/src/options/option-names.ts',
      'tensor/src/checks/option-names.ts',
    ],
  ],
])('%s by the same code in all packages', (_, [first, ...others]) => {
  for (const other of others) expect([other, text(other)]).toEqual([other, text(first!)]);
});
