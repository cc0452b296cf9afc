// Trains an LSTM that predicts a text character by character. Each row of the batch is a piece of the text, which the
// network reads from its beginning to its end: the states at the end of one step are those at the start of the next
// (truncated backpropagation through time, Williams and Peng, 1990).
//
//   npx ringwise run --nproc-per-node 2 examples/lstm-text.ts                  made-up sentences
//   npx ringwise run --nproc-per-node 2 examples/lstm-text.ts --data FILE      any text, such as tinyshakespeare.txt
//   … --steps 200      training steps, from 1 on
//   … --json           one JSON line at the end
//
// The ranks share the rows, at most 16. Claim: on text that it has not read, the loss falls at least 0.5 nats below the
// unigram entropy, which is the loss of knowing how frequent each character is; all ranks end with the same bits. With
// fewer steps than 200, the second part only.
import { init } from '@ringwise/collectives';
import { ddp, inSync } from '@ringwise/ddp';
import { reportMetrics } from '@ringwise/launch';
import {
  crossEntropy,
  fromHost,
  manualSeed,
  multinomial,
  noGrad,
  scope,
  softmax,
  type Tensor,
} from '@ringwise/tensor';
import { Embedding, Linear, LSTM, Module } from '@ringwise/tensor/nn';
import { Adam, clipGradNorm } from '@ringwise/tensor/optim';
import { textFrom } from './char-gpt/text.ts';
import { readOptions, whole } from './options.ts';

const args = readOptions(import.meta.url, {
  data: { type: 'string' },
  steps: { type: 'string', default: '200' },
  json: { type: 'boolean', default: false },
});
const steps = whole('--steps', args.steps);
const [batch, window, embedded, width] = [16, 32, 32, 128];

const text = textFrom(args.data);
const characters = [...new Set(text)].sort();
const numbers = new Map(characters.map((character, i) => [character, i]));
const tokens = Int32Array.from(text, (character) => numbers.get(character)!);
const split = Math.floor(tokens.length * 0.9);
if (tokens.length - split <= batch * window)
  throw new Error(`expected a text of more than ${10 * batch * window} characters, got ${tokens.length}`);

type States = readonly [h: Tensor, c: Tensor];

class CharLstm extends Module {
  readonly embedding = new Embedding(characters.length, embedded);
  readonly lstm = new LSTM(embedded, width, { batchFirst: true });
  readonly head = new Linear(width, characters.length);

  /** Takes x [rows, time]. Returns scores for the next character, [rows · time, characters], and the last states. */
  forward([x, states]: readonly [Tensor, States | null]): readonly [Tensor, States] {
    const [outputs, last] = this.lstm.forward(this.embedding.forward(x), states);
    return [this.head.forward(outputs.reshape([-1, width])), last];
  }
}

/** Returns inputs [rows, window] and labels for rows `first` to `end`. Row r reads piece r of the tokens. */
function batchAt(own: Int32Array, step: number, first: number, end: number): [x: Tensor, y: Tensor] {
  const piece = Math.floor((own.length - 1) / batch);
  const at = (step % Math.floor(piece / window)) * window;
  const rows = Array.from({ length: end - first }, (_, i) => (first + i) * piece + at);
  const read = (shift: number) =>
    Int32Array.from(rows.flatMap((start) => [...own.subarray(start + shift, start + shift + window)]));
  return [fromHost(read(0), [rows.length, window]), fromHost(read(1))];
}

/** Returns the loss on `own` of a model that knows the frequencies of the characters in `known`, and nothing else. */
function unigramLoss(known: Int32Array, own: Int32Array): number {
  const counts = new Float64Array(characters.length).fill(1); // so that no character is impossible
  for (const token of known) counts[token]!++;
  const total = counts.reduce((a, b) => a + b);
  return own.reduce((sum, token) => sum - Math.log(counts[token]! / total), 0) / own.length;
}

await using group = await init();
const { rank, size } = group;
if (size > batch) throw new Error(`expected at most ${batch} ranks, got ${size}`);
const log = rank === 0 ? console.log : () => {};
manualSeed(1);
const net = new CharLstm();
const model = await ddp(net, { group });
const optimizer = new Adam(net.parameters(), { lr: 5e-3 });
const [train, heldOut] = [tokens.subarray(0, split), tokens.subarray(split)];
const [first, end] = [rank, rank + 1].map((r) => Math.floor((r * batch) / size)) as [number, number];
const stepsOfPiece = Math.floor((train.length - 1) / batch / window);

let states: States | null = null;
for (let step = 0; step < steps; step++) {
  const before: States | null = step % stepsOfPiece === 0 ? null : states; // every pass over the text starts anew
  const after: States = scope(() => {
    const [x, y] = batchAt(train, step, first, end);
    const [scores, [h, c]] = model.forward([x, before]);
    const last = [h.detach(), c.detach()] as const; // gradients do not go into the step before
    const loss = crossEntropy(scores, y);
    const value = loss.item();
    optimizer.zeroGrad();
    model.backward(loss, { weight: end - first });
    clipGradNorm(net.parameters(), 1);
    optimizer.step();
    reportMetrics({ step, steps, loss: value, samples: end - first, ddp: model.statistics() });
    if ((step + 1) % 50 === 0) log(`step ${step + 1}/${steps}  loss ${value.toFixed(3)}`);
    return last;
  });
  for (const state of states ?? []) state.dispose();
  states = after;
}

/** Returns the mean loss on the held-out text, which the network reads from its beginning to its end. */
function evaluate(): number {
  let own: States | null = null;
  const count = Math.min(20, Math.floor((heldOut.length - 1) / batch / window));
  let sum = 0;
  for (let step = 0; step < count; step++) {
    const [x, y] = batchAt(heldOut, step, 0, batch);
    const [scores, last]: readonly [Tensor, States] = net.forward([x, own]);
    sum += crossEntropy(scores, y).item();
    own = last;
  }
  return sum / count;
}

/** Returns `prompt` continued by `count` characters. The network reads each character once: its states remember. */
function write(prompt: string, count: number): string {
  let written = prompt;
  let own: States | null = null;
  for (let i = 0; i < count + prompt.length - 1; i++) {
    const x = fromHost(Int32Array.of(numbers.get(written[i]!) ?? 0), [1, 1]);
    const [scores, last]: readonly [Tensor, States] = net.forward([x, own]);
    own = last;
    if (i >= prompt.length - 1) written += characters[multinomial(softmax(scores.div(0.8)), 1).item()];
  }
  return written;
}

log(noGrad(() => scope(() => write('T', 200))));
const loss = noGrad(() => scope(evaluate));
const unigram = unigramLoss(train, heldOut);
const losses = await group.allGatherObject(loss);
const isInSync = (await inSync(net, group)) && losses.every((other) => other === loss);
log(`loss ${loss.toFixed(3)} on held-out text, unigram entropy ${unigram.toFixed(3)}, in sync: ${isInSync}`);
if (args.json) log(JSON.stringify({ loss, unigram, steps, ranks: size, isInSync }));
if (!isInSync) throw new Error(`the ranks differ: losses ${losses.join(', ')}`);
if (steps >= 200 && !(loss < unigram - 0.5))
  throw new Error(`expected a loss below ${unigram - 0.5}, got ${loss}`);
