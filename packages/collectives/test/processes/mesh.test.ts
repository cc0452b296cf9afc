// Meshes of real processes, on both backends that connect processes without a device.
import { values, withRanks } from '@ringwise/testing';
import { expect, it } from 'vitest';

const module = new URL('../support/mesh-ranks.ts', import.meta.url);

it.each([
  ['host', { a: 2, b: 2 }],
  ['host', { a: 2, b: 3 }],
  ['tcp', { a: 2, b: 2 }],
  ['tcp', { a: 3, b: 2 }],
] as const)('on %s, %o', async (backend, axes) => {
  const size = axes.a * axes.b;
  const env = { RINGWISE_BACKEND: backend };
  const results = values(await withRanks(size, module, 'sumsOnMesh', { args: [axes], env }));
  const ranks = [...Array(size).keys()];
  const sum = (own: readonly number[]) => own.reduce((total, rank) => total + rank, 0);
  for (const [rank, result] of results.entries()) {
    const [a, b] = [Math.floor(rank / axes.b), rank % axes.b];
    const alongA = ranks.filter((other) => other % axes.b === b);
    const alongB = ranks.filter((other) => Math.floor(other / axes.b) === a);
    expect(result).toEqual({ at: { a, b }, sums: [sum(alongA), sum(alongB), sum(ranks)], backend });
  }
});
