// Compiles the programs that are measured: those of this folder into bench/build, ours into native/build-bench. A
// program that does not compile is left out, with the compiler's first error and the packages to install as the reason.
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const folder = fileURLToPath(new URL('..', import.meta.url));
const root = fileURLToPath(new URL('../..', import.meta.url));
export const launcher = `${root}packages/ringwise/bin/ringwise.js`;
/** The script that every rank of `ringwise bench` runs. */
export const benchRank = `${root}packages/collectives/dist/bench-rank.js`;

/** A program's path, or the reason why there is none, with what to install where that may help. */
export type Program = { readonly path: string } | { readonly missing: string };

const fast = ['-O3', '-march=native', '-w'];
const recipes = {
  limits: { compiler: 'cc', source: 'limits.c', flags: fast, packages: 'gcc libc6-dev' },
  link: { compiler: 'cc', source: 'link.c', flags: ['-O2', '-pthread'], packages: 'gcc libc6-dev' },
  sends: {
    compiler: 'cc',
    source: 'sends.c',
    flags: ['-O2', '-luring'],
    packages: 'gcc libc6-dev liburing-dev',
  },
  openmpi: {
    compiler: 'mpicc.openmpi',
    source: 'mpi.c',
    flags: fast,
    packages: 'openmpi-bin libopenmpi-dev',
  },
  mpich: { compiler: 'mpicc.mpich', source: 'mpi.c', flags: fast, packages: 'mpich libmpich-dev' },
  gloo: {
    compiler: 'c++',
    source: 'gloo.cc',
    flags: [...fast, '-std=c++17', '-lgloo', '-pthread'],
    packages: 'g++ libgloo-dev',
  },
} as const;

/** Compiles the program of that name unless it is newer than its sources. */
export async function build(name: keyof typeof recipes): Promise<Program> {
  const { compiler, source, flags, packages } = recipes[name];
  const path = `${folder}build/${name}`;
  const sources = [`${folder}peers/${source}`, `${folder}peers/harness.h`];
  const newest = Math.max(...sources.map((file) => statSync(file).mtimeMs));
  if (existsSync(path) && statSync(path).mtimeMs > newest) return { path };
  mkdirSync(`${folder}build`, { recursive: true });
  try {
    await run(compiler, ['-o', path, sources[0]!, ...flags]);
    return { path };
  } catch (error) {
    const { code, stderr } = error as NodeJS.ErrnoException & { stderr?: string };
    const why = code === 'ENOENT' ? `no ${compiler}` : firstError(stderr ?? '');
    return { missing: `${why}; it needs: apt-get install ${packages}` };
  }
}

/** Finds a Python that has torch: RINGWISE_PYTHON, or a python3. */
export async function findTorch(): Promise<Program> {
  const chosen = process.env.RINGWISE_PYTHON;
  for (const path of chosen ? [chosen] : ['python3', '/usr/bin/python3']) {
    try {
      await run(path, ['-c', 'import torch.distributed']);
      return { path };
    } catch {
      // Try the next one.
    }
  }
  return {
    missing: `apt-get install python3-torch libopenblas0-pthread (no torch in ${chosen ?? 'python3'})`,
  };
}

/** Returns the path of a program of this folder that needs no compiler. */
export const source = (name: string) => `${folder}peers/${name}`;

/**
 * Builds native/bench/collectives_bench.cc, which measures our collectives without Node. The first build
 * takes minutes.
 */
export async function buildNative(buildFolder: string): Promise<Program> {
  const options = ['-DRINGWISE_TESTS=ON', '-DRINGWISE_CUDA=OFF', '-DCMAKE_BUILD_TYPE=Release'];
  try {
    await run('cmake', ['-S', `${root}native`, '-B', buildFolder, ...options]);
    await run('cmake', ['--build', buildFolder, '--target', 'collectives_bench', '--parallel', '2'], {
      maxBuffer: 1 << 26,
    });
    return { path: `${buildFolder}/bench/collectives_bench` };
  } catch (error) {
    const { code, stderr } = error as NodeJS.ErrnoException & { stderr?: string };
    if (code === 'ENOENT') return { missing: 'apt-get install cmake g++ (no cmake)' };
    return { missing: `it does not build (${firstError(stderr ?? '')})` };
  }
}

export const nativeBuildFolder = `${root}native/build-bench`;

function firstError(text: string): string {
  const lines = text.split('\n');
  return (lines.find((line) => /error/i.test(line)) ?? lines[0] ?? 'failed').trim();
}
