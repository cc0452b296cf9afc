// One rank of bench/diloco.ts: trains the small GPT of examples/char-gpt, with DDP or apart. Rank 0 prints a JSON line
// at each evaluation. Gets its task as JSON in the first argument, and its place from the environment.
import { readFileSync } from 'node:fs';
import { init } from '@ringwise/collectives';
import { ddp } from '@ringwise/ddp';
import { type DiLoCo, diloco } from '@ringwise/elastic';
import {
  crossEntropy,
  fromHost,
  generator,
  manualSeed,
  noGrad,
  randint,
  scope,
  type Tensor,
} from '@ringwise/tensor';
import { AdamW, clipGradNorm, SGD, WarmupCosineLR } from '@ringwise/tensor/optim';
import { Gpt } from '../../examples/char-gpt/model.ts';
import { textFrom } from '../../examples/char-gpt/text.ts';

/** What a rank trains. */
export interface Task {
  readonly kind: 'ddp' | 'diloco';
  readonly steps: number;
  readonly every: number;
  readonly fragments: number;
  readonly delay: number;
  readonly mix: number;
  readonly wire: 'full' | 'bfloat16' | 'int8';
  readonly outerLr: number;
  readonly outerMomentum: number;
  /** The training ends at the first evaluation with at most this loss; null: after all steps. */
  readonly goal: number | null;
  /** The network interface whose bytes count. */
  readonly interface: string;
}

/** What rank 0 prints. */
export interface Point {
  readonly step: number;
  /** Mean over held-out text, in nats per character. */
  readonly loss: number;
  /** Bytes that rank 0's host has sent and received since the first step, with all headers. */
  readonly bytes: number;
  readonly seconds: number;
}

const size = { layers: 2, width: 64, heads: 2, context: 64 };
const batch = 16;
const lr = 3e-3;

const task = JSON.parse(process.argv[2]!) as Task;
const text = textFrom(undefined);
const characters = [...new Set(text)].sort();
const numbers = new Map(characters.map((character, i) => [character, i]));
const tokens = Int32Array.from(text, (character) => numbers.get(character)!);
const split = Math.floor(tokens.length * 0.9);

await using group = await init({ timeoutMs: 120_000 });
manualSeed(1);
const model = new Gpt({ ...size, characters: characters.length });
const inner = new AdamW(model.parameters(), { lr, betas: [0.9, 0.99], weightDecay: 0.1 });
const schedule = new WarmupCosineLR(inner, { warmupSteps: 10, totalSteps: task.steps });
let outer: DiLoCo | null = null;
if (task.kind === 'ddp') await ddp(model, { group });
else {
  const { every, fragments, delay, mix, wire, outerLr, outerMomentum: momentum } = task;
  outer = await diloco(model, {
    ...{ group, every, fragments, delay, mix, wire },
    outer: (params) => new SGD(params, { lr: outerLr, momentum, nesterov: momentum > 0 }),
  });
}

/** Returns the loss on `rows` windows of the tokens `from` to `to`. */
function lossOn(from: number, to: number, rows: number, draws: ReturnType<typeof generator>): Tensor {
  const { context } = size;
  const starts = randint(from, to - context, [rows], { generator: draws }).dataSync() as BigInt64Array;
  const [x, y] = [new Int32Array(rows * context), new Int32Array(rows * context)];
  for (const [row, start] of starts.entries()) {
    x.set(tokens.subarray(Number(start), Number(start) + context), row * context);
    y.set(tokens.subarray(Number(start) + 1, Number(start) + 1 + context), row * context);
  }
  return crossEntropy(model.forward(fromHost(x, [rows, context])), fromHost(y));
}

const counter = (name: string): number =>
  Number(readFileSync(`/sys/class/net/${task.interface}/statistics/${name}`, 'utf8'));
const bytesNow = (): number => counter('tx_bytes') + counter('rx_bytes');

const draws = generator(100 + group.rank);
const rows = Math.floor(batch / group.size);
await group.barrier();
const [bytesAtBegin, begin] = [bytesNow(), performance.now()];
for (let step = 1; step <= task.steps; step++) {
  scope(() => {
    model.zeroGrad();
    lossOn(0, split, rows, draws).backward();
    clipGradNorm(model.parameters(), 1);
    inner.step();
    schedule.step();
  });
  await outer?.step({ samples: rows });
  if (step === task.steps) await outer?.finish();
  if (step % task.every !== 0 && step !== task.steps) continue;
  const bytes = bytesNow() - bytesAtBegin;
  let isReached = false;
  if (group.rank === 0) {
    const loss = noGrad(() => scope(() => lossOn(split, tokens.length, 128, generator(7)).item()));
    const point: Point = { step, loss, bytes, seconds: (performance.now() - begin) / 1000 };
    console.log(JSON.stringify(point));
    isReached = task.goal !== null && loss <= task.goal;
  }
  if (task.goal !== null && (await group.broadcastObject(isReached, { root: 0 }))) break;
}
await outer?.close();
