// One training step of a small GPT on one process, in the eager path: 4 layers, 128 wide, 4 heads, 128 tokens, batch 8,
// 65 characters, AdamW.
//
//   npx tsx bench/gpt-step.ts [--steps 100] [--batch 8] [--time 128] [--layers 4] [--width 128] [--heads 4]
//
// Prints one JSON line: the median step and its parts in microseconds, and tokens per second. The text repeats a short
// pattern, so the loss must fall; if it does not, the line says ok: false and the exit code is 1.
import { parseArgs } from 'node:util';
import { arange, crossEntropy, fromHost, manualSeed, type Tensor } from '@ringwise/tensor';
import { Embedding, LayerNorm, Linear, Module, TransformerBlock } from '@ringwise/tensor/nn';
import { AdamW } from '@ringwise/tensor/optim';
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

class Gpt extends Module {
  readonly tokens = new Embedding(vocab, width);
  readonly positions = new Embedding(time, width);
  readonly blocks = Array.from(
    { length: layers },
    () => new TransformerBlock(width, heads, { causal: true }),
  );
  readonly norm = new LayerNorm(width);
  readonly head = new Linear(width, vocab, { bias: false });

  forward(x: Tensor): Tensor {
    const places = arange(0, time, 1, { dtype: 'int64' });
    let hidden = this.tokens.forward(x).add(this.positions.forward(places));
    for (const block of this.blocks) hidden = block.forward(hidden);
    return this.head.forward(this.norm.forward(hidden));
  }
}

manualSeed(1);
const model = new Gpt();
const optimizer = new AdamW(model.parameters(), { lr: 3e-4, betas: [0.9, 0.95], weightDecay: 0.1 });
const text = Int32Array.from({ length: 1 << 16 }, (_, i) => (i * i + (i >> 3)) % vocab);

measureTraining({
  bench: 'gpt-step',
  about: {
    ...{ batch, time, layers, width, heads },
    parameters: model.parameters().reduce((sum, { count }) => sum + count, 0),
  },
  perStep: { tokensPerSecond: batch * time },
  steps,
  optimizer,
  loss: (i) => {
    const inputs = new Int32Array(batch * time);
    const labels = new Int32Array(batch * time);
    for (let b = 0; b < batch; b++) {
      const at = (i * batch + b) * 37;
      for (let t = 0; t < time; t++) {
        inputs[b * time + t] = text[(at + t) % text.length]!;
        labels[b * time + t] = text[(at + t + 1) % text.length]!;
      }
    }
    const logits = model.forward(fromHost(inputs, [batch, time]));
    return crossEntropy(logits.reshape([batch * time, vocab]), fromHost(labels));
  },
});
