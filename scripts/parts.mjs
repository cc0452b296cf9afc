// Lists the parts of `npm run test:all`. The tests in a folder test/full/PART belong to the part of that name.
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/** Folders of a package's tests that `npm test` runs. */
export const quickKinds = ['unit', 'isolated', 'processes'];

/** Maps the names for --part to a description of what the part runs. */
export const parts = {
  quick: 'what `npm test` runs after the build: checks, and the tests in test/unit, isolated and processes',
  backends:
    'the contracts on every backend and CPU level, 10,000 random programs, ranks killed in every verb',
  devices:
    'NCCL, device memory and CUDA kernels, on a GPU (RINGWISE_TEST_GPU=1) or the software device, there also asynchronously',
  examples: 'every program of examples/',
  hosts: 'jobs over several hosts, which are network namespaces here',
  launchers: 'jobs under mpirun, torchrun and Slurm',
  mpi: 'the mpi backend under every MPI that is installed',
  packages: 'the packed npm packages, installed and used; downloads Yarn 4 and Next.js from npm',
  platforms: 'binaries of other platforms, cross-compiled and run: arm64 in qemu, musl in Node for musl',
  sanitizers: 'the C++ unit tests with the address, undefined-behaviour and thread sanitizers',
  simulator: 'the simulated network',
  soak: 'long runs, and jobs whose processes are killed',
  windows:
    'Node.js for Windows under Wine, with the node.exe that RINGWISE_WINDOWS_NODE names: tcp, launcher, native kernels',
};

/** Returns what vitest runs for a part: the projects, and texts one of which a file's path must contain. */
export function selectionOf(name) {
  if (name === 'quick') return { projects: quickKinds.map((kind) => `*-${kind}`), filters: [] };
  return { projects: ['*-full'], filters: [`test/full/${name}/`] };
}

/** Returns the folders that have tests, from the root of the repository. */
export function testedFolders(root) {
  const packages = readdirSync(join(root, 'packages')).map((name) => `packages/${name}`);
  return [...packages, 'examples', 'native', 'scripts'].filter((folder) =>
    existsSync(join(root, folder, 'test')),
  );
}

/**
 * Returns what vitest runs of a part once more, in asynchronous mode of the software device; null if it runs nothing.
 * RINGWISE_SOFTWARE_GPU=async:SEED chooses another seed. Leaves out the two contracts of the collectives on devices,
 * which take minutes, and device-sync-batch-norm.
 */
export function asynchronousOf(name) {
  if (name !== 'devices' || process.env.RINGWISE_TEST_GPU === '1') return null;
  return {
    env: { RINGWISE_SOFTWARE_GPU: process.env.RINGWISE_SOFTWARE_GPU || 'async:1' },
    projects: ['*-full', 'tensor-isolated', 'tensor-processes'],
    filters: [
      ...['asynchronous', 'cuda-kernels', 'device-captured', 'device-ddp', 'device-elastic'].map(
        (name) => `full/devices/${name}`,
      ),
      ...['test/isolated/device/', 'test/processes/device/'],
    ],
  };
}

/** Returns the paths in folders test/full that belong to no part. Tests there would never run. */
export function strays(root) {
  return testedFolders(root).flatMap((folder) => {
    const full = join(root, folder, 'test/full');
    if (!existsSync(full)) return [];
    const entries = readdirSync(full, { withFileTypes: true });
    return entries
      .filter((entry) => !entry.isDirectory() || !Object.hasOwn(parts, entry.name) || entry.name === 'quick')
      .map(({ name }) => `${folder}/test/full/${name}`);
  });
}
