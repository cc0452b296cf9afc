// Several launchers form one job over loopback. Each launcher stands for one host.

import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { freePort, withDeadlines } from '@ringwise/testing';
import { beforeEach, describe, expect, it } from 'vitest';
import { type Command, isGone, numbersAfter, ringwise, script, until } from '../support/command.ts';

const secret = 'a secret that all launchers of the test share';
let port: number;

// All launchers get the port as a flag, so the test chooses it before any of them listens.
beforeEach(async () => {
  port = await freePort();
});

const env = { RINGWISE_SECRET: secret };
/** A launcher counts as lost after 6 s: on a busy machine one may get no processor for seconds. */
const patient = 'last_call_timeout=0.2,join_timeout=120,keep_alive_max_attempt=12';
/** Longest time to notice that a launcher was killed, in ms. */
const noticeMs = 30_000;

/** Starts a launcher of a static job of two hosts. */
function numbered(nodeRank: number, file: string, ...flags: string[]): Command {
  const where = ['--nnodes', '2', '--node-rank', `${nodeRank}`, '--master-port', `${port}`];
  return ringwise(['run', ...where, '--rdzv-conf', patient, ...flags, file], env);
}

function elasticArgs(nnodes: string, file: string, ...flags: string[]): string[] {
  const where = ['--nnodes', nnodes, '--rdzv-backend', 'c10d', '--rdzv-endpoint', `127.0.0.1:${port}`];
  return ['run', ...where, '--rdzv-conf', patient, ...flags, file];
}

/** Starts a launcher of a job whose hosts join in any order. The first launcher keeps the store. */
function elastic(nnodes: string, file: string, ...flags: string[]): Command {
  return ringwise(elasticArgs(nnodes, file, ...flags), env);
}

const ended = async (...commands: Command[]) => Promise.all(commands.map(({ exitCode }) => exitCode));
const printed = (word: string, ...commands: Command[]) =>
  commands.flatMap(({ out }) => numbersAfter(word, out.stdout));

/** Source of a rank that prints its pid, round, world size and rank. With `waits` it lives until it is stopped. */
const sizes = `const { RANK, WORLD_SIZE, TORCHELASTIC_RESTART_COUNT: round } = process.env;
  console.log('pid ' + process.pid + ' round' + round + ' size ' + WORLD_SIZE + ' rank ' + RANK);`;
const waits = `${sizes}\nsetInterval(() => {}, 1000);`;
/** Returns how many ranks have printed that they run in this round with this world size. */
const inRound = (round: number, size: number, ...commands: Command[]) =>
  commands.flatMap(({ out }) => [...out.stdout.matchAll(new RegExp(`round${round} size ${size} `, 'g'))])
    .length;

