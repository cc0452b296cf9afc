// Rehearses a release: publishes all packages to a registry on the loopback interface, and installs them from there
// into empty projects, with every package manager, without a compiler and without this repository.
// RINGWISE_TEST_NODES has the executables of more versions of Node.js to run the programs with, separated by ":".
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readConfig } from '../../../release/config.mjs';
import { faultsOfPackage, faultsOfSizes } from '../../../release/gates.mjs';
import { faultsOfLint } from '../../../release/lint.mjs';
import { packAll } from '../../../release/pack.mjs';
import { publishedPackages } from '../../../release/packages.mjs';
import { publishAll } from '../../../release/publish-all.mjs';
import { startRegistry } from '../../../release/registry.mjs';
import { type CleanRoom, cleanRoom, platform, root } from '../../support/clean-room.ts';

const readme = readFileSync(join(root, 'packages/ringwise/README.md'), 'utf8');
const hello = /```js\n([\s\S]*?)```/.exec(readme)![1]!;
const training = /```js\n(\/\/ train\.mjs[\s\S]*?)```/.exec(
  readFileSync(join(root, 'README.md'), 'utf8'),
)![1]!;
const helloAnswer = ['[0] rank 0 of 2: the sum is 3', '[1] rank 1 of 2: the sum is 3'];
const twoRanks = ['ringwise', 'run', '--nproc-per-node', '2'];

const typescript = `import { init } from 'ringwise/collectives';
const group = await init();
const x: Float32Array = Float32Array.of(group.rank + 1);
await group.allReduce(x);
console.log(\`rank \${group.rank} of \${group.size}: the sum is \${x[0]}\`);
await group.close();
`;

const commonJs = `const { init } = require('ringwise/collectives');
init().then(async (group) => {
  const x = Float32Array.of(group.rank + 1);
  await group.allReduce(x);
  console.log(\`rank \${group.rank} of \${group.size}: the sum is \${x[0]}\`);
  await group.close();
});
`;

/** Imports every entry of the umbrella package, and uses one layer. */
const everyEntry = `import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
const manifest = JSON.parse(readFileSync(createRequire(import.meta.url).resolve('ringwise/package.json')));
for (const path of Object.keys(manifest.exports)) {
  if (path.endsWith('.json')) continue;
  if (Object.keys(await import('ringwise' + path.slice(1))).length === 0) throw new Error(path + ' has no exports');
}
const { tensor } = await import('ringwise/tensor');
const { Linear } = await import('ringwise/tensor/nn');
console.log(new Linear(2, 3).forward(tensor([[1, 2]])).shape.join('x'));
`;

let work = '';
let registry: Awaited<ReturnType<typeof startRegistry>>;
let room: CleanRoom;
let packed: Awaited<ReturnType<typeof packAll>>;
const config = readConfig(root, { isRehearsal: true });

beforeAll(async () => {
  work = mkdtempSync(join(tmpdir(), 'ringwise-registry-'));
  registry = await startRegistry();
  room = cleanRoom(join(work, 'room'), registry.url);
  packed = await packAll(publishedPackages(root), { root, config, into: join(work, 'packed') });
  const env = { ...process.env, npm_config_userconfig: join(work, 'room/npmrc') };
  await publishAll(packed, { registry: registry.url, env });
});

afterAll(async () => {
  await registry?.close();
  rmSync(work, { recursive: true, force: true });
});

it('the gates find no fault in what this machine can build', async () => {
  // Compilers of a distribution use the glibc of that distribution. Other platforms and other MPIs are built elsewhere.
  const relaxed = { ...config, glibc: '2.99' };
  const isBuiltHere = ({ isCompiled, manifest: { name } }: (typeof packed)[number]): boolean =>
    !isCompiled || (name.endsWith(platform) && !name.includes('-mpi-'));
  expect(packed.filter(isBuiltHere).flatMap((entry) => faultsOfPackage(entry, relaxed))).toEqual([]);
  expect(faultsOfSizes(packed)).toEqual([]);
  // `npm run check` runs publint and attw on the other packages.
  const compiled = packed.filter((entry) => entry.isCompiled && isBuiltHere(entry));
  expect(compiled.length).toBeGreaterThan(0);
  expect(await faultsOfLint(compiled)).toEqual([]);
});

/** Returns the names of our packages in a project's node_modules, without the scope. */
const installed = (project: string): string[] =>
  readdirSync(join(project, 'node_modules/@ringwise')).toSorted();

const lines = (text: string): string[] => text.split('\n').filter(Boolean).toSorted();

