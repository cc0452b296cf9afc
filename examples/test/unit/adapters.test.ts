// The adapters that docs/adapters.md shows are those that the examples run.
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const read = (path: string) => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');
const blocks = [...read('docs/adapters.md').matchAll(/```ts\n([\s\S]*?)```/g)].map(([, code]) => code!);

it.each([
  ['jax-js.ts', 'function averaged'],
  ['own-autograd.ts', 'function gradParam'],
])('%s', (name, part) => {
  const block = blocks.find((each) => each.includes(part));
  expect(read(`examples/${name}`)).toContain(block);
  // "About 30 lines": the largest is no longer than this.
  expect(block!.trimEnd().split('\n').length).toBeLessThanOrEqual(36);
});
