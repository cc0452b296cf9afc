// Llama (Touvron et al., 2023): RMSNorm before each part, rotary positions, attention in which several heads of queries
// share keys and values, and a gated MLP (SwiGLU). Parameters have the names of Hugging Face's LlamaForCausalLM, so
// its checkpoints load as they are. Their rotary pairs are i and i + width / 2, which is the default of applyRotary();
// Meta's own files have neighbours as pairs, and other names.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  applyRotary,
  arange,
  cat,
  linear,
  rotaryEmbedding,
  scaledDotProductAttention,
  scope,
  type Tensor,
} from '@ringwise/tensor';
import { Embedding, Linear, Module, ModuleList, RMSNorm } from '@ringwise/tensor/nn';
import { loadSafetensors } from '@ringwise/tensor/safetensors';

/** The part of config.json that the model depends on. */
export interface LlamaConfig {
  readonly vocab_size: number;
  readonly hidden_size: number;
  readonly intermediate_size: number;
  readonly num_hidden_layers: number;
  readonly num_attention_heads: number;
  readonly num_key_value_heads: number;
  readonly rms_norm_eps: number;
  readonly rope_theta: number;
  readonly tie_word_embeddings: boolean;
}

/** Keys and values [batch, groups, time, width] of the tokens that a layer has seen. */
type Seen = readonly [keys: Tensor, values: Tensor];
type Rotary = readonly [cos: Tensor, sin: Tensor];

const plain = (ins: number, outs: number): Linear => new Linear(ins, outs, { bias: false });

class Attention extends Module {
  readonly width: number;
  readonly q_proj: Linear;
  readonly k_proj: Linear;
  readonly v_proj: Linear;
  readonly o_proj: Linear;

  constructor({ hidden_size, num_attention_heads, num_key_value_heads }: LlamaConfig) {
    super();
    this.width = hidden_size / num_attention_heads;
    this.q_proj = plain(hidden_size, hidden_size);
    this.k_proj = plain(hidden_size, num_key_value_heads * this.width);
    this.v_proj = plain(hidden_size, num_key_value_heads * this.width);
    this.o_proj = plain(hidden_size, hidden_size);
  }

  /** Takes x [batch, time, hidden], and what was seen before it. Returns the same shape, and all that is seen now. */
  forward([x, [cos, sin], before]: readonly [Tensor, Rotary, Seen | null]): readonly [Tensor, Seen] {
    const [batch, time] = x.shape as [number, number];
    const heads = (projection: Linear): Tensor =>
      projection.forward(x).reshape([batch, time, -1, this.width]).transpose(1, 2);
    const q = applyRotary(heads(this.q_proj), cos, sin);
    const [own, values] = [applyRotary(heads(this.k_proj), cos, sin), heads(this.v_proj)];
    const k = before ? cat([before[0], own], 2) : own;
    const v = before ? cat([before[1], values], 2) : values;
    // A single token after others sees all of them.
    const mixed = scaledDotProductAttention(q, k, v, { causal: before === null, enableGqa: true });
    return [this.o_proj.forward(mixed.transpose(1, 2).reshape([batch, time, -1])), [k, v]];
  }
}

class Mlp extends Module {
  readonly gate_proj: Linear;
  readonly up_proj: Linear;
  readonly down_proj: Linear;

  constructor({ hidden_size, intermediate_size }: LlamaConfig) {
    super();
    this.gate_proj = plain(hidden_size, intermediate_size);
    this.up_proj = plain(hidden_size, intermediate_size);
    this.down_proj = plain(intermediate_size, hidden_size);
  }

  forward(x: Tensor): Tensor {
    return this.down_proj.forward(this.gate_proj.forward(x).silu().mul(this.up_proj.forward(x)));
  }
}

class Layer extends Module {
  readonly self_attn: Attention;
  readonly mlp: Mlp;
  readonly input_layernorm: RMSNorm;
  readonly post_attention_layernorm: RMSNorm;

