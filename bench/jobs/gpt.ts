// A training job: a small GPT on a text in memory, in windows that start at fixed positions.
import { arange, crossEntropy, fromHost, manualSeed, type Tensor } from '@ringwise/tensor';
import { Embedding, LayerNorm, Linear, Module, TransformerBlock } from '@ringwise/tensor/nn';
import { AdamW } from '@ringwise/tensor/optim';
import type { Job } from './job.ts';

export interface GptSizes {
  readonly time: number;
  readonly layers: number;
  readonly width: number;
  readonly heads: number;
  readonly vocab: number;
}

export class Gpt extends Module {
  readonly tokens: Embedding;
  readonly positions: Embedding;
  readonly blocks: readonly TransformerBlock[];
  readonly norm: LayerNorm;
  readonly head: Linear;
  readonly #time: number;

  constructor({ time, layers, width, heads, vocab }: GptSizes) {
    super();
    this.tokens = new Embedding(vocab, width);
    this.positions = new Embedding(time, width);
    this.blocks = Array.from({ length: layers }, () => new TransformerBlock(width, heads, { causal: true }));
    this.norm = new LayerNorm(width);
    this.head = new Linear(width, vocab, { bias: false });
    this.#time = time;
  }

  forward(x: Tensor): Tensor {
    const places = arange(0, this.#time, 1, { dtype: 'int64' });
    let hidden = this.tokens.forward(x).add(this.positions.forward(places));
    for (const block of this.blocks) hidden = block.forward(hidden);
    return this.head.forward(this.norm.forward(hidden));
  }
}

export const gptOptimizer = (parameters: Tensor[]): AdamW =>
  new AdamW(parameters, { lr: 3e-4, betas: [0.9, 0.95], weightDecay: 0.1 });

/** Generates a text with a pattern that can be learned. */
export const gptText = (vocab: number): Int32Array =>
  Int32Array.from({ length: 1 << 16 }, (_, i) => (i * i + (i >> 3)) % vocab);

/**
 * Returns the loss on `batch` windows of the text, from window number `window` on. Each window begins 37
 * characters after the one before.
 */
export function gptLoss(
  forward: (x: Tensor) => Tensor,
  text: Int32Array,
  window: number,
  batch: number,
  { time, vocab }: GptSizes,
): Tensor {
  const inputs = new Int32Array(batch * time);
  const labels = new Int32Array(batch * time);
  for (let b = 0; b < batch; b++) {
    const at = (window + b) * 37;
    for (let t = 0; t < time; t++) {
      inputs[b * time + t] = text[(at + t) % text.length]!;
      labels[b * time + t] = text[(at + t + 1) % text.length]!;
    }
  }
  const logits = forward(fromHost(inputs, [batch, time]));
  return crossEntropy(logits.reshape([batch * time, vocab]), fromHost(labels));
}

export const gptSizes: GptSizes = { time: 64, layers: 4, width: 128, heads: 4, vocab: 65 };

export const gpt: Job = {
  model: () => {
    manualSeed(1);
    return new Gpt(gptSizes);
  },
  optimizer: gptOptimizer,
  *losses({ rank, ranks, batch }, forward) {
    const text = gptText(gptSizes.vocab);
    for (let step = 0; ; step++) {
      yield () => gptLoss(forward, text, (step * ranks + rank) * batch, batch, gptSizes);
    }
  },
  batch: 16,
  unitsPerSample: gptSizes.time,
  rateName: 'tokensPerSecond',
};
