// Writes a fingerprint of what the native build finds outside the repository: compiler, CMake, nvcc, device, MPI and
// RINGWISE_CUDA. The build cache hashes the file, so that the addons are rebuilt when nvcc is installed later.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';

function version(command) {
  const result = spawnSync(command, ['--version'], { encoding: 'utf8' });
  if (result.status !== 0) return null;
  const lines = result.stdout.split('\n').filter((line) => /\d/.test(line));
  return (command.endsWith('nvcc') ? lines.at(-1) : lines[0]) ?? null;
}

const { CXX, CUDACXX, CUDA_HOME, RINGWISE_CUDA, RINGWISE_MPICC } = process.env;
const nvccs = [CUDACXX, CUDA_HOME && `${CUDA_HOME}/bin/nvcc`, '/usr/local/cuda/bin/nvcc', 'nvcc'];
const compiler = version(CXX ?? 'c++');
const cmake = version('cmake');

if (!compiler || !cmake) {
  const missing = [!compiler && 'a C++20 compiler (g++ or clang++)', !cmake && 'CMake 3.22 or newer']
    .filter(Boolean)
    .join(' and ');
  console.error(`ringwise: building the native addons needs ${missing}.`);
  console.error('  Debian, Ubuntu: sudo apt-get install g++ cmake    Fedora: sudo dnf install gcc-c++ cmake');
  process.exit(1);
}

/**
 * Returns the compiler command that an MPI wrapper would run, which names its MPI; null if there is no such
 * wrapper.
 */
function mpi(wrapper) {
  const result = spawnSync(wrapper, ['-show'], { encoding: 'utf8' });
  return result.status === 0 ? result.stdout.trim() : null;
}

const fingerprint = JSON.stringify(
  {
    platform: `${process.platform}-${process.arch}`,
    compiler,
    cmake,
    nvcc: nvccs.filter(Boolean).map(version).find(Boolean) ?? null,
    mpi: (RINGWISE_MPICC ?? 'mpicc.openmpi,mpicc.mpich,mpicc').split(',').map(mpi),
    RINGWISE_CUDA: RINGWISE_CUDA ?? 'AUTO',
    device: existsSync('/dev/nvidiactl'), // RINGWISE_CUDA=AUTO compiles kernels only if there is a device
  },
  null,
  2,
);
const file = new URL('../native/.toolchain', import.meta.url);
if (!existsSync(file) || readFileSync(file, 'utf8') !== fingerprint) writeFileSync(file, fingerprint);
