// Builds the native binaries of one target with zig, checks them, and puts them into the npm packages of that target.
import { spawn } from 'node:child_process';
import { copyFileSync, existsSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { namedFiles } from '../release/packages.mjs';
import { root } from '../run.mjs';
import { faultsOfBinary } from './faults.mjs';
import { writeNodeLibrary } from './windows.mjs';
import { findZig, writeToolchain } from './zig.mjs';

/** Maps the files of packages to the CMake targets that build them. */
const cmakeTargets = {
  'coll.node': 'ringwise_coll',
  'tensor.node': 'ringwise_tensor',
  'libringwise.so': 'ringwise',
  'libringwise.dylib': 'ringwise',
};

/** Longest time in ms that a build may take. */
const limitMs = 60 * 60_000;

export const native = join(root, 'native');

/** Returns the build folder of a target. */
export const buildFolder = (name) => join(native, `build-${name}`);

/** Returns the npm packages of a target that exist: their folders, and the files of each that are built. */
export function packagesOf(name, families) {
  return families
    .map((family) => join(native, 'npm', `${family}-${name}`))
    .filter((folder) => existsSync(join(folder, 'package.json')))
    .map((folder) => ({
      folder,
      files: namedFiles(JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))).filter(
        (file) => file !== 'package.json',
      ),
    }));
}

/**
 * Builds `families` of a target of targets.mjs in a folder of its own and stages the files in native/npm. `progress` is
 * called with a sentence now and then. Rejects with what failed; a file with faults is not staged.
 */
export async function crossBuild(name, target, { families, jobs = availableParallelism(), progress }) {
  const folder = buildFolder(name);
  const zig = findZig();
  const toolchain = writeToolchain(join(folder, 'zig'), zig, target);
  const options = [
    `-DCMAKE_TOOLCHAIN_FILE=${toolchain}`,
    `-DCMAKE_JS_INC=${headers().join(';')}`,
    ...(target.os === 'win32'
      ? [`-DCMAKE_JS_LIB=${writeNodeLibrary(join(folder, 'zig'), zig, target, nodeApi().def_paths)}`]
      : []),
    '-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON', // zig has no precompiled headers
    `-DCMAKE_LIBRARY_OUTPUT_DIRECTORY=${join(folder, 'Release')}`,
    `-DCMAKE_RUNTIME_OUTPUT_DIRECTORY=${join(folder, 'Release')}`,
    `-DRINGWISE_CUDA_ARCHITECTURES=${process.env.RINGWISE_CUDA_ARCHITECTURES ?? '80;90;100;120'}`,
    '-DRINGWISE_MPICC=none', // an MPI is built on a machine that has it
  ];
  // The compiler's cache lies in the build folder, so that builds share nothing and `rm -r` removes all of it.
  const env = {
    ...process.env,
    ZIG_GLOBAL_CACHE_DIR: join(folder, 'zig/cache'),
    ZIG_LOCAL_CACHE_DIR: join(folder, 'zig/cache'),
    SOURCE_DATE_EPOCH: '0',
    RINGWISE_CUDA: target.libc === 'glibc' ? (process.env.RINGWISE_CUDA ?? 'OFF') : 'OFF', // CUDA's driver needs glibc
  };
  await command(env, progress, 'cmake', '-S', native, '-B', folder, '-G', 'Ninja', ...options);
  const packages = packagesOf(name, families);
  const goals = packages.flatMap(({ files }) => files.map((file) => cmakeTargets[file]).filter(Boolean));
  await command(env, progress, 'cmake', '--build', folder, '--parallel', String(jobs), '--target', ...goals);
  const staged = [];
  for (const { folder: to, files } of packages)
    for (const file of files) staged.push(stage(name, join(to, file)));
  return staged;
}

/** Copies one file of a package from the build folder, or from the sources; returns its path. */
function stage(name, to) {
  if (to.endsWith('.h')) {
    copyFileSync(join(native, 'coll/include', basename(to)), to);
    return to;
  }
  const built = join(buildFolder(name), 'Release', basename(to));
  const faults = faultsOfBinary(built, name);
  if (faults.length > 0) {
    rmSync(to, { force: true });
    throw new Error(faults.join('\n'));
  }
  copyFileSync(built, to);
  return to;
}

const requireNative = createRequire(join(native, 'package.json'));

/** Returns the package of Node-API's headers. */
function nodeApi() {
  const cmakeJs = createRequire(requireNative.resolve('cmake-js/package.json'));
  return cmakeJs('node-api-headers');
}

/** Returns the folders of Node-API's headers. */
export function headers() {
  return [nodeApi().include_dir, dirname(requireNative.resolve('node-addon-api/package.json'))];
}

/** Runs a command; passes on those of its lines that tell progress, and rejects with its output if it fails. */
function command(env, progress, name, ...args) {
  return new Promise((resolve, reject) => {
    const child = spawn(name, args, { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'], timeout: limitMs });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text) => {
        output += text;
        const step = text.match(/\[\d+\/\d+\]/g)?.at(-1);
        if (step) progress(step);
      });
    child.once('error', (error) =>
      reject(new Error(`${name} cannot be started: ${error.message}`, { cause: error })),
    );
    child.once('close', (code, signal) => {
      if (code === 0) resolve();
      else reject(new Error(`${name} ended with ${code ?? signal}:\n${output.slice(-20_000)}`));
    });
  });
}
