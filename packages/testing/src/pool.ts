// Keeps rank processes running for many commands. A test puts commands into a store, and every rank answers each of
// them.
import { deserialize, serialize } from 'node:v8';
import { type Store, type StoreServer, serveStore, TcpStore } from '@ringwise/store';

/** Starts processes that call serveCommands() with this port. `ended` rejects if they did not end well. */
export type PoolStarter = (size: number, port: number) => Promise<{ readonly ended: Promise<unknown> }>;

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
    ended.catch(() => {}); // the run that it breaks reports it, and so does end()
  }

  /** `timeoutMs`: how long the ranks may take to start, and to answer a command. */
  static async start(size: number, start: PoolStarter, timeoutMs = 120_000): Promise<Pool> {
    const server = await serveStore();
    const control = await TcpStore.connect({ host: server.host, port: server.port, timeoutMs });
    return new Pool(size, server, control, (await start(size, server.port)).ended);
  }

  /** Resolves with the answers by rank. Commands and answers are values that structured clone accepts. */
  async run<Answer>(...command: unknown[]): Promise<Answer[]> {
    const n = this.#commands++;
    await this.#control.set(`command/${n}`, serialize(command));
    const keys = Array.from({ length: this.#size }, (_, rank) => `answer/${n}/${rank}`);
    const broken = this.#ended.then(() => {
      throw new Error('the ranks ended before they had answered');
    });
    const answers = await Promise.race([this.#control.multiGet(keys), broken]);
    return answers.map((bytes) => deserialize(bytes) as Answer);
  }

  async end(): Promise<void> {
    await this.#control.set(`command/${this.#commands}`, serialize(null));
    await this.#ended;
    await this.#control.close();
    await this.#server.close();
  }
}

/** Pools of one kind, one for each number of ranks. Each starts with its first command. */
export class Pools {
  readonly #start: PoolStarter;
  readonly #timeoutMs: number | undefined;
  readonly #pools = new Map<number, Promise<Pool>>();

  constructor(start: PoolStarter, timeoutMs?: number) {
    this.#start = start;
    this.#timeoutMs = timeoutMs;
  }

  readonly run = async <Answer>(size: number, ...command: unknown[]): Promise<Answer[]> => {
    if (!this.#pools.has(size)) this.#pools.set(size, Pool.start(size, this.#start, this.#timeoutMs));
    return (await this.#pools.get(size)!).run(...command);
  };

  readonly end = async (): Promise<void> => {
    for (const pool of this.#pools.values()) await (await pool).end();
  };
}

/** Answers the commands of a Pool until it ends. Each process of the Pool calls it. */
export async function serveCommands<Command extends unknown[]>(
  rank: number,
  port: number,
  answer: (store: Store, ...command: Command) => Promise<unknown>,
): Promise<void> {
  const control = await TcpStore.connect({ host: '127.0.0.1', port });
  for (let n = 0; ; n++) {
    // The limit of startRanks ends a process earlier. A pool may be idle for long while the others run.
    const next = await control.get(`command/${n}`, { timeoutMs: 3_600_000 });
    const command = deserialize(next) as Command | null;
    if (command === null) break;
    await control.set(`answer/${n}/${rank}`, serialize(await answer(control, ...command)));
  }
  await control.close();
}
