// Real processes that stay for many scenarios of one size. They are told what to run through a store.
import { deserialize, serialize } from 'node:v8';
import { type StoreServer, serveStore, TcpStore } from '@ringwise/store';
import { type RunningRanks, startRanks, values } from '@ringwise/testing';
import type { Outcome, ScenarioName } from '../src/testing.ts';

const module = new URL('./host-ranks.ts', import.meta.url);

export class Pool {
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

  /** `areApart`: as if each were on a host of its own, so that they meet over TCP. */
  static async start(size: number, areApart = false): Promise<Pool> {
    const server = await serveStore();
    const control = await TcpStore.connect({ host: server.host, port: server.port, timeoutMs: 30_000 });
    const args = [server.port, areApart];
    return new Pool(
      size,
      server,
      control,
      await startRanks(size, module, 'serveScenarios', { args, timeoutMs: 300_000 }),
    );
  }

  async run(scenario: ScenarioName, args: readonly unknown[]): Promise<Outcome[]> {
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
