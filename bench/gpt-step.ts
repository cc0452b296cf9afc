// Measures a training step of a small GPT in one process, without compile(): 4 layers, width 128, 4 heads, 128 tokens,
// batch 8, 65 characters, AdamW.
//
//   npx tsx bench/gpt-step.ts [--steps 100] [--batch 8] [--time 128] [--layers 4] [--width 128] [--heads 4]
//     [--vocab 65]
//
// Prints one JSON line: the median step and its parts in microseconds, and tokens per second. The text repeats a short
// pattern, so the loss must fall; if it does not, the line says ok: false and the exit code is 1.
import { parseArgs } from 'node:util';
import { manualSeed } from '@ringwise/tensor';
import { Gpt, gptLoss, gptOptimizer, gptText } from './jobs/gpt.ts';
import { measureTraining } from './training-step.ts';

const number = (value: string) => ({ type: 'string', default: value }) as const;
const { values } = parseArgs({
  options: {
    steps: number('100'),
    batch: number('8'),
    time: number('128'),
    layers: number('4'),
    width: number('128'),
    heads: number('4'),
    vocab: number('65'),
  },
});
const [steps, batch, time, layers, width, heads, vocab] = [
  values.steps,
  values.batch,
  values.time,
  values.layers,
  values.width,
  values.heads,
  values.vocab,
].map(Number) as [number, number, number, number, number, number, number];

const sizes = { time, layers, width, heads, vocab };
manualSeed(1);
const model = new Gpt(sizes);
const optimizer = gptOptimizer(model.parameters());
const text = gptText(vocab);

measureTraining({
  bench: 'gpt-step',
  about: {
    ...{ batch, time, layers, width, heads },
    parameters: model.parameters().reduce((sum, { count }) => sum + count, 0),
  },
  perStep: { tokensPerSecond: batch * time },
  steps,
  optimizer,
  loss: (i) => gptLoss((x) => model.forward(x), text, i * batch, batch, sizes),
});
