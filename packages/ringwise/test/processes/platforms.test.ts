// Two ranks by `ringwise run` in processes that take themselves for processes on other platforms, for which
// there is no native package: the launcher and the collectives must do without.
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it, onTestFinished } from 'vitest';

const here = fileURLToPath(new URL('../fixtures', import.meta.url));
const bin = fileURLToPath(new URL('../../../launch/bin/ringwise.js', import.meta.url));

const program = `
import { init } from '@ringwise/collectives';
const group = await init({ timeoutMs: 60_000 });
const x = new Float32Array(100_000).fill(group.rank + 1);
await group.allReduce(x);
console.log(group.backend, x.every((value) => value === 3), process.platform);
await group.close();
`;

it.each(['win32', 'darwin'])('two ranks on %s add numbers', async (platform) => {
  // Beside the fixtures, where the packages resolve.
  const folder = mkdtempSync(join(here, 'platform-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, 'program.mjs'), program);
  const preload = join(folder, 'platform.cjs');
  writeFileSync(preload, `Object.defineProperty(process, 'platform', { value: '${platform}' });`);
  const argv = [bin, 'run', '--nproc-per-node', '2', join(folder, 'program.mjs')];
  const env = { ...process.env, NODE_OPTIONS: `--require ${preload}` };
  const { stdout, stderr } = await promisify(execFile)(process.execPath, argv, { env });
  expect(stdout.match(new RegExp(`tcp true ${platform}`, 'g'))).toHaveLength(2);
  expect(stderr.match(/RINGWISE_TCP_FALLBACK/g)).toHaveLength(1);
});
