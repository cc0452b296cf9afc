// Tests the host backend with real processes on one host.
import { freePort, Pools, values, withRanks } from '@ringwise/testing';
import { afterAll, describe, expect, it } from 'vitest';
import { backendContract } from '../../contract/index.ts';
import { hostRanks } from '../support/pool.ts';

const module = new URL('../support/host-ranks.ts', import.meta.url);
const threads = new URL('../support/ending-threads.ts', import.meta.url);

// These ranks share memory. test/full/backends has four ranks, and ranks that meet over TCP.
const pools = new Pools(hostRanks());
backendContract({ describe, it, expect }, 'host', { run: pools.run, sizes: [1, 2, 3] });
afterAll(pools.end);

describe('a process with a group on the host backend', () => {
  it('keeps its event loop turning while it waits in a barrier', async () => {
    const turns = values<number>(await withRanks(2, module, 'idleInBarrier'));
    expect(turns[0]).toBeGreaterThanOrEqual(20);
  });

  it('keeps its event loop turning while it awaits operations that all end at once', async () => {
    for (const turns of values<number>(await withRanks(2, module, 'awaitInStep')))
      expect(turns).toBeGreaterThanOrEqual(20);
  });

  it('stays alive for a pending operation, and for nothing else', async () => {
    expect(values(await withRanks(2, module, 'onlyTheBarrier'))).toEqual(['passed', 'passed']);
  });

  it('may exit with operations pending, and its peers are told', async () => {
    const [exited, waiting] = await withRanks(2, module, 'exitWhilePending', { args: [7] });
    expect(exited).toMatchObject({ status: 'exited', exitCode: 7, signal: null });
    expect(waiting!.error).toMatchObject({ code: 'ERR_COLL_PEER_LOST', peers: [0] });
  });

  it.each([
    ['exit', 3, 3],
    ['terminate', 1, 5],
  ] as const)('goes on when threads end while their operations end (%s)', async (end, exitCode, pairs) => {
    const codes = values(await withRanks(1, threads, 'endThreads', { args: [end, pairs] }))[0];
    expect(codes).toEqual(Array.from({ length: 2 * pairs }, () => exitCode));
  });

  it('terminates a thread that blocks in a call, and the other rank is told', async () => {
    // A thread that does not block yet is lost because its connection closed.
    const [told] = values(await withRanks(1, threads, 'terminateBlocked'));
    expect(told).toMatch(
      /^lost rank 0 \((its thread was told to end in the middle of a call|its connection closed)/,
    );
  });

  it('takes memory that was prepared before, and more than that', async () => {
    for (const { sums, bytes } of values<{ sums: number[]; bytes: number }>(
      await withRanks(2, module, 'sumInPreparedMemory'),
    )) {
      expect(sums).toEqual(Array.from({ length: 6 }, () => 3));
      expect(bytes).toBeGreaterThanOrEqual(8 << 20);
    }
  });

  it('ends by itself when the script forgets to close', async () => {
    expect(values(await withRanks(2, module, 'endWithoutClose'))).toEqual(['sum 2', 'sum 2']);
  });

  it('knows which ranks share its host under every launcher', async () => {
    const launchers: ((rank: number) => Record<string, string>)[] = [
      (rank) => ({ RANK: `${rank}`, WORLD_SIZE: '4' }),
      (rank) => ({ RANK: `${rank}`, WORLD_SIZE: '4', LOCAL_RANK: '0' }), // LOCAL_RANK of an earlier job
      (rank) => ({
        RANK: `${rank}`,
        WORLD_SIZE: '4',
        LOCAL_RANK: `${1 - (rank % 2)}`,
        LOCAL_WORLD_SIZE: '2',
      }),
      (rank) => ({ OMPI_COMM_WORLD_RANK: `${rank}`, OMPI_COMM_WORLD_SIZE: '4' }),
      (rank) => ({
        OMPI_COMM_WORLD_RANK: `${rank}`,
        OMPI_COMM_WORLD_SIZE: '4',
        OMPI_COMM_WORLD_LOCAL_RANK: `${rank % 2}`,
        OMPI_COMM_WORLD_LOCAL_SIZE: '2',
      }),
      (rank) => ({
        PMI_RANK: `${rank}`,
        PMI_SIZE: '4',
        MPI_LOCALRANKID: `${rank % 2}`,
        MPI_LOCALNRANKS: '2',
      }),
      (rank) => ({
        SLURM_PROCID: `${rank}`,
        SLURM_STEP_ID: '0',
        SLURM_NTASKS: '4',
        SLURM_LOCALID: `${rank % 2}`,
      }),
      (rank) => ({ SLURM_PROCID: `${rank}`, SLURM_STEP_ID: '0', SLURM_NTASKS: '4' }),
    ];
    const launches: Record<string, string>[][] = [];
    for (const launcher of launchers) {
      const master = { MASTER_ADDR: '127.0.0.1', MASTER_PORT: `${await freePort()}` };
      launches.push([0, 1, 2, 3].map((rank) => ({ ...master, ...launcher(rank) })));
    }
    const hosts = [
      [0, 1],
      [2, 3],
    ];
    const vias = ['env', 'env', 'env', 'openmpi', 'openmpi', 'pmi', 'slurm', 'slurm'];
    const ranks = await withRanks(4, module, 'placements', { args: [launches] });
    for (const [rank, found] of values<unknown[]>(ranks).entries()) {
      const localRank = (via: number) => (via === 2 ? 1 - (rank % 2) : rank % 2);
      expect(found).toEqual(
        vias.map((name, via) => [
          name,
          [localRank(via), 2, hosts],
          rank % 2 === 0 ? null : [localRank(via), 2, [[0], [1]]],
        ]),
      );
    }
  });

  it('survives that a buffer is transferred before the turn of its call', async () => {
    for (const told of values(await withRanks(2, module, 'transferWhileQueued')))
      expect(told).toEqual([
        'ERR_COLL_SYSTEM',
        'rank 0 has detached a buffer of the call before its turn came',
      ]);
  });

  it('has its memory for itself after a failure, also if a rank that was stopped goes on', async () => {
    expect(values(await withRanks(2, module, 'stopInAllReduce'))[0]).toBe(0);
  });

  it('can be in several groups', async () => {
    expect(values(await withRanks(2, module, 'severalGroups'))).toEqual([
      [3, 60],
      [3, 60],
    ]);
  });
});
