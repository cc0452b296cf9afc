// Races 8 and 9: a learner gets a copy of the state before one step in chunks, while the optimizers of the members go
// on to write it, and the averages of the steps before or after the chunks of another member. Each step is applied
// once, with its own clipping and learning rate, also where parameters are frozen, not used in each step, or tied.
import { scope } from '@ringwise/tensor';
import { Linear, Sequential } from '@ringwise/tensor/nn';
import { Adam, clipGradNorm, StepLR } from '@ringwise/tensor/optim';
import { describe, expect, it } from 'vitest';
import { Trained } from '../../../../src/job/trained.ts';
import type { Begin, Channel, FromLearner, FromSource } from '../../../../src/learners/channel.ts';
import { Pool } from '../../../../src/learners/pool.ts';
import { Replica } from '../../../../src/learners/replica.ts';
import { Source } from '../../../../src/learners/source.ts';
import { ElasticLoader } from '../../../../src/ledger/elastic-loader.ts';
import { Ledger } from '../../../../src/ledger/ledger.ts';
import { flat, lossOf, makeNet, makeTiedNet } from '../../../support/net.ts';

/** One process. */
class Process {
  readonly net: Sequential;
  readonly all: Sequential;
  readonly optimizer: Adam;
  readonly schedule: StepLR;
  readonly trained: Trained;

  constructor(make: typeof makeNet) {
    this.net = make(3);
    this.all = new Sequential(this.net, new Linear(4, 4).requiresGrad_(false));
    this.optimizer = new Adam(this.net.parameters(), { lr: 0.02 });
    this.schedule = new StepLR(this.optimizer, { stepSize: 2, gamma: 0.5 });
    this.trained = new Trained({
      ...{ source: this.all, optimizer: this.optimizer, scaler: null, generators: [], revive: undefined },
      ...{ hook: null, model: null as never, extra: { schedule: this.schedule } },
      loader: new ElasticLoader([], new Ledger(1_000, { globalBatch: 8, microBatch: 8 }), {}),
    });
  }

  /** Takes a step on samples that are the same on all members, as are their averages. */
  step(): void {
    const { finalSteps } = this.trained;
    this.trained.begin();
    this.net.zeroGrad();
    scope(() => lossOf((x) => this.net.forward(x), 8 * finalSteps, 8).backward());
    // A parameter that was not used in this step.
    if (finalSteps % 3 === 1) this.net.parameters()[2]!.unbindGrad();
    this.trained.apply(() => clipGradNorm(this.net.parameters(), 0.05));
    this.schedule.step();
  }
}

