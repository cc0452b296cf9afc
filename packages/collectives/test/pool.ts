// Real processes that stay for many scenarios of one size. They are told what to run through a store.
import { deserialize, serialize } from 'node:v8';
import { type StoreServer, serveStore, TcpStore } from '@ringwise/store';
import { startRanks, values } from '@ringwise/testing';
import type { Outcome, ScenarioName } from '../src/testing.ts';

const module = new URL('./host-ranks.ts', import.meta.url);

/** Starts processes that serve (serve.ts) the store at `port`. `ended` rejects if they did not end well. */
export type Starter = (size: number, port: number) => Promise<{ readonly ended: Promise<unknown> }>;

/** Of the host backend. */
export function hostRanks(areApart = false): Starter {
  return async (size, port) => {
    const options = { args: [port, areApart], timeoutMs: 300_000 };
    const ranks = await startRanks(size, module, 'serveScenarios', options);
    return { ended: ranks.results.then(values) };
  };
}

export class Pool {
  readonly #size: number;
  readonly #server: StoreServer;
  readonly #control: TcpStore;
  readonly #ended: Promise<unknown>;
  #commands = 0;

  private constructor(size: number, server: StoreServer, control: TcpStore, ended: Promise<unknown>) {
    this.#size = size;
    this.#server = server;
    this.#control = control;
    this.#ended = ended;
    ended.catch(() => {}); // told by the run that it breaks, and by end()
  }

  static async start(size: number, start: Starter): Promise<Pool> {
    const server = await serveStore();
    const control = await TcpStore.connect({ host: server.host, port: server.port, timeoutMs: 30_000 });
    return new Pool(size, server, control, (await start(size, server.port)).ended);
  }

  async run(scenario: ScenarioName, args: readonly unknown[]): Promise<Outcome[]> {
    const n = this.#commands++;
    await this.#control.set(`command/${n}`, serialize([scenario, args]));
    const keys = Array.from({ length: this.#size }, (_, rank) => `outcome/${n}/${rank}`);
    const broken = this.#ended.then(() => {
      throw new Error('the ranks ended before the scenario did');
    });
    const outcomes = await Promise.race([this.#control.multiGet(keys), broken]);
    return outcomes.map((bytes) => deserialize(bytes) as Outcome);
  }

  async end(): Promise<void> {
    await this.#control.set(`command/${this.#commands}`, serialize(null));
    await this.#ended;
    await this.#control.close();
    await this.#server.close();
  }
}