describe('two launchers', () => {
  it('number all ranks of the job, host by host', async () => {
    const file = script(
      'env.mjs',
      `const names = ['RANK', 'LOCAL_RANK', 'WORLD_SIZE', 'LOCAL_WORLD_SIZE', 'GROUP_RANK', 'GROUP_WORLD_SIZE', 'MASTER_ADDR', 'TORCHELASTIC_RUN_ID'];
       console.log(names.map((name) => process.env[name]).join());`,
    );
    const second = numbered(1, file, '--nproc-per-node', '1', '--rdzv-id', '100');
    const first = numbered(0, file, '--nproc-per-node', '2', '--rdzv-id', '100');
    expect(await ended(first, second)).toEqual([0, 0]);
    expect(first.out.stdout.split('\n').sort()).toEqual([
      '',
      '[0] 0,0,3,2,0,2,127.0.0.1,100',
      '[1] 1,1,3,2,0,2,127.0.0.1,100',
    ]);
    expect(second.out.stdout).toBe('[2] 2,0,3,1,1,2,127.0.0.1,100\n');
    expect(second.out.stderr).toBe('');
  });

  it('share a store in which their ranks meet', async () => {
    const file = script(
      'meet.mjs',
      `import { TcpStore } from '${import.meta.resolve('@ringwise/store')}';
       const { RANK, MASTER_ADDR: host, MASTER_PORT, RINGWISE_SECRET: secret } = process.env;
       const store = await TcpStore.connect({ host, port: Number(MASTER_PORT), secret });
       await store.set('from ' + RANK, 'hello from ' + RANK);
       console.log(Buffer.from(await store.get('from ' + (1 - RANK))).toString());`,
    );
    const launchers = [elastic('2', file), elastic('2', file)];
    expect(await ended(...launchers)).toEqual([0, 0]);
    expect(launchers.map(({ out }) => out.stdout).sort()).toEqual([
      '[0] hello from 1\n',
      '[1] hello from 0\n',
    ]);
  });

  it('end with the exit code of the rank that failed, and tell where it was', async () => {
    const file = script(
      'fails.mjs',
      `${sizes}
       if (process.env.RANK === '2') throw new RangeError('token 50304');
       setInterval(() => {}, 1000);`,
    );
    const flags = ['--nproc-per-node', '2', '--local-addr'];
    const first = numbered(0, file, ...flags, 'gpu-a');
    const second = numbered(1, file, ...flags, 'gpu-b');
    expect(await ended(first, second)).toEqual([1, 1]);
    for (const { out } of [first, second]) {
      expect(out.stderr).toMatch(
        /ringwise: rank 2 of 4 failed \(exit code 1\) after \d+\.\d s; ranks 0, 1, 3 were stopped\.\n/,
      );
      expect(out.stderr).toMatch(/ {2}RangeError: token 50304 {3}fails\.mjs:3\n {2}pid \d+ on gpu-b\n/);
    }
    expect(printed('pid', first, second).every(isGone)).toBe(true);
  });

  it('blame the rank that failed first, whichever host it is on', async () => {
    // Rank 0 throws only after rank 1 has thrown and exited.
    const file = script(
      'order.mjs',
      `import { existsSync, writeFileSync } from 'node:fs';
       const sign = import.meta.filename + '.thrown';
       if (process.env.RANK === '1') {
         process.on('exit', () => writeFileSync(sign, ''));
         throw Object.assign(new Error('first'), { code: 'ERR_FIRST' });
       }
       setInterval(() => { if (existsSync(sign)) throw new Error('second'); }, 2);`,
    );
    const launchers = [numbered(0, file), numbered(1, file)];
    expect(await ended(...launchers)).toEqual([1, 1]);
    expect(launchers[0]!.out.stderr).toMatch(/rank 1 of 2 failed .*\n {2}Error: first /);
    expect(launchers[0]!.out.stderr).toContain('rank 0 reported Error: second');
  });

  it('start all ranks again after a failure, as often as they may', async () => {
    const file = script(
      'again.mjs',
      `${sizes}
       if (round === '2') process.exit(0);
       if (RANK === '1') process.exit(3);
       setInterval(() => {}, 1000);`,
    );
    const launchers = [numbered(0, file, '--max-restarts', '2'), numbered(1, file, '--max-restarts', '2')];
    expect(await ended(...launchers)).toEqual([0, 0]);
    for (const round of [0, 1, 2]) expect(inRound(round, 2, ...launchers)).toBe(2);
    for (const { out } of launchers) {
      expect(out.stderr).toContain(
        'ringwise: starting all ranks again, 2 ranks on 2 hosts; restart 1 of 2: rank 1 of 2 failed (exit code 3)',
      );
    }
  });

  it('refuse one that does not know the secret, and go on', async () => {
    const file = script('idle.mjs', 'export {};');
    const first = numbered(0, file);
    const outsider = ringwise(
      ['run', '--nnodes', '2', '--node-rank', '1', '--master-port', `${port}`, file],
      { RINGWISE_SECRET: 'a guess' },
    );
    expect(await outsider.exitCode).toBe(1);
    expect(outsider.out.stderr).toMatch(
      /^ringwise run: could not join the job at 127\.0\.0\.1:\d+: .*secret/,
    );
    expect(await ended(first, numbered(1, file))).toEqual([0, 0]);
  });

  it('refuse one with the same number', async () => {
    const file = script('idle.mjs', 'export {};');
    const first = numbered(0, file);
    const twin = ringwise(
      [
        'run',
        '--nnodes',
        '2',
        '--node-rank',
        '0',
        '--rdzv-conf',
        'is_host=false',
        '--master-port',
        `${port}`,
        file,
      ],
      env,
    );
    expect(await twin.exitCode).toBe(1);
    expect(twin.out.stderr).toMatch(/^ringwise: --node-rank 0 was given twice: .* has it already\./);
    expect(await ended(first, numbered(1, file))).toEqual([0, 0]);
  });

  it('refuse one of another job', async () => {
    const file = script('idle.mjs', 'export {};');
    const first = elastic('2', file, '--rdzv-id', 'mine');
    await until('it listens', () => first.out.stderr.includes('waiting for 2 hosts, 1 is there.'));
    const other = elastic('2', file, '--rdzv-id', 'other');
    expect(await other.exitCode).toBe(1);
    expect(other.out.stderr).toContain('expected --rdzv-id other, got mine');
    expect(await ended(first, elastic('2', file, '--rdzv-id', 'mine'))).toEqual([0, 0]);
  });

  it.each([
    ['another --nnodes', '1:2', []],
    ['--elastic', '2', ['--elastic']],
  ])('refuse one with %s, and go on', async (_, nnodes, flags) => {
    const file = script('idle.mjs', 'export {};');
    const first = elastic('2', file);
    await until('it listens', () => first.out.stderr.includes('waiting for 2 hosts, 1 is there.'));
    const other = elastic(nnodes, file, ...flags);
    expect(await other.exitCode).toBe(2);
    expect(other.out.stderr).toContain(
      'have other rules; expected --nnodes 2 without --elastic, as the launcher there has, got --nnodes ' +
        nnodes,
    );
    expect(await ended(first, elastic('2', file))).toEqual([0, 0]);
  });

  it('give up when too few come in time', async () => {
    const file = script('idle.mjs', 'export {};');
    await withDeadlines([300, 10_000], async (ms) => {
      const seconds = ms / 1000;
      const alone = elastic('2', file, '--rdzv-conf', `join_timeout=${seconds}`);
      expect(await alone.exitCode).toBe(1);
      expect(alone.out.stderr).toContain(`ringwise: 1 of 2 hosts arrived within ${seconds} s: `);
    });
  });
});

