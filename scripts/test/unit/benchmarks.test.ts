import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const bench = new URL('../../../bench/', import.meta.url);

it('bench/README.md names each program of the folder, and no other', () => {
  const text = readFileSync(new URL('README.md', bench), 'utf8');
  const named = new Set(Array.from(text.matchAll(/`([\w-]+\.ts)`/g), ([, name]) => name!));
  expect([...named].sort()).toEqual(
    readdirSync(bench)
      .filter((name) => name.endsWith('.ts'))
      .sort(),
  );
});
