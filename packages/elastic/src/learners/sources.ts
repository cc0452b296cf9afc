// Serves all learners of one member, and polls the store for their requests.
import { setTimeout as sleep } from 'node:timers/promises';
import type { StepObserver, Trained } from '../job/trained.ts';
import type { JobAccess } from '../membership/join.ts';
import type { View } from '../membership/protocol/view.ts';
import { type Ask, Channel, type FromLearner, type FromSource } from './channel.ts';
import { prepare } from './prepare.ts';
import { Source } from './source.ts';

const connectMs = 120_000;
/** Interval at which a member polls the store; longer in jobs of many members, whose requests add up. */
const pollMs = 100;
const pollMsPerMember = 5;

export class Sources implements StepObserver {
  readonly #access: JobAccess;
  readonly #trained: Trained;
  readonly #ended = new AbortController();
  readonly #sources = new Set<Source>();
  #members = 1;
  #hosts: ReadonlySet<string> = new Set();
  #isPolling = false;
  #stepMs = 0;
  #lastMs: number | null = null;

  constructor(access: JobAccess, trained: Trained) {
    this.#access = access;
    this.#trained = trained;
  }

  /** Called in each view, when this member has the state: ends the service of learners that are now members. */
  enter({ members }: View): void {
    this.#members = members.length;
    this.#hosts = new Set(members.map(({ host }) => host));
    const ids = new Set(members.map(({ id }) => id));
    for (const source of this.#sources) if (ids.has(source.learner)) source.end(this.#trained.finalSteps);
    this.#lastMs = null;
    if (this.#isPolling) return;
    this.#isPolling = true;
    this.#poll().catch(() => {}); // ended by close()
  }

  readonly beforeStep = (): void => {
    for (const source of this.#sources) source.beforeStep();
  };

  readonly beforeUpdate = (): void => {
    for (const source of this.#sources) source.beforeUpdate();
  };

  readonly afterUpdate = (isTaken: boolean): void => {
    for (const source of this.#sources) source.afterUpdate(isTaken);
    const nowMs = performance.now();
    if (this.#lastMs !== null) {
      const tookMs = nowMs - this.#lastMs;
      this.#stepMs = this.#stepMs === 0 ? tookMs : 0.8 * this.#stepMs + 0.2 * tookMs;
    }
    this.#lastMs = nowMs;
  };

  /** Ends all services. Idempotent. */
  async close(): Promise<void> {
    this.#ended.abort(new Error('the member has ended its part in the job'));
    await Promise.all([...this.#sources].map((source) => source.close()));
  }

  async #poll(): Promise<void> {
    const { signal } = this.#ended;
    const { chain, self } = this.#access;
    while (!signal.aborted) {
      // Errors are ignored here: the next change of the view handles a store that fails or moves to another host.
      const asks = await chain.asks(self.id).catch(() => []);
      for (const ask of asks) this.#serve(ask as Ask).catch(() => {});
      const pauseMs = Math.max(pollMs, pollMsPerMember * this.#members);
      await sleep(pauseMs, undefined, { ref: false, signal });
    }
  }

  async #serve(ask: Ask): Promise<void> {
    const { signal } = this.#ended;
    const hosts = [ask.host, this.#access.self.host] as const;
    const channel = await Channel.open<FromSource, FromLearner>(
      this.#access,
      ask,
      1,
      hosts,
      connectMs,
      signal,
    );
    // A learner that asks again has given up its earlier request.
    const earlier = [...this.#sources].filter(({ learner }) => learner === ask.learner);
    await Promise.all(earlier.map((source) => source.close()));
    const sources = this.#sources;
    const time = () => this.#stepMs;
    const source = new Source(ask.learner, channel, this.#trained, time);
    sources.add(source);
    if (this.#hosts.size === 1 && this.#hosts.has(ask.host)) prepare(this.#trained.bucketBytes);
    await source.serve();
    sources.delete(source);
    if (sources.size === 0) prepare(0);
  }
}
