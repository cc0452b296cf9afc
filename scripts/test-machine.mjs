// `npm run test:machine`: builds the packages, and tests on a machine of any kind what a release brings there, with the
// binaries in native/npm: doctor, the `tcp` backend, and all packages installed from a registry on the loopback
// interface. Needs no compiler.
import { parts, quickKinds } from './parts.mjs';
import { run } from './run.mjs';
import { vitest } from './vitest.mjs';

const turbo = ['node_modules/turbo/bin/turbo', 'run', 'build', 'types', '--filter=./packages/*'];
const steps = [
  { name: 'build', run: () => run(process.execPath, ...turbo, '--output-logs=errors-only') },
  {
    name: 'doctor',
    skipped: process.platform === 'linux' ? null : 'only Linux has binaries of all packages',
    run: () => run(process.execPath, 'packages/launch/bin/ringwise.js', 'doctor'),
  },
  {
    name: 'tcp: the backend without native code',
    run: () =>
      vitest(
        quickKinds.map((kind) => `collectives-${kind}`),
        ['backends/tcp', 'processes/tcp'],
      ),
  },
  {
    name: `packages: ${parts.packages}`,
    skipped: process.platform === 'win32' ? 'its empty projects have shell scripts' : null,
    run: () => vitest(['scripts-full'], ['test/full/packages/gates', 'test/full/packages/registry']),
  },
];

for (const { name, skipped, run } of steps) {
  console.log(`\n== ${name}${skipped ? ` (skipped: ${skipped})` : ''}`);
  const code = skipped ? 0 : await run();
  if (code !== 0) process.exitCode = code;
}
