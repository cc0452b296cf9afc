// Embeddings, blocks, and a score for each character that may come next.
import { arange, type Tensor } from '@ringwise/tensor';
import { Embedding, LayerNorm, Linear, Module, TransformerBlock } from '@ringwise/tensor/nn';

export interface GptSize {
  readonly layers: number;
  readonly width: number;
  readonly heads: number;
  /** Characters that it sees at once. */
  readonly context: number;
  /** Different ones. */
  readonly characters: number;
}

export class Gpt extends Module {
  readonly characters: Embedding;
  readonly places: Embedding;
  readonly blocks: readonly TransformerBlock[];
  readonly norm: LayerNorm;
  readonly head: Linear;

  constructor({ layers, width, heads, context, characters }: GptSize) {
    super();
    this.characters = new Embedding(characters, width);
    this.places = new Embedding(context, width);
    this.blocks = Array.from({ length: layers }, () => new TransformerBlock(width, heads, { causal: true }));
    this.norm = new LayerNorm(width);
    this.head = new Linear(width, characters, { bias: false });
  }

  /** Scores [rows · time, characters] of what comes next, for x [rows, time]. */
  forward(x: Tensor): Tensor {
    const places = arange(0, x.shape[1]!, 1, { dtype: 'int64' });
    let hidden = this.characters.forward(x).add(this.places.forward(places));
    for (const block of this.blocks) hidden = block.forward(hidden);
    const scores = this.head.forward(this.norm.forward(hidden));
    return scores.reshape([-1, scores.shape[2]!]);
  }
}
