// Checks that ranks meet on a host whose loopback interface has ::1 but no IPv4 address.
import { execFileSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { type Hosts, makeHosts, whyNoNamespaces } from '@ringwise/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const command = fileURLToPath(new URL('../../../bin/ringwise.js', import.meta.url));
const program = fileURLToPath(new URL('../../fixtures/hosts/sum-of-ranks.ts', import.meta.url));
const typescript = createRequire(import.meta.url).resolve('tsx');
const reason = whyNoNamespaces();

describe.skipIf(reason !== null)(
  `a host without IPv4${reason === null ? '' : ` (skipped: ${reason})`}`,
  () => {
    let made: Hosts;
    beforeEach(() => {
      made = makeHosts(1);
      const { name, address } = made.hosts[0]!;
      const remove = (what: string, from: string) =>
        execFileSync('ip', ['-n', name, 'address', 'delete', what, 'dev', from]);
      remove('127.0.0.1/8', 'lo');
      remove(`${address}/24`, 'eth0');
    });
    afterEach(() => made.close());

    async function run(argv: string[], env: NodeJS.ProcessEnv = {}): Promise<string[]> {
      const { PATH, HOME } = process.env;
      const child = made.start(made.hosts[0]!, [process.execPath, ...argv], { env: { PATH, HOME, ...env } });
      const [out, err] = await Promise.all([text(child.stdout!), text(child.stderr!)]);
      expect(err).not.toMatch(/error/i);
      return out
        .split('\n')
        .filter(Boolean)
        .map((line) => line.replace(/^.*(rank \d of)/, '$1'))
        .sort();
    }

    const both = ['rank 0 of 2: 3', 'rank 1 of 2: 3'];

    it('runs the ranks of the launcher', async () => {
      expect(await run([command, 'run', '--nproc-per-node', '2', program])).toEqual(both);
    });

    it.each(['localhost', '::1'])('lets ranks that were started by hand meet at %s', async (host) => {
      const port = '29400'; // free in a new network namespace
      const start = (rank: string) =>
        run(['--import', typescript, program], {
          ...{ RANK: rank, WORLD_SIZE: '2', LOCAL_RANK: rank, LOCAL_WORLD_SIZE: '2' },
          ...{ MASTER_ADDR: host, MASTER_PORT: port },
        });
      expect((await Promise.all([start('0'), start('1')])).flat().sort()).toEqual(both);
    });

    it('passes the check of the loopback', async () => {
      const out = await run([command, 'doctor']);
      expect(out.join('\n')).toMatch(/::1 answers/);
    });
  },
);