/** A connection from a member to the learner whose messages arrive when the test says so. */
class Link implements Pick<Channel<FromSource, FromLearner>, 'send' | 'receive' | 'close'> {
  readonly #begin: Begin;
  #hasBegun = false;
  readonly #sending: {
    readonly frame: FromSource;
    readonly bytes: Uint8Array;
    readonly arrived: () => void;
  }[] = [];

  constructor(begin: Begin) {
    this.#begin = begin;
  }

  readonly receive = async () => {
    if (this.#hasBegun) await new Promise<never>(() => {});
    this.#hasBegun = true;
    return { frame: this.#begin, bytes: new Uint8Array(0), isIntact: () => true };
  };

  readonly send = (frame: FromSource, bytes = new Uint8Array(0)): Promise<void> =>
    new Promise((arrived) => {
      this.#sending.push({ frame, bytes, arrived });
    });

  readonly close = async () => {};

  /** Number of messages on their way. */
  get sending(): number {
    return this.#sending.length;
  }

  /** Lets the next message arrive, with the bytes that its memory has now. False without one. */
  async arrive(take: (frame: FromSource, bytes: Uint8Array) => Promise<void>): Promise<boolean> {
    await new Promise((resolve) => setImmediate(resolve));
    const sent = this.#sending.shift();
    if (sent === undefined) return false;
    const bytes = sent.bytes.slice();
    sent.arrived();
    await take(sent.frame, bytes);
    return true;
  }
}

const at = 2;
const steps = 9;
const count = 2;

interface Scene {
  /** Lets a message of a member arrive. */
  readonly arrive: (member: number) => Promise<boolean>;
  readonly sending: (member: number) => number;
  readonly step: () => void;
}

/** Trains two members, of which a learner gets the state as `schedule` says, and checks the learner's state. */
async function check(make: typeof makeNet, schedule: (scene: Scene) => Promise<void>): Promise<void> {
  const [learner, ...members] = [new Process(make), new Process(make), new Process(make)] as const;
  // The learner begins with other values.
  for (const parameter of learner.all.parameters()) (parameter.dataSync() as Float32Array).fill(7);
  const replica = new Replica(learner.trained, count, at, new Pool(8));
  const links = members.map((member, share) => {
    const link = new Link({ kind: 'begin', at, share, of: count });
    const source = new Source(
      'learner',
      link as unknown as Channel<FromSource, FromLearner>,
      member.trained,
      () => 1,
    );
    member.trained.observer = source;
    void source.serve();
    return link;
  });
  await new Promise((resolve) => setImmediate(resolve));
  const states: Float32Array[] = [];
  const rates: number[] = [];
  const scene: Scene = {
    arrive: async (member) => {
      const step = replica.step;
      const hasArrived = await links[member]!.arrive((frame, bytes) => replica.take(member, frame, bytes));
      if (replica.step > step) expect(flat(learner.all)).toEqual(states[replica.step - 1]);
      return hasArrived;
    },
    sending: (member) => links[member]!.sending,
    step: () => {
      rates.push(members[0]!.optimizer.lr);
      for (const member of members) member.step();
      states.push(flat(members[0]!.all));
    },
  };
  await schedule(scene);
  expect(members[0]!.trained.finalSteps).toBe(steps);
  expect(replica.step).toBe(steps);
  expect(flat(learner.all)).toEqual(states.at(-1));
  expect(learner.optimizer.lr).toBe(rates.at(-1));
  expect(replica.isCompared).toBe(true);
  expect(replica.differingBytes).toBe(0);
}

const all = async ({ arrive }: Scene, member: number) => {
  while (await arrive(member));
};
const train = ({ step }: Scene) => {
  for (let k = 0; k < steps; k++) step();
};

describe.each([
  ['parameters of their own', makeNet],
  ['tied parameters', makeTiedNet],
])('a network with %s', (_, make) => {
  it('chunks arrive when the optimizers have long written what they were copied from', () =>
    check(make, async (scene) => {
      train(scene);
      await all(scene, 0);
      await all(scene, 1);
    }));

  it('the averages of one member are there before the chunks of the other one', () =>
    check(make, async (scene) => {
      train(scene);
      await all(scene, 1);
      await all(scene, 0);
    }));

  it('messages of both arrive in turns, some of them before the next step', () =>
    check(make, async (scene) => {
      for (let k = 0; k < steps; k++) {
        scene.step();
        if (k % 2 === 0) await scene.arrive(k % 4 === 0 ? 0 : 1);
      }
      for (let left = true; left; ) {
        const second = await scene.arrive(1);
        const first = await scene.arrive(0);
        left = first || second;
      }
    }));

  it('each message arrives at once', () =>
    check(make, async (scene) => {
      for (let k = 0; k < steps; k++) {
        scene.step();
        await all(scene, k % 2);
        await all(scene, 1 - (k % 2));
      }
    }));

  it('a member whose training leaves no time for other work sends its messages without waiting for each', () =>
    check(make, async (scene) => {
      train(scene);
      // 'hello', 'snapshot' and the steps; one member also has a chunk.
      for (const member of [0, 1]) expect(scene.sending(member)).toBeGreaterThanOrEqual(2 + steps - at);
      await all(scene, 0);
      await all(scene, 1);
    }));
});
