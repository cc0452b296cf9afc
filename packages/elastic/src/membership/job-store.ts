// The store of a job. If its host is lost, another store replaces it: each launcher keeps a standby store, whose
// address is in the view. A member that has moved never uses an earlier store again, so two sides of a partitioned
// network cannot both have a quorum (protocol/quorum.ts).
import { PrefixStore, type Store, StoreError, TcpStore } from '@ringwise/store';
import { storeFailed } from './errors.ts';
import { jobPrefix } from './keys.ts';
import type { JoinPlan } from './options.ts';
import { standbysOf } from './protocol/quorum.ts';
import type { View } from './protocol/view.ts';

/** Milliseconds to connect to a standby store. */
const dialMs = 3_000;
/** Milliseconds that the store has to answer: if the job can move to another store, and if it cannot. */
const [movableAnswerMs, answerMs] = [5_000, 15_000];

export class JobStore {
  readonly #plan: JoinPlan;
  readonly #secret: string | null;
  #address: string | null;
  #job: Store;
  #close: () => Promise<void>;

  private constructor(
    plan: JoinPlan,
    secret: string | null,
    address: string | null,
    store: Store,
    close: () => Promise<void>,
  ) {
    this.#plan = plan;
    this.#secret = secret;
    this.#address = address;
    this.#job = new PrefixStore(jobPrefix(plan.runId), store);
    this.#close = close;
  }

  /** Connects to the launcher's store, or uses the store of the caller. */
  static async open(plan: JoinPlan): Promise<JobStore> {
    const at = plan.store;
    if (!('port' in at)) return new JobStore(plan, null, null, at, async () => {});
    const { host, port, secret } = at;
    const timeoutMs = plan.settings.joinTimeoutMs;
    try {
      const store = await TcpStore.connect({ host, port, timeoutMs, ...(secret !== null && { secret }) });
      return new JobStore(plan, secret, `${host}:${port}`, store, () => store.close());
    } catch (error) {
      if (!StoreError.isInstance(error)) throw error;
      throw storeFailed('joinMembership', error.message, error);
    }
  }

  /** The keys of the job, in its present store. */
  get job(): Store {
    return this.#job;
  }

  get answerMs(): number {
    return this.#plan.self.standby === null || this.#address === null ? answerMs : movableAnswerMs;
  }

  /**
   * Connects to the first standby store of the hosts of `view` that can be reached. Resolves with false if there is
   * none.
   */
  async move(view: View, signal: AbortSignal): Promise<boolean> {
    if (this.#address === null) return false;
    for (const address of standbysOf(view, this.#address)) {
      const [, host = '', port = ''] = /^(.*):(\d+)$/.exec(address) ?? [];
      const secret = this.#secret;
      const options = { host, port: Number(port), signal, ...(secret !== null && { secret }) };
      const store = await TcpStore.connect({ ...options, timeoutMs: dialMs }).catch((error: unknown) => {
        if (!StoreError.isInstance(error)) throw error;
        return null;
      });
      if (store === null) continue;
      const closeLost = this.#close;
      this.#address = address;
      this.#job = new PrefixStore(jobPrefix(this.#plan.runId), store);
      this.#close = () => store.close();
      // Ends the pending calls to the lost store.
      closeLost().catch(() => {});
      return true;
    }
    return false;
  }

  async close(): Promise<void> {
    await this.#close();
  }
}
