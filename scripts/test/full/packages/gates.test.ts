// Runs the gates of a release on the packed packages.
import { expect, it } from 'vitest';
import { faultsOfPackage, faultsOfSizes } from '../../../release/gates.mjs';
import { faultsOfLint } from '../../../release/lint.mjs';
import { platform } from '../../support/clean-room.ts';
import { config, type Packed, published } from '../../support/published.ts';

/** Set where all packages must be complete, with the oldest glibc that release.config.json names. */
const isStrict = process.env.RINGWISE_TEST_STRICT === '1';
const given = published({ isEmpty: true });

/** Packages that this machine can build: other platforms and MPIs are built elsewhere. */
const isBuiltHere = ({ isCompiled, manifest: { name } }: Packed[number]): boolean =>
  isStrict || !isCompiled || (name.endsWith(platform) && !name.includes('-mpi-'));

it('gates: files, manifests, READMEs, licences, source maps and binaries', () => {
  // The compiler of a distribution uses the glibc of that distribution.
  const rules = isStrict ? config : { ...config, glibc: '2.99' };
  const checked = given.packed.filter(isBuiltHere);
  expect(checked.some(({ isCompiled }) => isCompiled)).toBe(true);
  expect(checked.flatMap((entry) => faultsOfPackage(entry, rules))).toEqual([]);
});

it('gates: installed sizes', () => {
  expect(faultsOfSizes(given.packed)).toEqual([]);
});

it('gates: publint and attw find nothing in any package', async () => {
  expect(await faultsOfLint(given.packed.filter(isBuiltHere))).toEqual([]);
});
