// Tests programs that a bundler has built: ranks of spawn(), worker threads of a loader, and tensors work if ringwise
// is left out of the bundle, and sentences say so if it is not.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build as esbuild } from 'esbuild';
import { build as vite } from 'vite';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { isUsed, packedPackages } from '../../support/published.ts';

const sources: Readonly<Record<string, string>> = {
  'main.ts': `import { DataLoader, loadDataset } from 'ringwise/data';
import { spawn } from 'ringwise/launch';
import { tensor } from 'ringwise/tensor';
const failed = (error: Error & { code?: string }) => console.log(error.code, error.message);
console.log('tensor', tensor([1, 2]).add(1).toArray());
await spawn(new URL('./rank.js', import.meta.url), { nprocs: 2, args: [10] })
  .then((sums: unknown) => console.log('spawn', sums), failed);
const dataset = await loadDataset(new URL('./numbers.js', import.meta.url));
try {
  await using loader = new DataLoader<any, any>(dataset as any, { batchSize: 2, numWorkers: 2 });
  for await (const batch of loader) console.log('batch', batch);
} catch (error) {
  failed(error as Error);
}
`,
  'rank.ts': `import { init } from 'ringwise/collectives';
export default async (rank: number, factor: number): Promise<number> => {
  const group = await init();
  const x = Float32Array.of(rank + 1);
  await group.allReduce(x);
  await group.close();
  return x[0]! * factor;
};
`,
  'numbers.ts': `import { range } from './range.ts';
export default () => ({ length: 4, get: (index: number) => range(4)[index] });
export const collate = (samples: readonly number[]) => Int32Array.from(samples);
`,
  'range.ts': 'export const range = (count: number) => Array.from({ length: count }, (_, i) => i);\n',
};

const answer = `tensor [ 2, 3 ]
spawn [ 30, 30 ]
batch Int32Array(2) [ 0, 1 ]
batch Int32Array(2) [ 2, 3 ]
`;

let work = '';
/** The files that a bundler must make one of each, because new threads and processes start with them. */
let entryPoints: string[] = [];

beforeAll(async () => {
  work = mkdtempSync(join(tmpdir(), 'ringwise-bundlers-'));
  const packed = (await packedPackages(join(work, 'packed'))).filter(isUsed);
  const project = join(work, 'project');
  mkdirSync(project);
  writeFileSync(join(project, 'package.json'), '{ "private": true, "type": "module" }');
  for (const [name, text] of Object.entries(sources)) writeFileSync(join(project, name), text);
  entryPoints = ['main', 'rank', 'numbers'].map((name) => join(project, `${name}.ts`));
  const tarballs = packed.map(({ tarball }) => tarball);
  const flags = ['--offline', '--no-audit', '--no-fund', '--loglevel=error'];
  execFileSync('npm', ['install', ...flags, ...tarballs], { cwd: project, stdio: 'pipe' });
});

afterAll(() => rmSync(work, { recursive: true, force: true }));

function outputOf(folder: string): string {
  const { NODE_OPTIONS, NODE_ENV, VITEST, ...env } = process.env;
  const options = { cwd: work, env, encoding: 'utf8', timeout: 60_000 } as const;
  const { stdout, stderr } = spawnSync(process.execPath, [join(work, 'project', folder, 'main.js')], options);
  expect(stderr).toBe('');
  return stdout;
}

const esbuildOptions = (folder: string) =>
  ({
    entryPoints,
    outdir: join(work, 'project', folder),
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    logLevel: 'error',
  }) as const;

it('bundlers: esbuild, ringwise external', async () => {
  await esbuild({ ...esbuildOptions('esbuild'), external: ['ringwise', '@ringwise/*'] });
  expect(outputOf('esbuild')).toBe(answer);
});

it('bundlers: esbuild, everything in the bundle: sentences say what to change', async () => {
  await esbuild(esbuildOptions('all'));
  const lines = outputOf('all').trim().split('\n');
  expect(lines).toHaveLength(3);
  expect(lines[0]).toBe('tensor [ 2, 3 ]');
  expect(lines[1]).toMatch(/^ERR_LAUNCH_BUNDLED spawn: there is no file .*spawn-entry\.js, .* as external/);
  expect(lines[2]).toMatch(
    /^ERR_DATA_BUNDLED DataLoader: there is no file .*worker-main\.js, .* as external/,
  );
});

it('bundlers: Vite for servers leaves packages out by default', async () => {
  await vite({
    root: join(work, 'project'),
    configFile: false,
    logLevel: 'error',
    build: {
      ssr: true,
      target: 'node20',
      outDir: 'vite',
      rollupOptions: { input: entryPoints, output: { entryFileNames: '[name].js' } },
    },
  });
  expect(outputOf('vite')).toBe(answer);
});
