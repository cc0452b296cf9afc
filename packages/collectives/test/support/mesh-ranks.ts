// What the ranks of mesh.test.ts run.
import { init, mesh } from '../../src/index.ts';

/** Sums the ranks along each axis and over the whole mesh, and fails one axis. */
export async function sumsOnMesh(_rank: number, axes: Record<string, number>): Promise<unknown> {
  await using group = await init();
  const names = Object.keys(axes);
  const grid = await mesh(group, axes as Record<'a' | 'b', number>, { flat: { whole: ['a', 'b'] } });
  const sums: number[] = [];
  for (const name of [...names, 'whole'] as ('a' | 'b' | 'whole')[]) {
    const x = Float64Array.of(group.rank);
    await grid.axis(name).allReduce(x);
    sums.push(x[0]!);
  }
  await grid.close();
  await group.barrier();
  return { at: grid.at, sums, backend: grid.group.backend };
}
