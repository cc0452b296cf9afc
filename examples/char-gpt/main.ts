// Trains a small GPT that writes text character by character, as minGPT's chargpt does, and prints a sample of its
// text.
//
//   npx tsx examples/char-gpt/main.ts                  tinyshakespeare.txt in RINGWISE_TEST_DATA, or generated text
//   npx tsx examples/char-gpt/main.ts --data FILE      any text
//   npx tsx examples/char-gpt/main.ts --quick          a smaller model on generated text; takes seconds
//   npx ringwise run --nproc-per-node 2 examples/char-gpt/main.ts      each batch divided among two processes
//
// Claim: on held-out text, the loss per character falls below 2.3 nats, with --quick below 1.6. The model learns the
// same on any number of processes that divides the batch of 16.
import { parseArgs } from 'node:util';
import { init } from '@ringwise/collectives';
import { ddp } from '@ringwise/ddp';
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
import { Gpt } from './model.ts';
import { textFrom } from './text.ts';

const flag = { type: 'boolean', default: false } as const;
const { values: args } = parseArgs({
  options: { data: { type: 'string' }, steps: { type: 'string' }, quick: flag, json: flag },
});
const text = textFrom(args.data, args.quick);

const characters = [...new Set(text)].sort();
const numbers = new Map(characters.map((character, i) => [character, i]));
const tokens = Int32Array.from(text, (character) => numbers.get(character)!);
const split = Math.floor(tokens.length * 0.9);

const size = args.quick
  ? { layers: 2, width: 64, heads: 2, context: 64, batch: 16, steps: 150, goal: 1.6, lr: 3e-3 }
  : { layers: 4, width: 128, heads: 4, context: 128, batch: 16, steps: 600, goal: 2.3, lr: 1e-3 };
const steps = args.steps ? Number(args.steps) : size.steps;

await using group = await init();
manualSeed(1);
const model = new Gpt({ ...size, characters: characters.length });
const { forward } = await ddp(model, { group });
const optimizer = new AdamW(model.parameters(), { lr: size.lr, betas: [0.9, 0.99], weightDecay: 0.1 });
const schedule = new WarmupCosineLR(optimizer, { warmupSteps: Math.ceil(steps / 20), totalSteps: steps });

/**
 * Computes the loss on random windows of the tokens `from` to `to`. All ranks draw the same batch, and rank `rank` of
 * `ranks` takes its share of the rows.
 */
function lossOn(from: number, to: number, draws = generator(7), ranks = 1, rank = 0): Tensor {
  const { context } = size;
  const batch = size.batch / ranks;
  const drawn = randint(from, to - context, [size.batch], { generator: draws }).dataSync() as BigInt64Array;
  const starts = drawn.subarray(rank * batch, (rank + 1) * batch);
  const [x, y] = [new Int32Array(batch * context), new Int32Array(batch * context)];
  for (const [row, start] of starts.entries()) {
    x.set(tokens.subarray(Number(start), Number(start) + context), row * context);
    y.set(tokens.subarray(Number(start) + 1, Number(start) + 1 + context), row * context);
  }
  return crossEntropy(forward(fromHost(x, [batch, context])), fromHost(y));
}

if (size.batch % group.size !== 0) throw new Error(`expected a number of ranks that divides ${size.batch}`);
const log = group.rank === 0 ? console.log : () => {};
const batches = generator(2);
const begin = performance.now();
for (let step = 1; step <= steps; step++) {
  scope(() => {
    const loss = lossOn(0, split, batches, group.size, group.rank);
    optimizer.zeroGrad();
    loss.backward();
    clipGradNorm(model.parameters(), 1);
    optimizer.step();
    schedule.step();
    if (step % 50 === 0) log(`step ${step}/${steps}  loss ${loss.item().toFixed(3)}`);
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
if (!(heldOut < size.goal)) throw new Error(`expected a loss below ${size.goal}, got ${heldOut}`);
