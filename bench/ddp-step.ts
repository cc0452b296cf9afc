// Measures training steps with DDP, in turns with two variants in the same processes: "alone" steps without
// any communication, and "lockstep" steps with one tiny all-reduce each. The lockstep variant shows what
// waiting for the slower rank costs by itself.
//
//   npx ringwise run --nproc-per-node 2 bench/ddp-step.ts [--job mlp|gpt] [--batch 32] [--steps 400] [--rounds 3]
//     [--alone-first]
//
// Rank 0 prints one JSON line. It has the samples or tokens per second of all ranks together with DDP, alone
// and in lockstep, and the ratio of DDP to alone, all medians of the rounds; in microseconds, the median step
// of rank 0, and the median time that a rank waits for communication at the end of backward; and every tenth
// loss of the warm-up, averaged over the ranks. Fails if the replicas are not equal at the end.
import { parseArgs } from 'node:util';
import { init } from '@ringwise/collectives';
import { assertInSync, ddp } from '@ringwise/ddp';
import { kernelsName, scope, type Tensor } from '@ringwise/tensor';
import { gpt } from './jobs/gpt.ts';
import { mlp } from './jobs/mlp.ts';
import { median } from './median.ts';

const { values: args } = parseArgs({
  options: {
    job: { type: 'string', default: 'mlp' },
    batch: { type: 'string' },
    steps: { type: 'string', default: '400' },
    rounds: { type: 'string', default: '3' },
    'alone-first': { type: 'boolean', default: false }, // the order of allocation changes times by some percent
  },
});
const jobs = { mlp, gpt };
const job = jobs[args.job as keyof typeof jobs];
const batch = Number(args.batch ?? job.batch);
const steps = Number(args.steps);

await using group = await init();
const nowUs = (): number => Number(process.hrtime.bigint()) / 1000;

class Contender {
  readonly rates: number[] = [];
  readonly stepUs: number[] = [];
  readonly #optimizer: ReturnType<typeof job.optimizer>;
  readonly #losses: ReturnType<typeof job.losses>;

  readonly #meet: () => void;

  /** Makes a contender that calls `meet` in each step, between backward and the optimiser. */
  constructor(parameters: Tensor[], forward: (x: Tensor) => Tensor, meet: () => void = () => {}) {
    this.#meet = meet;
    this.#optimizer = job.optimizer(parameters);
    this.#losses = job.losses({ rank: group.rank, ranks: group.size, batch }, forward);
  }

  /** Runs `count` steps, records their times and the rate of all ranks together, and returns every tenth loss. */
  async run(count: number): Promise<number[]> {
    const losses: number[] = [];
    await group.barrier();
    const begin = nowUs();
    let before = begin;
    for (let i = 0; i < count; i++) {
      const loss = scope(() => {
        const loss = (this.#losses.next().value as () => Tensor)();
        this.#optimizer.zeroGrad();
        loss.backward();
        this.#meet();
        this.#optimizer.step();
        return loss.item();
      });
      if (i % 10 === 0) losses.push(loss);
      const now = nowUs();
      this.stepUs.push(now - before);
      before = now;
    }
    const rate = Float64Array.of((count * batch * job.unitsPerSample * 1e6) / (before - begin));
    await group.allReduce(rate);
    this.rates.push(rate[0]!);
    return losses;
  }
}

const isAloneFirst = args['alone-first'];
const models = [job.model(), job.model()] as const;
const third = job.model();
const [net, other] = isAloneFirst ? [models[1], models[0]] : models;
const model = await ddp(net, { group });
const together = new Contender(net.parameters(), model.forward);
const alone = new Contender(other.parameters(), (x) => other.forward(x));
const few = group.alloc(256);
const meet = () => group.allReduceSync(few);
const lockstep = new Contender(third.parameters(), (x) => third.forward(x), meet);

const warmup = Math.max(20, steps >> 3);
const losses = Float64Array.from(await together.run(warmup));
await group.allReduce(losses, { op: 'avg' });
await alone.run(warmup);
await lockstep.run(warmup);
for (const { rates, stepUs } of [together, alone, lockstep]) rates.length = stepUs.length = 0;
for (let round = 0; round < Number(args.rounds); round++) {
  for (const each of isAloneFirst ? [alone, lockstep, together] : [together, lockstep, alone])
    await each.run(steps);
}
const trace = await model.trace();
await assertInSync(net, group);

if (trace !== null) {
  const ofTrack = (kind: string) =>
    trace.traceEvents.filter(({ name }) => name.startsWith(kind)).map(({ dur }) => dur!);
  const line = {
    bench: 'ddp-step',
    kernels: kernelsName(),
    job: args.job,
    ...{ ranks: group.size, batch, steps },
    [job.rateName]: median(together.rates),
    alone: median(alone.rates),
    lockstep: median(lockstep.rates),
    ratio: median(together.rates.map((rate, i) => rate / alone.rates[i]!)),
    stepUs: median(together.stepUs),
    aloneStepUs: median(alone.stepUs),
    exposedUs: median(ofTrack('wait')),
    losses: [...losses],
  };
  const short = (_: string, value: unknown) =>
    typeof value === 'number' ? Number(value.toPrecision(6)) : value;
  console.log(JSON.stringify(line, short));
}
