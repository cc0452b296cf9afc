// Tests ringwise in a server of Next.js, which npm must give: ranks of spawn(), worker threads of a loader, and tensors
// work if `serverExternalPackages` names ringwise, and Next.js refuses to build otherwise.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { starters } from '../../support/programs.ts';
import { isUsed, packedPackages } from '../../support/published.ts';

const versions = ['next@16.4.6', 'react@19.3.1', 'react-dom@19.3.1'];
const limitMs = 500_000;

const files = {
  'package.json': '{ "private": true, "type": "module" }',
  'next.config.mjs': "export default { serverExternalPackages: ['ringwise'] };\n",
  'app/layout.js': 'export default ({ children }) => <html lang="en"><body>{children}</body></html>;\n',
  'app/page.js': 'export default () => <p>numbers</p>;\n',
  'app/numbers/route.js': `import { pathToFileURL } from 'node:url';
import { DataLoader, loadDataset } from 'ringwise/data';
import { spawn } from 'ringwise/launch';
import { tensor } from 'ringwise/tensor';

export const dynamic = 'force-dynamic';
const programOf = (name) => new URL(name, pathToFileURL(\`\${process.cwd()}/\`));

export async function GET() {
  const sums = await spawn(programOf('rank.mjs'), { nprocs: 2, args: [10] });
  const loader = new DataLoader(await loadDataset(programOf('numbers.mjs')), { batchSize: 2, numWorkers: 2 });
  const numbers = [];
  for await (const batch of loader) numbers.push(...batch);
  await loader[Symbol.asyncDispose]();
  return Response.json({ sums, numbers, sum: tensor([1, 2]).add(1).toArray() });
}
`,
  'rank.mjs': starters['rank.mjs']!,
  'numbers.mjs': starters['numbers.mjs']!,
};

describe('Next.js', () => {
  let work = '';
  let project = '';
  const env: NodeJS.ProcessEnv = { ...process.env, NEXT_TELEMETRY_DISABLED: '1' };
  for (const name of ['NODE_ENV', 'NODE_OPTIONS', 'VITEST']) delete env[name];

  const run = (command: string, ...args: readonly string[]) => {
    const { status, stdout, stderr } = spawnSync(command, args, {
      cwd: project,
      env,
      encoding: 'utf8',
      timeout: limitMs,
    });
    return { status, text: stdout + stderr };
  };
  const next = (...args: readonly string[]) => ['node_modules/next/dist/bin/next', ...args];

  beforeAll(async () => {
    work = mkdtempSync(join(tmpdir(), 'ringwise-next-'));
    project = join(work, 'project');
    mkdirSync(join(project, 'app/numbers'), { recursive: true });
    for (const [name, text] of Object.entries(files)) writeFileSync(join(project, name), text);
    const packed = (await packedPackages(join(work, 'packed'))).filter(isUsed);
    const flags = ['--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error'];
    const tarballs = packed.map(({ tarball }) => tarball);
    expect(run('npm', 'install', ...flags, ...versions, ...tarballs)).toMatchObject({ status: 0 });
  }, limitMs);
  afterAll(() => rmSync(work, { recursive: true, force: true, maxRetries: 5 }));

  it('spawn, worker threads and tensors work in a route', async () => {
    expect(run(process.execPath, ...next('build'))).toMatchObject({ status: 0 });
    const server = spawn(process.execPath, next('start', '--port', '0', '--hostname', '127.0.0.1'), {
      cwd: project,
      env,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    try {
      const answer = await fetch(`${await addressOf(server)}/numbers`);
      expect(await answer.json()).toEqual({ sums: [30, 30], numbers: [0, 1, 2, 3], sum: [2, 3] });
    } finally {
      const ended = once(server, 'exit');
      if (server.exitCode === null && server.kill()) await ended;
    }
  });

  it('Next.js does not build without serverExternalPackages', () => {
    writeFileSync(join(project, 'next.config.mjs'), 'export default {};\n');
    const { status, text } = run(process.execPath, ...next('build'));
    expect(status).not.toBe(0);
    expect(text).toContain('node_modules/@ringwise/');
  });
});

/** Resolves with the address that the server prints; rejects if it ends before. */
function addressOf(server: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let output = '';
    server.stdout!.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      const found = /http:\/\/127\.0\.0\.1:\d+/.exec(output);
      if (found && output.includes('Ready')) resolve(found[0]);
    });
    server.once('exit', () => reject(new Error(`next start ended: ${output}`)));
  });
}
