import { expect, it } from 'vitest';
import { drawPeers, type Measurement } from '../../../bench/plot/peers-plot.ts';

const measurement: Measurement = {
  command: 'npx tsx bench/plot.ts',
  machine: { cpu: 'a processor', cores: 2, load: 0.5, node: 'v20.20.0' },
  allReduce: [
    { ranks: 2, bytes: 4, us: { js: 1, openmpi: 2 } },
    { ranks: 2, bytes: 4096, us: { js: 3 } },
  ],
  ddp: [{ ranks: 2, ours: 12_000, peers: [7000, 9000] }],
};

it.each([
  ['light', '#fff'],
  ['dark', '#0d1117'],
] as const)('draws what was measured, and only that, in a %s theme', (theme, paper) => {
  const svg = drawPeers(measurement, theme);
  expect(svg).toContain(`<rect width="100%" height="100%" fill="${paper}"/>`);
  expect(svg).toContain('>Measured in turns, on 2 cores<');
  for (const name of ['ringwise', 'Open MPI', 'PyTorch (Gloo)']) expect(svg).toContain(`>${name}</text>`);
  expect(svg).not.toMatch(/MPICH|>Gloo<|NaN|undefined|Infinity/);
  // Five measured values, and three names in the legend.
  expect(svg.match(/<circle/g)?.length).toBe(5 + 3);
});

it('says that other programs disturbed the measurement', () => {
  const machine = { ...measurement.machine, load: 12.3 };
  expect(drawPeers({ ...measurement, machine }, 'light')).toContain('disturbed by other programs (load 12)');
});
