// Trains a small GPT that writes text character by character, as minGPT's chargpt does, and prints a sample of its
// text.
//
//   npx tsx examples/char-gpt/main.ts                  made-up sentences; half a minute on two cores
//   npx tsx examples/char-gpt/main.ts --data FILE      any text, such as tinyshakespeare.txt
//   npx tsx examples/char-gpt/main.ts --quick          a smaller model on made-up sentences; takes seconds
//   npx ringwise run --nproc-per-node 2 examples/char-gpt/main.ts      each batch divided among two processes
//   … --steps 600      training steps, from 1 on; after few the sample is noise
//   … --json           one JSON line at the end
//
// Claim: with the default number of steps, the loss per character on held-out text falls below 0.6 nats for sentences,
// below 1.6 with --quick, and below 2.3 for a text of 1 MB such as tinyshakespeare. The model learns the same on any
// number of processes up to 16, the rows of a batch.
import { init } from '@ringwise/collectives';
import { ddp } from '@ringwise/ddp';
import { reportMetrics } from '@ringwise/launch';
import {
  crossEntropy,
  fromHost,
  generator,
  manualSeed,
  multinomial,
  noGrad,
  randint,
  scope,
  softmax,
  type Tensor,
} from '@ringwise/tensor';
import { AdamW, clipGradNorm, WarmupCosineLR } from '@ringwise/tensor/optim';
import { readOptions, whole } from '../options.ts';
import { Gpt } from './model.ts';
import { textFrom } from './text.ts';

const flag = { type: 'boolean', default: false } as const;
const args = readOptions(import.meta.url, {
  ...{ data: { type: 'string' }, steps: { type: 'string' }, quick: flag, json: flag },
});
const text = textFrom(args.data);

const characters = [...new Set(text)].sort();
const numbers = new Map(characters.map((character, i) => [character, i]));
const tokens = Int32Array.from(text, (character) => numbers.get(character)!);
const split = Math.floor(tokens.length * 0.9);

const size = args.quick
  ? { layers: 2, width: 64, heads: 2, context: 64, batch: 16, steps: 150, goal: 1.6, lr: 3e-3 }
  : {
      layers: 4,
      width: 128,
      heads: 4,
      context: 128,
      batch: 16,
      steps: 600,
      goal: args.data ? 2.3 : 0.6,
      lr: 1e-3,
    };
const steps = whole('--steps', args.steps ?? String(size.steps));
if (Math.min(split, tokens.length - split) <= size.context)
  throw new Error(`expected a text of more than ${10 * size.context} characters, got ${tokens.length}`);

await using group = await init();
manualSeed(1);
const model = new Gpt({ ...size, characters: characters.length });
const wrapped = await ddp(model, { group });
const optimizer = new AdamW(model.parameters(), { lr: size.lr, betas: [0.9, 0.99], weightDecay: 0.1 });
const schedule = new WarmupCosineLR(optimizer, {
  warmupSteps: Math.floor(steps / 20),
  totalSteps: steps,
});

/** Computes the loss on rows `first` to `end` of a batch of random windows of the tokens `from` to `to`. */
function lossOn(from: number, to: number, draws = generator(7), first = 0, end = size.batch): Tensor {
  const { context } = size;
  const drawn = randint(from, to - context, [size.batch], { generator: draws }).dataSync() as BigInt64Array;
  const starts = drawn.subarray(first, end);
  const [x, y] = [new Int32Array(starts.length * context), new Int32Array(starts.length * context)];
  for (const [row, start] of starts.entries()) {
    x.set(tokens.subarray(Number(start), Number(start) + context), row * context);
    y.set(tokens.subarray(Number(start) + 1, Number(start) + 1 + context), row * context);
  }
  return crossEntropy(wrapped.forward(fromHost(x, [starts.length, context])), fromHost(y));
}

if (group.size > size.batch) throw new Error(`expected at most ${size.batch} ranks, got ${group.size}`);
// All ranks draw the same batches, and each takes its share of the rows. Shares may differ by a row: they are weights.
const [first, end] = [group.rank, group.rank + 1].map((rank) => Math.floor((rank * size.batch) / group.size));
const rows = end! - first!;
const log = group.rank === 0 ? console.log : () => {};
const batches = generator(2);
const begin = performance.now();
for (let step = 1; step <= steps; step++) {
  scope(() => {
    const loss = lossOn(0, split, batches, first, end);
    const value = loss.item();
    optimizer.zeroGrad();
    if (size.batch % group.size === 0) loss.backward();
    else wrapped.backward(loss, { weight: rows });
    clipGradNorm(model.parameters(), 1);
    optimizer.step();
    schedule.step();
    reportMetrics({ step, steps, loss: value, samples: rows, ddp: wrapped.statistics() });
    if (step % 50 === 0) log(`step ${step}/${steps}  loss ${value.toFixed(3)}`);
  });
}
const tokensPerSecond = Math.round((steps * size.batch * size.context * 1000) / (performance.now() - begin));

/** Returns `prompt` continued to `count` characters. Draws one character at a time from the model's scores. */
function write(prompt: string, count: number): string {
  const written = Array.from(prompt, (character) => numbers.get(character) ?? 0);
  while (written.length < count) {
    scope(() => {
      const seen = Int32Array.from(written.slice(-size.context));
      const scores = model.forward(fromHost(seen, [1, seen.length])).at(-1);
      written.push(multinomial(softmax(scores.div(0.8)), 1).item());
    });
  }
  return written.map((number) => characters[number]).join('');
}
log(noGrad(() => write('\n', 300)));
const heldOut = noGrad(() => scope(() => lossOn(split, tokens.length).item()));
log(`loss ${heldOut.toFixed(3)} on text it has not seen, ${tokensPerSecond} characters/s`);
if (args.json) log(JSON.stringify({ loss: heldOut, steps, ranks: group.size, tokensPerSecond }));
const goal = steps < size.steps ? Number.POSITIVE_INFINITY : size.goal; // fewer steps promise nothing
if (!(heldOut < goal)) throw new Error(`expected a loss below ${goal}, got ${heldOut}`);
