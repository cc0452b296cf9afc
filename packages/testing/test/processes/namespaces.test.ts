import { type ChildProcess, execFileSync, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { networkInterfaces } from 'node:os';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Hosts, makeHosts, whyNoNamespaces } from '../../src/index.ts';

const reason = whyNoNamespaces();
const node = (script: string) => [process.execPath, '-e', script];

function namespaces(): string[] {
  const list = execFileSync('ip', ['netns', 'list'], { encoding: 'utf8' });
  return list.split('\n').map((line) => line.split(' ')[0]!);
}

/** Tells whether a process exists. A zombie, which has ended, does not count. */
function isAlive(pid: number): boolean {
  try {
    return !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ');
  } catch {
    return false;
  }
}

/** Resolves with the first text that a program prints. */
async function firstOutput(child: ChildProcess): Promise<string> {
  const [chunk] = (await once(child.stdout!, 'data')) as [Buffer];
  return chunk.toString().trim();
}

describe.skipIf(reason !== null)(
  `hosts on one machine${reason === null ? '' : ` (skipped: ${reason})`}`,
  () => {
    let made: Hosts;
    beforeEach(() => {
      made = makeHosts(3);
    });
    afterEach(() => made.close());

    it('reach each other at their addresses', async () => {
      const { hosts, start } = made;
      const serve = `require('node:net').createServer((socket) => socket.end('hello'))
      .listen(0, '0.0.0.0', function () { console.log(this.address().port); })`;
      const port = await firstOutput(start(hosts[0]!, node(serve)));
      const ask = `require('node:net').connect(${port}, '${hosts[0]!.address}').pipe(process.stdout)`;
      const answers = hosts.map((host) => text(start(host, node(ask)).stdout!));
      expect(await Promise.all(answers)).toEqual(['hello', 'hello', 'hello']);
    });

    it('have their own loopback and eth0, and leave the machine its own', async () => {
      const script = "console.log(Object.keys(require('node:os').networkInterfaces()).sort().join())";
      expect((await text(made.start(made.hosts[2]!, node(script)).stdout!)).trim()).toBe('eth0,lo');
      const own = Object.values(networkInterfaces()).flatMap((addresses) => addresses?.map((a) => a.address));
      expect(own).not.toContain(made.hosts[2]!.address);
    });

    it('run programs with the environment given, under their own pid', async () => {
      const child = made.start(made.hosts[1]!, node("console.log(process.pid, process.env.WORD ?? 'none')"), {
        env: { PATH: process.env.PATH, WORD: 'yes' },
      });
      expect(await firstOutput(child)).toBe(`${child.pid} yes`);
    });

    it('are removed with everything that runs on them', async () => {
      const script = `const { spawn } = require('node:child_process');
      const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { detached: true });
      console.log(child.pid);
      setInterval(() => {}, 1000);`;
      const child = made.start(made.hosts[0]!, node(script));
      const grandchild = Number(await firstOutput(child));
      expect([child.pid!, grandchild].map(isAlive)).toEqual([true, true]);
      await made.close();
      await expect.poll(() => [child.pid!, grandchild].map(isAlive)).toEqual([false, false]);
      expect(namespaces().filter((name) => name.includes(`-${process.pid}-`))).toEqual([]);
    });

    it('are removed by the next makeHosts() if the process that made them was killed', async () => {
      const typescript = createRequire(import.meta.url).resolve('tsx');
      const maker = fork(fileURLToPath(new URL('../fixtures/hosts.ts', import.meta.url)), [], {
        execArgv: ['--import', typescript],
      });
      const [{ names, pid }] = (await once(maker, 'message')) as [{ names: string[]; pid: number }];
      expect(namespaces()).toEqual(expect.arrayContaining(names));
      maker.kill('SIGKILL');
      await once(maker, 'exit');
      await makeHosts(1).close();
      expect(namespaces().filter((name) => names.includes(name))).toEqual([]);
      await expect.poll(() => isAlive(pid)).toBe(false);
    });
  },
);
