// Runs every JavaScript block of docs/collectives.md on each rank of a group of two.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { tensor } from '@ringwise/tensor';
import { describe, expect, it } from 'vitest';
import { across, type Group, loopbackGroups, mesh } from '../../src/index.ts';

const page = readFileSync(new URL('../../../../docs/collectives.md', import.meta.url), 'utf8');
const AsyncFunction = (async () => {}).constructor as new (
  ...source: string[]
) => (group: Group, ...names: readonly unknown[]) => Promise<void>;

/** What the blocks use beside their group. */
const names = { assert, across, mesh, tensor };

/** The blocks, each with the heading above it. */
const blocks = page.split(/^## /m).flatMap((section) => {
  const [heading] = section.split('\n', 1);
  return [...section.matchAll(/^```js\n(.*?)^```$/gms)].map(([, code]) => [heading!, code!] as const);
});

describe('docs/collectives.md', () => {
  it('has as many blocks as headings', () => {
    expect(blocks.length).toBe(page.split(/^## /m).length - 1);
  });

  it.each(blocks)('does what it says under "%s"', async (_, code) => {
    const run = new AsyncFunction('group', ...Object.keys(names), code);
    const groups = loopbackGroups(2, { timeoutMs: 60_000 });
    await Promise.all(groups.map((group) => run(group, ...Object.values(names))));
    await Promise.all(groups.map((group) => group.close()));
  });
});
