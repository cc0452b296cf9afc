// Runs a short form of bench/chaos.ts: an elastic training on two launchers gets each kind of fault. Without network
// namespaces both launchers run on loopback, and no network is cut.

import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { whyNoNamespaces } from '@ringwise/testing';
import { describe, expect, it } from 'vitest';

const bench = fileURLToPath(new URL('../../../../../bench/chaos.ts', import.meta.url));
const root = fileURLToPath(new URL('../../../../..', import.meta.url));
const run = promisify(execFile);

/** Returns the last line of the bench, which is JSON. */
async function chaos(...flags: string[]): Promise<Record<string, unknown>> {
  const argv = ['--import', 'tsx', bench, '--json', ...flags];
  const { stdout } = await run(process.execPath, argv, { cwd: root, timeout: 280_000 });
  return JSON.parse(stdout.trimEnd().split('\n').at(-1)!) as Record<string, unknown>;
}

const right = { ok: true, lostSamples: 0, doubledSamples: 0, differentBits: 0, replayEqual: true };

describe('an elastic training', () => {
  it.skipIf(whyNoNamespaces() !== null)(
    'uses each sample once, with equal bits, when ranks, launchers and networks fail on two hosts',
    { timeout: 300_000 },
    async () => {
      expect(await chaos('--faults', '10', '--seed', '3')).toMatchObject(right);
    },
  );

  it('does so with both launchers on one host', { timeout: 300_000 }, async () => {
    expect(await chaos('--faults', '8', '--seed', '4', '--hosts', '1')).toMatchObject(right);
  });

  it('does so when all ranks start again', { timeout: 300_000 }, async () => {
    const result = await chaos(
      '--faults',
      '3',
      '--hosts',
      '1',
      '--mode',
      'restart',
      '--kinds',
      'kill,launcher',
    );
    expect(result).toMatchObject({ ok: true, lostSamples: 0, differentBits: 0, replayEqual: true });
  });
});
