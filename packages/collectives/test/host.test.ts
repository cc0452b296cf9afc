import { deserialize, serialize } from 'node:v8';
import { type StoreServer, serveStore, TcpStore } from '@ringwise/store';
import { type RunningRanks, startRanks, values, withRanks } from '@ringwise/testing';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { backendContract, type Outcome } from '../src/testing.ts';

const module = new URL('./host-ranks.ts', import.meta.url);

/** Real processes that stay for all scenarios of one size; told what to run through a store. */
class Pool {
  readonly #size: number;
  readonly #server: StoreServer;
  readonly #control: TcpStore;
  readonly #ranks: RunningRanks;
  #commands = 0;

  private constructor(size: number, server: StoreServer, control: TcpStore, ranks: RunningRanks) {
    this.#size = size;
    this.#server = server;
    this.#control = control;
    this.#ranks = ranks;
  }

  static async start(size: number): Promise<Pool> {
    const server = await serveStore();
    const control = await TcpStore.connect({ host: server.host, port: server.port, timeoutMs: 30_000 });
    const args = [server.port];
    return new Pool(
      size,
      server,
      control,
      await startRanks(size, module, 'serveScenarios', { args, timeoutMs: 300_000 }),
    );
  }

  async run(scenario: string, args: readonly unknown[]): Promise<Outcome[]> {
    const n = this.#commands++;
    await this.#control.set(`command/${n}`, serialize([scenario, args]));
    const keys = Array.from({ length: this.#size }, (_, rank) => `outcome/${n}/${rank}`);
    const broken = this.#ranks.results.then((results) => {
      throw new Error(`the ranks ended: ${values(results)}`);
    });
    const outcomes = await Promise.race([this.#control.multiGet(keys), broken]);
    return outcomes.map((bytes) => deserialize(bytes) as Outcome);
  }

  async end(): Promise<void> {
    await this.#control.set(`command/${this.#commands}`, serialize(null));
    values(await this.#ranks.results);
    await this.#control.close();
    await this.#server.close();
  }
}

const pools = new Map<number, Promise<Pool>>();
afterAll(async () => {
  for (const pool of pools.values()) await (await pool).end();
});

backendContract({ describe, it, expect }, 'host', {
  run: async (size, scenario, args) => {
    if (!pools.has(size)) pools.set(size, Pool.start(size));
    return (await pools.get(size)!).run(scenario, args);
  },
});

describe('a process with a group on the host backend', () => {
  let server: StoreServer;
  let control: TcpStore;
  beforeEach(async () => {
    server = await serveStore();
    control = await TcpStore.connect({ host: server.host, port: server.port });
  });
  afterEach(async () => {
    await control.close();
    await server.close();
  });

  for (const sync of [false, true]) {
    it(`is told at once, and by name, when another is killed${sync ? ', also while it blocks' : ''}`, async () => {
      const ranks = await startRanks(3, module, 'allReduceForever', { args: [server.port, sync] });
      while ((await control.add('ready', 0)) < 3) await new Promise((resolve) => setTimeout(resolve, 5));
      const killedAtMs = performance.now();
      ranks.kill(1);
      const [first, killed, last] = await ranks.results;
      expect(killed!.signal).toBe('SIGKILL');
      for (const survivor of [first!, last!]) {
        expect(survivor.error).toMatchObject({ code: 'ERR_COLL_PEER_LOST', peers: [1], secondary: true });
        expect(survivor.endedAtMs - killedAtMs).toBeLessThan(1_000);
      }
    });
  }

  it('keeps its event loop turning while it waits in a barrier', async () => {
    const turns = values<number>(await withRanks(2, module, 'idleInBarrier'));
    expect(turns[0]).toBeGreaterThan(20);
  });

  it('stays alive for a pending operation, and for nothing else', async () => {
    expect(values(await withRanks(2, module, 'onlyTheBarrier'))).toEqual(['passed', 'passed']);
  });

  it('may exit with operations pending, and its peers are told', async () => {
    const [exited, waiting] = await withRanks(2, module, 'exitWhilePending', { args: [7] });
    expect(exited).toMatchObject({ status: 'exited', exitCode: 7, signal: null });
    expect(waiting!.error).toMatchObject({ code: 'ERR_COLL_PEER_LOST', peers: [0] });
  });

  it('ends by itself when the script forgets to close', async () => {
    expect(values(await withRanks(2, module, 'endWithoutClose'))).toEqual(['sum 2', 'sum 2']);
  });

  it('can be in several groups', async () => {
    expect(values(await withRanks(2, module, 'severalGroups'))).toEqual([
      [3, 60],
      [3, 60],
    ]);
  });
});
