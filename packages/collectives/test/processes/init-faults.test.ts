// Processes that cannot become a group. Each must be told the reason at once, not at its deadline, which is five
// minutes here. They are real processes that meet in a launcher's store or in one that rank 0 hosts.
import { freePort, values, withRanks } from '@ringwise/testing';
import { describe, expect, it } from 'vitest';
import type { InitOptions } from '../../src/index.ts';

const module = new URL('../support/host-ranks.ts', import.meta.url);

interface Told {
  readonly code: string;
  readonly message: string;
  readonly what: string;
  readonly peers: number[];
  readonly secondary: boolean;
  readonly pid: number;
}
interface Rank {
  readonly RANK: number;
  readonly WORLD_SIZE: number;
  readonly options?: InitOptions;
}

/** Returns the error of each process, or null if it has joined. */
async function toldTo(ranks: readonly Rank[], isHosted: boolean): Promise<(Told | null)[]> {
  const own = {
    MASTER_PORT: `${await freePort()}`,
    TORCHELASTIC_USE_AGENT_STORE: null,
    LOCAL_WORLD_SIZE: null,
  };
  const variables = ranks.map(({ RANK, WORLD_SIZE }) => ({
    ...(isHosted && own),
    RANK: `${RANK}`,
    WORLD_SIZE: `${WORLD_SIZE}`,
  }));
  const args = [variables, ranks.map(({ options = {} }) => options)];
  return values<Told | null>(await withRanks(ranks.length, module, 'initWith', { args }));
}

/** Reads a job from one line: "0/2 1/3" is rank 0 of 2 and rank 1 of 3. */
const job = (text: string): Rank[] =>
  text.split(' ').map((word) => {
    const [RANK, WORLD_SIZE] = word.split('/').map(Number) as [number, number];
    return { RANK, WORLD_SIZE };
  });

describe.each([
  ['the store of a launcher', false],
  ['a store that rank 0 hosts', true],
] as const)('over %s', (_, isHosted) => {
  it.each([
    ['0/2 1/3', 0, 1, '3', '2'],
    ['0/3 1/2', 0, 1, '2', '3'],
    ['0/4 1/4 2/3', 0, 2, '3', '4'],
  ])('ranks with world sizes that differ (%s) are told whose', async (text, first, odd, theirs, ours) => {
    const told = await toldTo(job(text), isHosted);
    for (const [rank, error] of told.entries()) {
      const side = (of: number) => `rank ${of} was started with world size ${of === odd ? theirs : ours}`;
      const sentences = [first, 1].flatMap((one) => [
        `init: ${side(odd)} but rank ${one} with ${ours}`,
        `init: ${side(one)} but rank ${odd} with ${theirs}`,
      ]);
      expect([
        rank,
        error?.code,
        sentences.some((sentence) => error!.message.startsWith(sentence)),
        error!.message,
      ]).toEqual([rank, 'ERR_COLL_INIT', true, error!.message]);
    }
  });

  it.each(['0/3 1/3 1/3', '0/2 0/2', '0/3 1/3 0/3'])(
    'a rank number used twice (%s) is told to all',
    async (text) => {
      const ranks = job(text);
      const told = await toldTo(ranks, isHosted);
      const twice = ranks.find(
        ({ RANK }, at) => ranks.findIndex((other) => other.RANK === RANK) !== at,
      )!.RANK;
      const pids = ranks.flatMap(({ RANK }, at) => (RANK === twice ? [told[at]!.pid] : []));
      for (const error of told) {
        expect(error).toMatchObject({ code: 'ERR_COLL_INIT', peers: [twice] });
        const [, first, second] =
          /two processes are rank \d, process (\d+) on \S+ and process (\d+) on \S+;/.exec(error!.what) ?? [];
        const [, before] = /rank \d has arrived already: process (\d+) on \S+;/.exec(error!.what) ?? [];
        if (before === undefined) expect([first, second].map(Number).sort()).toEqual([...pids].sort());
        else expect(pids.filter((pid) => pid !== error!.pid)).toContain(Number(before));
      }
      // The process that comes last is told that its rank has arrived already.
      expect(told.filter((error) => /has arrived already/.test(error!.what))).toHaveLength(1);
    },
  );

  it('a rank beyond the world size is told so, and so are those that wait', async () => {
    const [waiting, beyond] = await toldTo(job('0/2 2/2'), isHosted);
    const what = 'rank and size do not fit (from ringwise); expected 0 <= rank < size, got rank 2, size 2';
    expect(beyond).toMatchObject({ code: 'ERR_COLL_INIT', what, secondary: false });
    expect(waiting).toMatchObject({
      code: 'ERR_COLL_INIT',
      what: `rank 2 cannot take part: ${what}`,
      peers: [2],
      secondary: true,
    });
  });

  it('a rank without a driver for nccl fails alone, and the others are told', async () => {
    const nccl = { backend: 'nccl' };
    const [first, second] = await toldTo(
      [
        { RANK: 0, WORLD_SIZE: 2 },
        { RANK: 1, WORLD_SIZE: 2, options: nccl },
      ],
      isHosted,
    );
    const what = expect.stringMatching(/cuda|nccl/i);
    expect(second).toMatchObject({ code: 'ERR_COLL_SYSTEM', what, secondary: false });
    expect(first).toMatchObject({
      code: 'ERR_COLL_INIT',
      what: `rank 1 cannot take part: ${second!.what}`,
      peers: [1],
      secondary: true,
    });

    const [host, other] = await toldTo(
      [
        { RANK: 0, WORLD_SIZE: 2, options: nccl },
        { RANK: 1, WORLD_SIZE: 2 },
      ],
      isHosted,
    );
    expect(host!.code).toBe('ERR_COLL_SYSTEM');
    expect(other!.what).toBe(`rank 0 cannot take part: ${host!.what}`);
  });
});

it('a rank that cannot take part does not wait for the others to hear of it', async () => {
  const alone = await toldTo([{ RANK: 0, WORLD_SIZE: 2, options: { backend: 'nccl' } }], true);
  expect(alone[0]!.code).toBe('ERR_COLL_SYSTEM');
});
