"""Writes a tiny Llama in the layout of Hugging Face, with what PyTorch computes from it, into the folder tiny.

    python3 make_tiny.py

Needs torch and safetensors. The architecture is that of Hugging Face's LlamaForCausalLM (Touvron et al., 2023, with the
grouped-query attention of Llama 2 and 3), written here in plain PyTorch with the same names of parameters. The weights
are random; the file has them in bfloat16, as published checkpoints do. Logits are computed in float32 from those.
"""
import json
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": 64,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-5,
    "rope_theta": 500000.0,
    "rope_scaling": None,
    "attention_bias": False,
    "mlp_bias": False,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
HEADS, GROUPS = CONFIG["num_attention_heads"], CONFIG["num_key_value_heads"]
HIDDEN, INNER = CONFIG["hidden_size"], CONFIG["intermediate_size"]
WIDTH = HIDDEN // HEADS


def linear(ins, outs):
    return nn.Linear(ins, outs, bias=False)


def rotate_half(x):
    a, b = x.chunk(2, dim=-1)
    return torch.cat([-b, a], dim=-1)


def rotated(x):
    """Turns element i with element i + WIDTH / 2 of each head [batch, heads, time, WIDTH]."""
    rates = CONFIG["rope_theta"] ** -(torch.arange(0, WIDTH, 2).float() / WIDTH)
    angles = torch.arange(x.shape[2]).float()[:, None] * rates
    angles = torch.cat([angles, angles], dim=-1)
    return x * angles.cos() + rotate_half(x) * angles.sin()


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q_proj = linear(HIDDEN, HEADS * WIDTH)
        self.k_proj = linear(HIDDEN, GROUPS * WIDTH)
        self.v_proj = linear(HIDDEN, GROUPS * WIDTH)
        self.o_proj = linear(HEADS * WIDTH, HIDDEN)

    def forward(self, x):
        batch, time, _ = x.shape
        q, k, v = (p(x).view(batch, time, -1, WIDTH).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj))
        q, k = rotated(q), rotated(k)
        k, v = (each.repeat_interleave(HEADS // GROUPS, dim=1) for each in (k, v))
        scores = q @ k.transpose(2, 3) / WIDTH**0.5
        scores = scores.masked_fill(torch.ones(time, time).triu(1).bool(), float("-inf"))
        mixed = scores.softmax(-1) @ v
        return self.o_proj(mixed.transpose(1, 2).reshape(batch, time, -1))


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate_proj = linear(HIDDEN, INNER)
        self.up_proj = linear(HIDDEN, INNER)
        self.down_proj = linear(INNER, HIDDEN)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(HIDDEN))

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.square().mean(-1, keepdim=True) + CONFIG["rms_norm_eps"]))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.self_attn = Attention()
        self.mlp = Mlp()
        self.input_layernorm = Norm()
        self.post_attention_layernorm = Norm()

    def forward(self, x):
        x = x + self.self_attn(self.input_layernorm(x))
        return x + self.mlp(self.post_attention_layernorm(x))


class Body(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed_tokens = nn.Embedding(CONFIG["vocab_size"], HIDDEN)
        self.layers = nn.ModuleList(Layer() for _ in range(CONFIG["num_hidden_layers"]))
        self.norm = Norm()


class Llama(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = Body()
        self.lm_head = linear(HIDDEN, CONFIG["vocab_size"])

    def forward(self, tokens):
        x = self.model.embed_tokens(tokens)
        for layer in self.model.layers:
            x = layer(x)
        return self.lm_head(self.model.norm(x))


@torch.no_grad()
def generate(model, tokens, count):
    """Continues the tokens with the most probable ones. Returns all, and the least lead of a first over a second."""
    leads = []
    for _ in range(count):
        best = model(tokens)[:, -1].topk(2, dim=-1)
        leads.append((best.values[:, 0] - best.values[:, 1]).min().item())
        tokens = torch.cat([tokens, best.indices[:, :1]], dim=1)
    return tokens, min(leads)


if __name__ == "__main__":
    torch.manual_seed(1)
    model = Llama()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            # Larger than at the start of a training, so that attention and gates matter for the logits.
            values = 1 + 0.2 * torch.randn_like(parameter) if name.endswith("norm.weight") else parameter * 2
            parameter.copy_(values.bfloat16())
    tokens = torch.randint(CONFIG["vocab_size"], (2, 12))
    generated, lead = generate(model, tokens[:1], 20)
    if lead < 1e-2:
        raise SystemExit(f"two tokens are nearly equally probable ({lead}); take another seed")
    folder = Path(__file__).parent / "tiny"
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(CONFIG, indent=2) + "\n")
    weights = {name: value.bfloat16() for name, value in model.state_dict().items()}
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    reference = {"tokens": tokens, "logits": model(tokens).detach(), "generated": generated}
    save_file(reference, folder / "reference.safetensors")