  constructor(config: LlamaConfig) {
    super();
    const norm = () => new RMSNorm(config.hidden_size, { eps: config.rms_norm_eps });
    this.self_attn = new Attention(config);
    this.mlp = new Mlp(config);
    this.input_layernorm = norm();
    this.post_attention_layernorm = norm();
  }

  forward([x, rotary, before]: readonly [Tensor, Rotary, Seen | null]): readonly [Tensor, Seen] {
    const [mixed, seen] = this.self_attn.forward([this.input_layernorm.forward(x), rotary, before]);
    const heard = x.add(mixed);
    return [heard.add(this.mlp.forward(this.post_attention_layernorm.forward(heard))), seen];
  }
}

class Body extends Module {
  readonly embed_tokens: Embedding;
  readonly layers: ModuleList<Layer>;
  readonly norm: RMSNorm;

  constructor(config: LlamaConfig) {
    super();
    this.embed_tokens = new Embedding(config.vocab_size, config.hidden_size);
    this.layers = new ModuleList(Array.from({ length: config.num_hidden_layers }, () => new Layer(config)));
    this.norm = new RMSNorm(config.hidden_size, { eps: config.rms_norm_eps });
  }
}

export class Llama extends Module {
  readonly config: LlamaConfig;
  readonly model: Body;
  /** Null if the output layer shares the weights of the token embedding. */
  readonly lm_head: Linear | null;

  constructor(config: LlamaConfig) {
    super();
    this.config = config;
    this.model = new Body(config);
    this.lm_head = config.tie_word_embeddings ? null : plain(config.hidden_size, config.vocab_size);
  }

  /** Returns scores for the next token, [batch, time, vocab], for the tokens [batch, time]. */
  forward(tokens: Tensor): Tensor {
    return this.continued(tokens, null)[0];
  }

  /**
   * Does what forward() does for the first tokens, with null, or for one token [batch, 1] that follows those of `seen`.
   * Also returns what is seen then.
   */
  continued(tokens: Tensor, seen: readonly Seen[] | null): [scores: Tensor, seen: Seen[]] {
    if (seen && tokens.shape[1] !== 1) throw new Error(`expected one token, got ${tokens.shape[1]}`);
    const { hidden_size, num_attention_heads, rope_theta } = this.config;
    const from = seen?.[0]?.[0].shape[2] ?? 0;
    const positions = arange(from, from + tokens.shape[1]!);
    const rotary = rotaryEmbedding(positions, hidden_size / num_attention_heads, { base: rope_theta });
    let x = this.model.embed_tokens.forward(tokens);
    const all: Seen[] = [];
    for (const [i, layer] of [...this.model.layers].entries()) {
      const [out, own] = layer.forward([x, rotary, seen?.[i] ?? null]);
      all.push(own);
      x = out;
    }
    const normed = this.model.norm.forward(x);
    return [this.lm_head?.forward(normed) ?? linear(normed, this.model.embed_tokens.weight), all];
  }
}

/** Loads a model from a folder with config.json and model.safetensors. Weights become float32. */
export async function loadLlama(folder: string): Promise<Llama> {
  const config = JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8')) as LlamaConfig &
    Readonly<Record<string, unknown>>;
  const needed = { model_type: 'llama', hidden_act: 'silu' };
  for (const [name, value] of Object.entries(needed))
    if (config[name] !== value)
      throw new Error(`${folder}: expected ${name} '${value}', got '${config[name]}'`);
  for (const name of ['rope_scaling', 'attention_bias', 'mlp_bias'])
    if (config[name]) throw new Error(`${folder}: ${name} is not part of this example`);
  const model = new Llama(config);
  await scope(async () => {
    const all = Object.entries(await loadSafetensors(join(folder, 'model.safetensors')));
    // Old files also have the rates of the rotary positions, which follow from the config.
    model.loadStateDict(Object.fromEntries(all.filter(([name]) => !name.endsWith('.inv_freq'))));
  });
  return model;
}
