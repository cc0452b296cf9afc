// Runs `ringwise run` with real training across hosts. Each host is a network namespace with a launcher of its own.

import type { ChildProcess } from 'node:child_process';
import { execFileSync, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { loadSafetensors } from '@ringwise/tensor/safetensors';
import { type Hosts, makeHosts, whyNoNamespaces } from '@ringwise/testing';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

const command = fileURLToPath(new URL('../../../bin/ringwise.js', import.meta.url));
const elastic = fileURLToPath(new URL('../../../../../examples/elastic.ts', import.meta.url));
const mnist = fileURLToPath(new URL('../../fixtures/hosts/mnist-rank.ts', import.meta.url));
const reason = whyNoNamespaces();

interface Launcher {
  readonly child: ChildProcess;
  readonly out: { text: string };
  readonly exitCode: Promise<number | null>;
}

describe.skipIf(reason !== null)(
  `ringwise run on several hosts${reason === null ? '' : ` (skipped: ${reason})`}`,
  () => {
    let made: Hosts;
    let folder: string;
    beforeEach(() => {
      made = makeHosts(3);
      folder = mkdtempSync(join(tmpdir(), 'ringwise-hosts-'));
    });
    afterEach(async () => {
      await made.close();
      rmSync(folder, { recursive: true });
    });

    /** Starts a launcher for 2 ranks on a host. The default port, 29400, is free in a new network namespace. */
    function launch(
      node: number,
      nnodes: string,
      snapshot: string,
      flags: string[],
      args: string[],
      script = elastic,
    ): Launcher {
      const endpoint = ['--rdzv-backend', 'c10d', '--rdzv-endpoint', made.hosts[0]!.address];
      const where = ['--nnodes', nnodes, ...endpoint, '--local-addr', `host-${node}`];
      const argv = [command, 'run', ...where, '--nproc-per-node', '2', ...flags, script];
      const env = { PATH: process.env.PATH, HOME: process.env.HOME, RINGWISE_SECRET: 'of the test' };
      const snapshotFile = join(folder, snapshot);
      const child = made.start(
        made.hosts[node]!,
        [process.execPath, ...argv, '--snapshot', snapshotFile, ...args],
        { env },
      );
      const out = { text: '' };
      for (const stream of [child.stdout!, child.stderr!]) {
        stream.setEncoding('utf8').on('data', (text: string) => {
          out.text += text;
        });
      }
      const exitCode = once(child, 'close').then(([code]) => code as number | null);
      return { child, out, exitCode };
    }

    const scripts: [string, number, string, string[]][] = [
      ['a toy', 2, elastic, ['--epochs', '5']],
      ['a toy', 3, elastic, ['--epochs', '5']],
      ['MNIST', 2, mnist, []],
    ];
    it.each(scripts)(
      'trains %s on %i hosts to the same parameters as one host with as many ranks',
      {
        timeout: 180_000,
      },
      async (_, hosts, script, args) => {
        const nodes = Array.from({ length: hosts }, (_, node) => node);
        const launchers = nodes.map((node) => launch(node, `${hosts}`, 'several', [], args, script));
        const codes = await Promise.all(launchers.map(({ exitCode }) => exitCode));
        expect(codes, launchers.map(({ out }) => out.text).join('\n')).toEqual(nodes.map(() => 0));
        const one = [
          'run',
          '--nproc-per-node',
          `${2 * hosts}`,
          script,
          '--snapshot',
          join(folder, 'one'),
          ...args,
        ];
        expect(spawnSync(process.execPath, [command, ...one], { timeout: 90_000 }).status).toBe(0);
        const [several, single] = await Promise.all(
          ['several', 'one'].map((name) => loadSafetensors(join(folder, name))),
        );
        expect(Object.keys(several!)).toEqual(Object.keys(single!));
        for (const [name, tensor] of Object.entries(several!)) {
          const expected = single![name]!.dataSync() as Float32Array;
          const worst = (tensor.dataSync() as Float32Array).reduce(
            (most, value, index) => Math.max(most, Math.abs(value - expected[index]!)),
            0,
          );
          expect(worst, name).toBeLessThan(1e-5); // the summation order differs from that of one host
        }
      },
    );

    it('goes on alone when the other host is cut off, from the snapshot', { timeout: 120_000 }, async () => {
      const flags = ['--max-restarts', '1', '--rdzv-conf', 'last_call_timeout=60'];
      const args = ['--epochs', '40', '--pause-ms', '100'];
      const [first, second] = [0, 1].map((node) => launch(node, '1:2', 'cut', flags, args)) as [
        Launcher,
        Launcher,
      ];
      const waits = { timeout: 30_000, interval: 10 };
      await vi.waitFor(() => expect(first.out.text).toMatch(/epoch 3 of 40 on 4 ranks/), waits);
      execFileSync('ip', ['-n', made.hosts[1]!.name, 'link', 'set', 'eth0', 'down']);
      const again = () => expect(first.out.text).toMatch(/starting all ranks again, 2 ranks on 1 host/);
      await vi.waitFor(again, { timeout: 5_000, interval: 10 });
      expect(first.out.text).toContain('restart 1 of 1: host host-1 with ranks 2 to 3 was lost');
      expect(await second.exitCode).toBe(1);
      expect(second.out.text).toContain(`lost the launcher at ${made.hosts[0]!.address}:29400`);
      expect(await first.exitCode, first.out.text).toBe(0);
      expect(first.out.text).toMatch(/resuming from epoch [4-9]/);
      expect(first.out.text).toContain('epoch 39 of 40 on 2 ranks');
    });
  },
);
