// Tests that examples/own-backend.ts passes the contract suite, with all ranks in this process, and serves processes.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type Group, init, registerBackend } from '@ringwise/collectives';
import { backendContract, blockingTests, runScenario } from '@ringwise/collectives/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { viaRank0 } from '../../../own-backend.ts';
import { example, ringwise, run } from '../../support/run.ts';

registerBackend('via-rank-0', viaRank0);

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ringwise-examples-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

async function makeGroups(size: number): Promise<Group[]> {
  const { href: url } = pathToFileURL(folder);
  const ranks = Array.from({ length: size }, (_, rank) => rank);
  return await Promise.all(ranks.map((rank) => init({ rank, size, url, backend: 'via-rank-0' })));
}

backendContract({ describe, it, expect }, 'own', {
  sizes: [1, 3],
  run: async (size, scenario, args) => {
    const groups = await makeGroups(size);
    const outcomes = await Promise.all(groups.map((group) => runScenario(group, scenario, args)));
    await Promise.all(groups.map((group) => group.close()));
    return outcomes;
  },
  skip: [{ reason: 'it may not block', tests: blockingTests }],
});

describe('own-backend.ts', () => {
  it('serves processes', async () => {
    const argv = [ringwise, 'run', '--standalone', '--nproc-per-node', '3', example('own-backend.ts')];
    const { exitCode, stdout, stderr } = await run(argv);
    expect(stderr).toBe('');
    const lines = [0, 1, 2].map((rank) => `[${rank}] rank ${rank} of 3: 6 by via-rank-0`);
    expect(stdout.trimEnd().split('\n').sort()).toEqual(lines);
    expect(exitCode).toBe(0);
  });
});
