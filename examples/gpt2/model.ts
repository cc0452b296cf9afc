// GPT-2 (Radford et al.: "Language Models are Unsupervised Multitask Learners", 2019). It saves and loads parameters
// with the names and layouts of GPT-2's checkpoints: Python's transformers can open files saved here, and files from
// there load here. Hidden layers use the exact GELU; OpenAI's weights were trained with its tanh approximation, which
// differs by less than 0.001.
import { crossEntropy, linear, noGrad, randn, type Tensor } from '@ringwise/tensor';
import { Dropout, Embedding, LayerNorm, Module, TransformerBlock } from '@ringwise/tensor/nn';

export interface Gpt2Config {
  readonly layers: number;
  readonly heads: number;
  readonly width: number;
  readonly context: number;
  readonly vocab: number;
  readonly dropout: number;
}

export class Gpt2 extends Module {
  readonly config: Gpt2Config;
  readonly tokens: Embedding;
  readonly positions: Embedding;
  readonly blocks: readonly TransformerBlock[];
  readonly norm: LayerNorm;
  readonly dropout: Dropout;

  constructor(config: Gpt2Config) {
    super();
    const { layers, heads, width, context, vocab, dropout } = config;
    this.config = config;
    this.tokens = new Embedding(vocab, width);
    this.positions = new Embedding(context, width);
    this.blocks = Array.from(
      { length: layers },
      () => new TransformerBlock(width, heads, { causal: true, dropout }),
    );
    this.norm = new LayerNorm(width);
    this.dropout = new Dropout(dropout);
    noGrad(() => {
      for (const [name, parameter] of this.namedParameters()) initialise(name, parameter, layers);
    });
  }

  /**
   * Returns scores for the next token, [rows · time, vocab], for the input x [rows, time]. The output layer shares the
   * weights of the token embedding.
   */
  forward(x: Tensor): Tensor {
    const places = this.positions.weight.narrow(0, 0, x.shape[1]!);
    let hidden = this.dropout.forward(this.tokens.forward(x).add(places));
    for (const block of this.blocks) hidden = block.forward(hidden);
    return linear(this.norm.forward(hidden), this.tokens.weight).reshape([-1, this.config.vocab]);
  }

  loss(x: Tensor, y: Tensor): Tensor {
    return crossEntropy(this.forward(x), y.reshape([-1]));
  }
}

/**
 * Draws a weight from a normal distribution with standard deviation 0.02. Divides the deviation by √(2 · layers) for
 * the two projections in each layer that add to the residual. Leaves vectors (biases, normalisations) as they are.
 */
function initialise(name: string, parameter: Tensor, layers: number): void {
  if (parameter.rank < 2) return;
  const isResidual = /\.(attention\.out_proj|mlp\.2)\.weight$/.test(name);
  parameter.copy_(randn(parameter.shape).mul(isResidual ? 0.02 / Math.sqrt(2 * layers) : 0.02));
}

/** Splits parameters into matrices and embeddings, with weight decay, and biases and normalisations, without it. */
export const decayGroups = (parameters: readonly Tensor[], weightDecay: number) => [
  { params: parameters.filter(({ rank }) => rank >= 2), weightDecay },
  { params: parameters.filter(({ rank }) => rank < 2), weightDecay: 0 },
];

const renamings: readonly [from: RegExp, to: string][] = [
  [/^tokens\./, 'wte.'],
  [/^positions\./, 'wpe.'],
  [/^norm\./, 'ln_f.'],
  [/^blocks\./, 'h.'],
  [/\.norm(\d)\./, '.ln_$1.'],
  [/\.attention\.in_proj_/, '.attn.c_attn.'],
  [/\.attention\.out_proj\./, '.attn.c_proj.'],
  [/\.mlp\.0\./, '.mlp.c_fc.'],
  [/\.mlp\.2\./, '.mlp.c_proj.'],
];
const gpt2Name = (name: string): string =>
  renamings.reduce((text, [from, to]) => text.replace(from, to), name);
/** Tells whether GPT-2 stores this weight as [in, out]; our Linear has [out, in]. */
const isTurned = (name: string): boolean => /\.c_(attn|proj|fc)\.weight$/.test(name);

/** Returns the parameters under GPT-2's names and in its layout. Weights of linear layers are copies. */
export function toGpt2(model: Gpt2): Record<string, Tensor> {
  return Object.fromEntries(
    Object.entries(model.stateDict()).map(([own, tensor]) => {
      const name = gpt2Name(own);
      const value = tensor.detach();
      return [name, isTurned(name) ? value.t().contiguous() : value];
    }),
  );
}

/** Loads parameters that have GPT-2's names, with or without the prefix "transformer.". */
export function fromGpt2(model: Gpt2, tensors: Readonly<Record<string, Tensor>>): void {
  const given: Record<string, Tensor> = {};
  for (const own of Object.keys(model.stateDict())) {
    const name = gpt2Name(own);
    const tensor = tensors[name] ?? tensors[`transformer.${name}`];
    if (tensor) given[own] = isTurned(name) ? tensor.t() : tensor;
  }
  model.loadStateDict(given);
}