it('compiled packages are published first, and ringwise last', () => {
  const names = registry.published();
  const lastCompiled = names.findLastIndex((name) => /-(linux|darwin|win32)/.test(name));
  expect(lastCompiled).toBe(names.filter((name) => /-(linux|darwin|win32)/.test(name)).length - 1);
  expect(names.at(-1)).toBe('ringwise');
});

describe('npm', () => {
  let project = '';
  let trained: Awaited<ReturnType<CleanRoom['run']>>;
  beforeAll(async () => {
    project = room.project('npm', {
      'hello.mjs': hello,
      'hello.mts': typescript,
      'hello.cjs': commonJs,
      'entries.mjs': everyEntry,
      'train.mjs': training,
      'train.mts': training,
    });
    const begun = performance.now();
    expect(await room.run(project, 'npm', 'install', 'ringwise')).toMatchObject({ code: 0 });
    trained = await room.run(project, 'npx', ...twoRanks, 'train.mjs');
    console.log(`npm install and two ranks: ${((performance.now() - begun) / 1000).toFixed(1)} s`);
  });

  it('installs the compiled packages of this platform alone, and nothing of others', () => {
    expect(installed(project).filter((name) => name.includes('-'))).toEqual([
      `collectives-${platform}`,
      `tensor-${platform}`,
    ]);
    expect(readdirSync(join(project, 'node_modules')).filter((name) => !name.startsWith('.'))).toEqual([
      '@ringwise',
      'ringwise',
    ]);
  });

  it('the program of the root README trains on two ranks', () => {
    expect(trained).toMatchObject({ code: 0 });
    const losses = [...trained.stdout.matchAll(/loss ([\d.]+)/g)].map(([, loss]) => Number(loss));
    expect([losses.length, losses[0]! > 2 * losses[2]!]).toEqual([3, true]);
  });

  it.each(['hello.mjs', 'hello.cjs'])('%s runs on two ranks', async (file) => {
    const ended = await room.run(project, 'npx', ...twoRanks, file);
    expect(ended).toMatchObject({ code: 0 });
    expect(lines(ended.stdout)).toEqual(helloAnswer);
  });

  it('every entry can be imported', async () => {
    expect(await room.run(project, 'node', 'entries.mjs')).toMatchObject({ code: 0, stdout: '1x3\n' });
  });

  it('ringwise doctor finds no fault', async () => {
    const ended = await room.run(project, 'npx', 'ringwise', 'doctor');
    expect(ended).toMatchObject({ code: 0 });
  });

  it('the types of every entry are clean without skipLibCheck', () => {
    const { exports } = JSON.parse(
      readFileSync(join(project, 'node_modules/ringwise/package.json'), 'utf8'),
    ) as { exports: Record<string, unknown> };
    const entries = Object.keys(exports).filter((path) => !path.endsWith('.json'));
    const imports = entries.map((path, index) => `import * as m${index} from 'ringwise${path.slice(1)}';`);
    const uses = `console.log(${entries.map((_, index) => `m${index}`).join(', ')});`;
    writeFileSync(join(project, 'types.mts'), [...imports, uses].join('\n'));
    const args = [
      '--noEmit',
      '--strict',
      '--skipLibCheck',
      'false',
      '--target',
      'es2023',
      '--module',
      'nodenext',
    ];
    const roots = ['--typeRoots', join(root, 'node_modules/@types'), '--types', 'node'];
    const tsc = join(root, 'node_modules/typescript/bin/tsc');
    const run = () =>
      execFileSync(process.execPath, [tsc, ...args, ...roots, 'types.mts'], {
        cwd: project,
        encoding: 'utf8',
      });
    expect(run()).toBe('');
  });

  const nodes = (process.env.RINGWISE_TEST_NODES ?? '').split(':').filter(Boolean);
  it.each([process.execPath, ...nodes])('TypeScript and the others on %s', async (node) => {
    const version = execFileSync(node, ['--version'], { encoding: 'utf8' }).trim();
    mkdirSync(join(work, 'rooms'), { recursive: true });
    const other = cleanRoom(join(work, 'rooms', version), registry.url, node);
    for (const file of ['hello.mjs', 'hello.cjs']) {
      const ended = await other.run(project, 'npx', ...twoRanks, file);
      expect(ended).toMatchObject({ code: 0 });
      expect(lines(ended.stdout)).toEqual(helloAnswer);
    }
    expect(await other.run(project, 'npx', ...twoRanks, 'train.mjs')).toMatchObject({ code: 0 });
    const ended = await other.run(project, 'npx', ...twoRanks, 'hello.mts');
    const [major, minor] = version.slice(1).split('.').map(Number) as [number, number];
    if (major > 22 || (major === 22 && minor >= 18)) {
      expect(ended).toMatchObject({ code: 0 });
      expect(lines(ended.stdout)).toEqual(helloAnswer);
      expect(await other.run(project, 'npx', ...twoRanks, 'train.mts')).toMatchObject({ code: 0 });
    } else {
      expect(ended.code).not.toBe(0);
      expect(ended.stderr).toContain('Run: npm install --save-dev tsx');
    }
  });
});

