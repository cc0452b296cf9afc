// Checks that the copies of a file are equal. Several packages have a copy of the same small file because they must not
// import each other for it.
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const text = (path: string): string =>
  readFileSync(new URL(`../../../packages/${path}`, import.meta.url), 'utf8');

it.each([
  [
    'unknown options are described',
    [
      ...['store', 'ddp', 'data', 'elastic', 'launch'].map((name) => `${name}/src/option-names.ts`),
      'collectives/src/options/option-names.ts',
      'tensor/src/checks/option-names.ts',
    ],
  ],
  [
    'members of other libraries are refused',
    [
      'tensor/src/checks/foreign-members.ts',
      'collectives/src/options/foreign-members.ts',
      'ddp/src/foreign-members.ts',
      'data/src/foreign-members.ts',
    ],
  ],
  [
    'native addons are found',
    ['collectives/src/backends/find-addon.ts', 'tensor/src/backends/native/find-addon.ts'],
  ],
  [
    'stacks have room for the program',
    [
      ...['ddp', 'collectives', 'data', 'elastic', 'tfjs'].map((name) => `${name}/src/deep-stack.ts`),
      'tensor/src/errors/deep-stack.ts',
    ],
  ],
  ['devices and links are saved to', ['tensor/src/files/replaceable.ts', 'ddp/src/snapshot/replaceable.ts']],
])('%s by the same code in all packages', (_, [first, ...others]) => {
  for (const other of others) expect([other, text(other)]).toEqual([other, text(first!)]);
});