describe('a host', () => {
  it('that comes later makes all ranks start again, and costs no restart', async () => {
    const file = script('waits.mjs', waits);
    const first = elastic('1:2', file);
    await until('the first runs alone', () => inRound(0, 1, first) === 1);
    const second = elastic('1:2', file, '--nproc-per-node', '2');
    await until('both run', () => inRound(1, 3, first, second) === 3);
    expect(first.out.stderr).toContain('starting all ranks again, 3 ranks on 2 hosts; more hosts have come.');
    process.kill(first.pid, 'SIGINT');
    expect(await ended(first, second)).toEqual([130, 130]);
    expect(printed('pid', first, second).every(isGone)).toBe(true);
  });

  it('joins, and ranks start again, though 1,200 connections to the store say nothing', async () => {
    const file = script('waits.mjs', waits);
    const first = ringwise(elasticArgs('1:2', file, '--max-restarts', '1'), env, 1024);
    await until('the first runs alone', () => inRound(0, 1, first) === 1);
    const silent = Array.from({ length: 1_200 }, () => connect(port, '127.0.0.1').on('error', () => {}));
    await Promise.all(silent.map((socket) => once(socket, 'connect')));
    const second = elastic('1:2', file, '--max-restarts', '1');
    await until('both run', () => inRound(1, 2, first, second) === 2);
    process.kill(printed('pid', second)[0]!, 'SIGKILL');
    await until('both run again', () => inRound(2, 2, first, second) === 2);
    for (const socket of silent) socket.destroy();
    process.kill(first.pid, 'SIGTERM');
    expect(await ended(first, second)).toEqual([143, 143]);
    expect(first.out.stderr).not.toContain('EMFILE');
  });

  it('that is turned away by a busy store is told so', async () => {
    const busy = createServer((socket) => socket.on('error', () => {}).end('\xf7rwbusy1', 'latin1'));
    await once(busy.listen(port, '127.0.0.1'), 'listening');
    const file = script('idle.mjs', 'export {};');
    await withDeadlines([300, 10_000], async (ms) => {
      const alone = elastic('2', file, '--rdzv-conf', `join_timeout=${ms / 1000},is_host=false`);
      expect(await alone.exitCode).toBe(1);
      expect(alone.out.stderr).toMatch(
        new RegExp(
          `could not join the job at .*: connect: the store turned this client away for ${ms} ms, .* too many unauthenticated connections`,
        ),
      );
      expect(alone.out.stderr).not.toContain('Is the launcher running');
    });
    busy.close();
  });

  it('that is killed is left out, and the others start again', async () => {
    const file = script('waits.mjs', waits);
    const flags = ['--max-restarts', '1'];
    const first = elastic('1:2', file, ...flags);
    await until(
      'it keeps the store',
      () => first.out.stderr.includes('waiting for') || inRound(0, 1, first) === 1,
    );
    const second = elastic('1:2', file, ...flags, '--local-addr', 'gpu-b');
    const isWhole = () => [0, 1].some((round) => inRound(round, 2, first, second) === 2);
    await until('both run', isWhole);
    const round = inRound(0, 2, first) === 1 ? 0 : 1;
    const lostPids = printed('pid', second);
    process.kill(second.pid, 'SIGKILL');
    await until('the first runs alone again', () => inRound(round + 1, 1, first) === 1, noticeMs);
    expect(first.out.stderr).toContain('restart 1 of 1: host gpu-b with rank 1 was lost');
    await until('nothing of the second is left', () => lostPids.every(isGone));
    process.kill(first.pid, 'SIGTERM');
    expect(await first.exitCode).toBe(143);
  });

  it('that is killed ends the job when there are no restarts', async () => {
    const file = script('waits.mjs', waits);
    const [first, second] = [numbered(0, file), numbered(1, file, '--local-addr', 'gpu-b')];
    await until('both run', () => inRound(0, 2, first, second) === 2);
    process.kill(second.pid, 'SIGKILL');
    await until('the first has ended', () => first.child.exitCode !== null, noticeMs);
    expect(first.child.exitCode).toBe(1);
    expect(first.out.stderr).toContain('ringwise: host gpu-b with rank 1 was lost: no sign of life');
    expect(printed('pid', first, second).every(isGone)).toBe(true);
  });

  it('that is stopped by its user leaves, and the others go on', async () => {
    const file = script('waits.mjs', waits);
    const flags = ['--max-restarts', '1', '--local-addr'];
    const first = elastic('1:2', file, ...flags, 'gpu-a');
    await until('it runs alone', () => inRound(0, 1, first) === 1);
    const second = elastic('1:2', file, ...flags, 'gpu-b');
    await until('both run', () => inRound(1, 2, first, second) === 2);
    process.kill(second.pid, 'SIGTERM');
    expect(await second.exitCode).toBe(143);
    expect(second.out.stderr).toContain('ringwise: stopped by SIGTERM.');
    await until('the first runs alone again', () => inRound(2, 1, first) === 1);
    process.kill(first.pid, 'SIGINT');
    expect(await first.exitCode).toBe(130);
  });

  it('that keeps the store takes the job with it, and the others say so at once', async () => {
    const file = script('waits.mjs', waits);
    const [first, second] = [numbered(0, file), numbered(1, file, '--max-restarts', '5')];
    await until('both run', () => inRound(0, 2, first, second) === 2);
    process.kill(first.pid, 'SIGKILL');
    await until('the second has ended', () => second.child.exitCode !== null, noticeMs);
    expect(second.child.exitCode).toBe(1);
    expect(second.out.stderr).toMatch(
      /ringwise run: lost the launcher at 127\.0\.0\.1:\d+, which keeps the job's store/,
    );
    await until('no rank is left', () => printed('pid', first, second).every(isGone));
  });

  it('that is one too many waits, and takes the place of one that is lost', async () => {
    const file = script('waits.mjs', waits);
    const flags = ['--max-restarts', '1'];
    const first = elastic('2', file, ...flags);
    await until('it keeps the store', () => first.out.stderr.includes('waiting for 2 hosts'));
    const second = elastic('2', file, ...flags);
    await until('two run', () => inRound(0, 2, first, second) === 2);
    const spare = elastic('2', file, ...flags);
    process.kill(second.pid, 'SIGKILL');
    await until('the spare runs', () => inRound(1, 2, first, spare) === 2);
    process.kill(first.pid, 'SIGTERM');
    expect(await ended(first, spare)).toEqual([143, 143]);
  });
});
