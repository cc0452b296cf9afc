import { readdirSync, readFileSync } from 'node:fs';
import { get } from 'node:http';
import { dirname, join } from 'node:path';
import { freePort } from '@ringwise/testing';
import { describe, expect, it } from 'vitest';
import { reportMetrics } from '../../../src/index.ts';
import { finished, numbersAfter, ringwise, script, until } from '../../support/command.ts';

const library = new URL('../../../dist/index.js', import.meta.url).href;
const program = (name: string, source: string) =>
  script(name, `import { reportMetrics } from '${library}';\n${source}`);

interface Line {
  readonly time: number;
  readonly rank: number;
  readonly restarts: number;
  readonly step: number;
  readonly loss: number | null;
}

const linesOf = (file: string) =>
  readFileSync(file, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Line);

describe('reportMetrics', () => {
  it('does nothing without a launcher', () => {
    expect(reportMetrics({ step: 1, loss: 0.5 })).toBe(undefined);
  });

  it('brings every report of every rank into the file, from a loop that never yields too', async () => {
    const file = program(
      'train.mjs',
      `const rank = Number(process.env.RANK);
       for (let step = 0; step < 3000; step++) reportMetrics({ step, loss: step + rank / 2, samples: 32 });
       console.log(Object.keys(process.env).filter((name) => name.endsWith('_FD')).length);`,
    );
    const metrics = join(dirname(file), 'out', 'metrics.jsonl');
    const startedSeconds = Date.now() / 1000;
    const { exitCode, stdout, stderr } = await finished([
      'run',
      '--nproc-per-node',
      '2',
      '--metrics',
      metrics,
      file,
    ]);
    expect(stderr).toBe('');
    expect(stdout.split('\n').sort()).toEqual(['', '[0] 0', '[1] 0']);
    expect(exitCode).toBe(0);
    const lines = linesOf(metrics);
    for (const rank of [0, 1]) {
      const own = lines.filter((line) => line.rank === rank);
      expect(own.map(({ step }) => step)).toEqual(Array.from({ length: 3000 }, (_, step) => step));
      expect(own[7]!.loss).toBe(7 + rank / 2);
      expect(own[7]!.time).toBeGreaterThan(startedSeconds - 1);
      expect(own[7]!.time).toBeLessThan(Date.now() / 1000 + 1);
    }
  });

  it('counts steps by itself, and never throws', async () => {
    const file = program(
      'odd.mjs',
      `reportMetrics({ loss: NaN });
       reportMetrics({ loss: 1n });
       reportMetrics({ get loss() { throw new Error('no'); } });
       reportMetrics(null);
       reportMetrics({ loss: 2, name: 'text', lr: undefined, ddp: null });
       reportMetrics({ accuracy: { item: () => 1 } });
       reportMetrics({ loss: 3, ddp: { backwardMs: 'x' }, name: 'more' });
       console.log('done');`,
    );
    const metrics = join(dirname(file), 'metrics.jsonl');
    const { exitCode, stdout, stderr } = await finished(['run', '--metrics', metrics, file]);
    expect([exitCode, stdout]).toEqual([0, '[0] done\n']);
    // The command names each value that it cannot draw, and names it once.
    expect(stderr.match(/reportMetrics: \w+ is left out; expected .*, got \w+\./g)).toEqual([
      'reportMetrics: loss is left out; expected a number, got bigint.',
      'reportMetrics: name is left out; expected a number, got string.',
      'reportMetrics: accuracy is left out; expected a number, got Object.',
      'reportMetrics: ddp is left out; expected what model.statistics() of @ringwise/ddp returns, got Object.',
    ]);
    expect(stderr).toContain('got Object. Pass the number of the tensor, item().');
    const told = linesOf(metrics).filter(({ loss }) => loss !== undefined);
    expect(told.map(({ loss }) => loss)).toEqual([null, 2, 3]);
    expect(told[0]!.step).toBe(0);
  });

  it('has a counterpart for programs that are not node: lines on a file descriptor', async () => {
    const file = script('train.sh', `echo '{"step": 3, "values": {"loss": 0.5}}' >&$RINGWISE_METRICS_FD\n`);
    const metrics = join(dirname(file), 'metrics.jsonl');
    const { exitCode } = await finished(['run', '--metrics', metrics, '--no-python', 'sh', file]);
    expect(exitCode).toBe(0);
    expect(linesOf(metrics)).toMatchObject([{ rank: 0, step: 3, loss: 0.5 }]);
  });

  it('draws a bucket from its start for its duration; if unknown, from its launch and to the end of the step', async () => {
    const file = program(
      'buckets.mjs',
      `const buckets = [
         { launchedMs: 1, startedMs: 3, communicationMs: 2 },
         { launchedMs: 4, startedMs: null, communicationMs: 5 },
         { launchedMs: 6, communicationMs: 7 },
         { launchedMs: 8, communicationMs: null },
       ];
       reportMetrics({ loss: 1, ddp: { backwardMs: 7, exposedMs: 6, buckets } });
       setInterval(() => {}, 1000);`,
    );
    const { out } = ringwise(['run', '--ui', file]);
    await until('the address', () => /live page at http\S+\n/.test(out.stderr));
    let events = '';
    const reader = get(`${/live page at (http\S+)/.exec(out.stderr)![1]}events`, (response) => {
      response.setEncoding('utf8').on('data', (text: string) => {
        events += text;
      });
      response.on('error', () => {});
    });
    const buckets = /"buckets":(\[\[.*?\]\])/;
    await until('the step', () => buckets.test(events));
    reader.destroy();
    expect(buckets.exec(events)![1]).toBe('[[3,2],[4,5],[6,7],[8,5]]');
  });

  it('never blocks the program when its launcher does not read', async () => {
    const file = program(
      'fast.mjs',
      `process.on('SIGUSR2', () => {
         for (let step = 0; step < 200_000; step++) reportMetrics({ step, loss: 1, ['x'.repeat(50)]: step });
         process.exit(7);
       });
       console.log('pid ' + process.pid);
       setInterval(() => {}, 1000);`,
    );
    const command = ringwise(['run', '--metrics', join(dirname(file), 'metrics.jsonl'), file]);
    await until('the rank', () => numbersAfter('pid', command.out.stdout).length === 1);
    const [pid] = numbersAfter('pid', command.out.stdout) as [number];
    process.kill(command.pid, 'SIGSTOP');
    process.kill(pid, 'SIGUSR2');
    const isEnded = () => {
      try {
        return readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ');
      } catch {
        return true;
      }
    };
    try {
      if (process.platform === 'linux') await until('the end of the rank', isEnded);
    } finally {
      process.kill(command.pid, 'SIGCONT');
    }
    expect(await command.exitCode).toBe(7);
  });

  it('reaches TensorBoard files too, and files go on after a restart', async () => {
    const file = program(
      'again.mjs',
      `const round = Number(process.env.TORCHELASTIC_RESTART_COUNT);
       for (let step = round * 5; step < round * 5 + 10; step++) reportMetrics({ step, loss: round });
       process.exit(round === 0 ? 3 : 0);`,
    );
    const metrics = join(dirname(file), 'metrics.jsonl');
    const board = join(dirname(file), 'board');
    const flags = ['--metrics', metrics, '--tensorboard', board, '--max-restarts', '1'];
    expect((await finished(['run', ...flags, file])).exitCode).toBe(0);
    const told = linesOf(metrics).map(({ restarts, step }) => [restarts, step]);
    expect(told).toHaveLength(20);
    expect([told[0], told[19]]).toEqual([
      [0, 0],
      [1, 14],
    ]);
    expect(readdirSync(join(board, 'rank0'))).toEqual([
      expect.stringMatching(/^events\.out\.tfevents\.\d+\./),
    ]);
  });

  it('reaches the host with the store from ranks of another one', async () => {
    const port = await freePort();
    // A launcher forwards at the end only for a short time, so the ranks go on until the file has all reports.
    const file = program(
      'hosts.mjs',
      `import { existsSync, readFileSync } from 'node:fs';
       const [to] = process.argv.slice(2);
       const lines = () => (existsSync(to) ? readFileSync(to, 'utf8').split('\\n').length - 1 : 0);
       for (let step = 0; step < 10; step++) reportMetrics({ step, loss: 1 });
       for (const endMs = performance.now() + 120_000; lines() < 20 && performance.now() < endMs; )
         await new Promise((resolve) => setTimeout(resolve, 20));`,
    );
    const [metrics, unused] = [join(dirname(file), 'metrics.jsonl'), join(dirname(file), 'unused.jsonl')];
    const host = (nodeRank: number, to: string) => {
      const where = ['--nnodes', '2', '--node-rank', `${nodeRank}`, '--master-port', `${port}`];
      const flags = [...where, '--rdzv-conf', 'keep_alive_max_attempt=60', '--metrics', to];
      return ringwise(['run', ...flags, file, metrics], { RINGWISE_SECRET: 'shared by both' });
    };
    const commands = [host(0, metrics), host(1, unused)];
    expect(await Promise.all(commands.map(({ exitCode }) => exitCode))).toEqual([0, 0]);
    const lines = linesOf(metrics);
    expect(lines.filter(({ rank }) => rank === 0)).toHaveLength(10);
    expect(lines.filter(({ rank }) => rank === 1)).toHaveLength(10);
    expect(readdirSync(dirname(file))).not.toContain('unused.jsonl');
  });
});