describe.each([
  ['pnpm', ['add', 'ringwise'], ['exec']],
  ['yarn', ['add', 'ringwise', '--non-interactive'], ['--silent', 'run']],
] as const)('%s', (manager, add, exec) => {
  it('installs ringwise, whose program runs on two ranks', async () => {
    const project = room.project(manager, { 'hello.mjs': hello, 'entries.mjs': everyEntry });
    expect(await room.run(project, manager, ...add)).toMatchObject({ code: 0 });
    const ended = await room.run(project, manager, ...exec, ...twoRanks, 'hello.mjs');
    expect(ended).toMatchObject({ code: 0 });
    expect(lines(ended.stdout)).toEqual(helloAnswer);
    expect(await room.run(project, 'node', 'entries.mjs')).toMatchObject({ code: 0, stdout: '1x3\n' });
  });
});

describe('other platforms', () => {
  const compiled = publishedPackages(root).filter(({ isCompiled }) => isCompiled);
  const platforms = [
    ...new Set(
      compiled.map(({ manifest: { os, cpu, libc } }) => [os![0], cpu![0], libc?.[0]].join(' ').trim()),
    ),
  ];

  it.each(platforms)('on %s, npm installs the packages of that platform', async (name) => {
    const [os, cpu, libc] = name.split(' ');
    const files = { 'hello.mjs': hello, 'train.mjs': training };
    const project = room.project(`on-${name.replaceAll(' ', '-')}`, files);
    const flags = [`--os=${os}`, `--cpu=${cpu}`, ...(libc ? [`--libc=${libc}`] : [])];
    expect(await room.run(project, 'npm', 'install', 'ringwise', ...flags)).toMatchObject({ code: 0 });
    const expected = compiled
      .filter(
        ({ manifest }) => manifest.os![0] === os && manifest.cpu![0] === cpu && manifest.libc?.[0] === libc,
      )
      .map(({ manifest }) => manifest.name.replace('@ringwise/', ''))
      .filter((family) => /^(collectives|tensor)-(?!mpi)/.test(family));
    expect(installed(project).filter((family) => family.includes('-'))).toEqual(expected.toSorted());
    // If this machine is of another platform, its ranks have no native code.
    expect(await room.run(project, 'npx', ...twoRanks, 'train.mjs')).toMatchObject({ code: 0 });
    const ended = await room.run(project, 'npx', ...twoRanks, 'hello.mjs');
    expect(ended).toMatchObject({ code: 0 });
    expect(lines(ended.stdout)).toEqual(helloAnswer);
  });
});

describe('without the compiled packages', () => {
  const native = `import { init } from 'ringwise/collectives';
await init({ backend: 'host' }).catch((error) => console.log(error.message));
`;
  const kernels = `process.env.RINGWISE_KERNELS = 'native';
const { tensor } = await import('ringwise/tensor');
try { tensor([1]).add(1); } catch (error) { console.log(error.message); }
`;

  it.each(['omitted', 'lost in a failed download'])('%s: sentences say what to install', async (how) => {
    const files = { 'hello.mjs': hello, 'native.mjs': native, 'kernels.mjs': kernels };
    const project = room.project(how.replaceAll(' ', '-'), files);
    if (how !== 'omitted')
      for (const family of ['collectives', 'tensor'])
        registry.failDownloads(`@ringwise/${family}-${platform}`);
    const flags =
      how === 'omitted' ? ['--omit=optional'] : ['--fetch-retries=0', '--cache', join(work, 'empty-cache')];
    expect(await room.run(project, 'npm', 'install', 'ringwise', ...flags)).toMatchObject({ code: 0 });
    expect(installed(project).filter((name) => name.includes('-'))).toEqual([]);
    const ended = await room.run(project, 'npx', ...twoRanks, 'hello.mjs');
    expect(lines(ended.stdout)).toEqual(helloAnswer);
    expect(ended.stderr).toContain('RINGWISE_TCP_FALLBACK');
    expect((await room.run(project, 'node', 'native.mjs')).stdout).toContain(
      `@ringwise/collectives-${platform}`,
    );
    expect((await room.run(project, 'node', 'kernels.mjs')).stdout).toContain(`@ringwise/tensor-${platform}`);
  });
});
