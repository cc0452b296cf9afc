import { describe, expect, it } from 'vitest';
import { planRanks, rankCount, wholeJob } from '../../src/agent/plan.ts';

const machine = { cores: 8, gpus: 0 };
const rendezvous = { runId: 'r1', masterAddr: '127.0.0.1', masterPort: 4711, secret: 's3' };
const program = {
  command: ['node', '/x/train.mjs'],
  args: ['--lr', '1'],
  isNode: true,
  env: { HOME: '/home/me', RANK: '9' },
};

describe('rankCount', () => {
  it.each([
    ['3', { cores: 8, gpus: 2 }, 3],
    ['cpu', { cores: 8, gpus: 2 }, 8],
    ['gpu', { cores: 8, gpus: 2 }, 2],
    ['auto', { cores: 8, gpus: 2 }, 2],
    ['auto', { cores: 8, gpus: 0 }, 8],
  ])('%s on %j is %i', (text, on, count) => {
    expect(rankCount('ringwise run', text, on)).toBe(count);
  });

  it.each(['0', '-1', '1.5', '2x', '', 'all', '65537'])('refuses %j', (text) => {
    expect(() => rankCount('ringwise run', text, machine)).toThrow(
      '--nproc-per-node expects a whole number from 1 to 65536',
    );
  });

  it('refuses gpu without one', () => {
    expect(() => rankCount('ringwise bench', 'gpu', machine)).toThrow(/^ringwise bench: .*found no GPU/);
  });
});

describe('planRanks', () => {
  it("gives each rank torchrun's variables, above those of the user", () => {
    const specs = planRanks(wholeJob(2), program, rendezvous, machine);
    expect(specs.map(({ rank }) => rank)).toEqual([0, 1]);
    expect(specs[1]).toMatchObject({ command: ['node', '/x/train.mjs'], args: ['--lr', '1'] });
    expect(specs[1]!.env).toEqual({
      HOME: '/home/me',
      RANK: '1',
      LOCAL_RANK: '1',
      WORLD_SIZE: '2',
      LOCAL_WORLD_SIZE: '2',
      GROUP_RANK: '0',
      GROUP_WORLD_SIZE: '1',
      ROLE_NAME: 'default',
      ROLE_RANK: '1',
      ROLE_WORLD_SIZE: '2',
      MASTER_ADDR: '127.0.0.1',
      MASTER_PORT: '4711',
      TORCHELASTIC_RUN_ID: 'r1',
      TORCHELASTIC_RESTART_COUNT: '0',
      TORCHELASTIC_MAX_RESTARTS: '0',
      TORCHELASTIC_USE_AGENT_STORE: 'True',
      RINGWISE_RUN_ID: 'r1',
      RINGWISE_SECRET: 's3',
      OMP_NUM_THREADS: '4',
    });
  });

  it("numbers the ranks of a host from its first one, and counts the job's restarts", () => {
    const share = { nproc: 2, firstRank: 3, worldSize: 5, groupRank: 1, groupWorldSize: 2 };
    const facts = { role: 'trainer', restartCount: 2, maxRestarts: 4 };
    const specs = planRanks(share, program, rendezvous, machine, facts, (local) => ({
      env: { FILE: `${local}` },
    }));
    expect(specs.map(({ rank }) => rank)).toEqual([3, 4]);
    expect(specs[1]!.env).toMatchObject({
      RANK: '4',
      LOCAL_RANK: '1',
      WORLD_SIZE: '5',
      LOCAL_WORLD_SIZE: '2',
      GROUP_RANK: '1',
      GROUP_WORLD_SIZE: '2',
      ROLE_NAME: 'trainer',
      TORCHELASTIC_RESTART_COUNT: '2',
      TORCHELASTIC_MAX_RESTARTS: '4',
      FILE: '1',
    });
  });

  it('shares the cores of the host between its ranks', () => {
    const threads = (nproc: number) =>
      planRanks(wholeJob(nproc), program, rendezvous, machine)[0]!.env.OMP_NUM_THREADS;
    expect([1, 3, 8, 100].map(threads)).toEqual(['8', '2', '1', '1']);
  });

  it("keeps the user's OMP_NUM_THREADS", () => {
    const mine = { ...program, env: { OMP_NUM_THREADS: '16' } };
    expect(planRanks(wholeJob(2), mine, rendezvous, machine)[0]!.env.OMP_NUM_THREADS).toBe('16');
  });
});
