// Packs what a GPU machine without Node needs to run the device tests and timings: node, the built addons and packages,
// the sources and tests of the packages that use devices, two examples, and vitest, tsx and esbuild with their
// dependencies.
//   RINGWISE_CUDA=ON npm run build && npm run build:tests
//   node tools/gpu/pack.mjs OUT.tar.xz      needs tar, xz and strip
// On the GPU machine: tar xf OUT.tar.xz && bash ringwise-gpu/tools/gpu/go.sh RESULTS
import { execFileSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  statSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const [out] = process.argv.slice(2);
if (out === undefined) throw new Error('usage: node tools/gpu/pack.mjs OUT.tar.xz');
if (!existsSync(join(root, 'native/build/cuda-images/map.fatbin')))
  throw new Error('pack.mjs: the build has no CUDA kernels. Run RINGWISE_CUDA=ON npm run build first.');

const run = (command, args) =>
  execFileSync(command, args, { cwd: root, encoding: 'utf8', maxBuffer: 1 << 26 });

/**
 * Returns the folders in pnpm's store (node_modules/.pnpm) of the packages in `folders` and of all packages that they
 * depend on, as paths from the root. In the store a package lies in NAME@VERSION/node_modules/NAME, beside links to its
 * dependencies. The paths are those of NAME@VERSION/node_modules, so that the links are packed too.
 */
function storeOf(folders) {
  const found = new Set();
  const visit = (modules) => {
    if (!existsSync(modules)) return;
    for (const entry of readdirSync(modules)) {
      if (entry === '.bin' || entry === '.pnpm') continue;
      const path = join(modules, entry);
      if (entry.startsWith('@') && !lstatSync(path).isSymbolicLink()) visit(path);
      else if (lstatSync(path).isSymbolicLink()) follow(realpathSync(path));
    }
  };
  const follow = (target) => {
    const at = target.lastIndexOf('/node_modules/');
    const home = target.slice(0, at + '/node_modules'.length);
    if (!home.includes('/.pnpm/') || found.has(home)) return;
    found.add(home);
    visit(home);
  };
  for (const folder of folders) follow(realpathSync(folder));
  return [...found].map((home) => relative(root, home));
}

const platform = `${process.platform}-${process.arch}`;
const tools = ['esbuild', 'tsx', 'vitest'].map((name) => `node_modules/${name}`);
const store = storeOf(tools.map((path) => join(root, path)));
const cppTests = [
  'tensor_cuda_test',
  'tensor_cuda_nn_test',
  'tensor_cuda_order_test',
  'tensor_cuda_library_test',
  'tensor_cuda_shareable_test',
].map((name) => `native/build/test/${name}`);
const packages = [
  'collectives',
  'data',
  'ddp',
  'elastic',
  'formats',
  'launch',
  'ringwise',
  'store',
  'tensor',
  'testing',
].map((name) => `packages/${name}`);
const example = [
  'examples/gpt2',
  'examples/mixed-nccl',
  'examples/test/full/examples/mixed-nccl.test.ts',
  'examples/test/fixtures/mixed-nccl-first.mjs',
  'examples/test/support/run.ts',
  'examples/package.json',
  'examples/tsconfig.json',
  'examples/vitest.config.ts',
];
const software = ['libsoftware_cuda.so', 'device_memory.node'].map((name) => `native/build/Release/${name}`);
const files = [
  ...run('git', [
    'ls-files',
    ...packages,
    ...example,
    'tools',
    'native/npm',
    'vitest.base.ts',
    'vitest.repeat.ts',
    'tsconfig.base.json',
    'package.json',
  ])
    .split('\n')
    .filter(Boolean),
  ...tools,
  ...store,
  'node_modules/@ringwise',
  'examples/node_modules/@ringwise',
  ...packages.flatMap((path) => [`${path}/node_modules/@ringwise`, `${path}/dist`]),
  `native/npm/capi-${platform}/libringwise.so`,
  `native/npm/collectives-${platform}/coll.node`,
  `native/npm/tensor-${platform}/tensor.node`,
  ...software,
  ...cppTests,
].filter((path) => existsSync(join(root, path)));

const folder = mkdtempSync(join(tmpdir(), 'ringwise-pack-'));
try {
  const tree = join(folder, 'ringwise-gpu');
  for (const path of new Set(files)) {
    cpSync(join(root, path), join(tree, path), { recursive: true, verbatimSymlinks: true });
  }
  cpSync(process.execPath, join(tree, 'bin/node'));
  run('strip', ['--strip-all', join(tree, 'bin/node')]);
  execFileSync('tar', [
    '-C',
    folder,
    '--owner=0',
    '--group=0',
    '-I',
    // The C++ tests and the addon have the same kernels in them: a window of this size stores them once.
    'xz --lzma2=preset=6,dict=192MiB',
    '-cf',
    resolve(out),
    'ringwise-gpu',
  ]);
} finally {
  rmSync(folder, { recursive: true });
}
process.stdout.write(`${out}: ${(statSync(out).size / 2 ** 20).toFixed(1)} MiB, ${store.length} packages\n`);
for (const path of [...software, ...cppTests].filter((test) => !existsSync(join(root, test))))
  process.stdout.write(`left out: ${path} (not built)\n`);
process.stdout.write(`there: tar xf ${out} && bash ringwise-gpu/tools/gpu/go.sh RESULTS\n`);
