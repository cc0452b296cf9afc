// The model: embeddings, transformer blocks, and a linear layer that gives a score to each possible next character.
import { arange, type Tensor } from '@ringwise/tensor';
import { Embedding, LayerNorm, Linear, Module, TransformerBlock } from '@ringwise/tensor/nn';

export interface GptSize {
  readonly layers: number;
  readonly width: number;
  readonly heads: number;
  /** How many characters the model sees at once: the longest input. */
  readonly context: number;
  /** How many different characters there are: the size of the vocabulary. */
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

  /** Returns scores for the next character, [rows · time, characters], for the input x [rows, time]. */
  forward(x: Tensor): Tensor {
    const places = arange(0, x.shape[1]!, 1, { dtype: 'int64' });
    let hidden = this.characters.forward(x).add(this.places.forward(places));
    for (const block of this.blocks) hidden = block.forward(hidden);
    const scores = this.head.forward(this.norm.forward(hidden));
    return scores.reshape([-1, scores.shape[2]!]);
  }
}
