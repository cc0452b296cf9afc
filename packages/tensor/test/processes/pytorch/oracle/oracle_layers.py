"""The layers of @ringwise/tensor/nn, made of PyTorch's. Arguments are those of the TypeScript constructors."""
import torch
from torch import nn

import oracle_sequences
from oracle_ops import SNAKE, options

NAMES = {
    **SNAKE,
    "paddingIdx": "padding_idx",
    "scaleGradByFreq": "scale_grad_by_freq",
    "trackRunningStats": "track_running_stats",
    "affine": "affine",
    "numFeatures": "num_features",
}


def named(o):
    return {NAMES.get(name, name): value for name, value in (o or {}).items()}


def of(cls, **renamed):
    """Returns a constructor of `cls` whose last argument may be an object of options."""

    def make(*args):
        args = list(args)
        o = args.pop() if args and isinstance(args[-1], dict) else {}
        return cls(*args, **{renamed.get(name, name): value for name, value in named(o).items()})

    return make


class Attention(nn.Module):
    """MultiHeadAttention(width, heads, options), with batch first and without weights in the result."""

    def __init__(self, width, heads, o=None):
        super().__init__()
        o = dict(o or {})
        self.causal = o.pop("causal", False)
        inner = nn.MultiheadAttention(width, heads, batch_first=True, **o)
        for name in ("in_proj_weight", "in_proj_bias"):
            self.register_parameter(name, getattr(inner, name))
        self.out_proj = inner.out_proj
        self.heads = heads

    def forward(self, x, memory=None, o=None):
        memory = x if memory is None else memory
        mask = (o or {}).get("mask")
        width = x.shape[-1]
        weights = self.in_proj_weight.split(width)
        biases = self.in_proj_bias.split(width) if self.in_proj_bias is not None else [None] * 3
        parts = [nn.functional.linear(a, w, b) for a, w, b in zip((x, memory, memory), weights, biases)]
        q, k, v = (a.unflatten(-1, (self.heads, -1)).transpose(-2, -3) for a in parts)
        out = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=self.causal)
        return self.out_proj(out.transpose(-2, -3).flatten(-2))


class Block(nn.Module):
    """TransformerBlock(width, heads, options)."""

    def __init__(self, width, heads, o=None):
        super().__init__()
        o = o or {}
        hidden, bias = o.get("mlpWidth", 4 * width), o.get("bias", True)
        self.norm1 = nn.LayerNorm(width, bias=bias)
        self.attention = Attention(width, heads, {"causal": o.get("causal", False), "bias": bias})
        self.norm2 = nn.LayerNorm(width, bias=bias)
        self.mlp = nn.Sequential(nn.Linear(width, hidden, bias=bias), nn.GELU(), nn.Linear(hidden, width, bias=bias))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


def sequential(*layers):
    """Builds nn.Sequential. Each layer is a list: the name of its class, then the arguments of the constructor."""
    return nn.Sequential(*[MODULES["nn." + name](*args) for name, *args in layers])


MODULES = {
    "nn.Linear": of(nn.Linear),
    "nn.Conv2d": of(nn.Conv2d),
    "nn.Embedding": of(nn.Embedding),
    "nn.LayerNorm": of(nn.LayerNorm, affine="elementwise_affine"),
    "nn.RMSNorm": of(nn.RMSNorm, affine="elementwise_affine"),
    "nn.BatchNorm1d": of(nn.BatchNorm1d),
    "nn.BatchNorm2d": of(nn.BatchNorm2d),
    "nn.BatchNorm3d": of(nn.BatchNorm3d),
    "nn.MaxPool2d": of(nn.MaxPool2d),
    "nn.AvgPool2d": of(nn.AvgPool2d),
    "nn.AdaptiveAvgPool2d": of(nn.AdaptiveAvgPool2d),
    "nn.MultiHeadAttention": Attention,
    "nn.TransformerBlock": Block,
    "nn.Sequential": sequential,
    "nn.Dropout": nn.Dropout,
    "nn.Identity": nn.Identity,
    "nn.Flatten": nn.Flatten,
    "nn.ReLU": nn.ReLU,
    "nn.GELU": of(nn.GELU),
    "nn.SiLU": nn.SiLU,
    "nn.Tanh": nn.Tanh,
    "nn.Sigmoid": nn.Sigmoid,
    "nn.LeakyReLU": nn.LeakyReLU,
    "nn.ELU": nn.ELU,
    "nn.Softplus": nn.Softplus,
    "nn.Softmax": lambda dim=-1: nn.Softmax(dim),
    "nn.LogSoftmax": lambda dim=-1: nn.LogSoftmax(dim),
    "nn.MSELoss": of(nn.MSELoss),
    "nn.L1Loss": of(nn.L1Loss),
    "nn.SmoothL1Loss": of(nn.SmoothL1Loss),
    "nn.HuberLoss": of(nn.HuberLoss),
    "nn.BCELoss": of(nn.BCELoss),
    "nn.BCEWithLogitsLoss": of(nn.BCEWithLogitsLoss),
    "nn.KLDivLoss": of(nn.KLDivLoss),
    "nn.CrossEntropyLoss": of(nn.CrossEntropyLoss),
    "nn.NLLLoss": of(nn.NLLLoss),
    "nn.CosineSimilarity": of(nn.CosineSimilarity),
    "nn.CosineEmbeddingLoss": of(nn.CosineEmbeddingLoss),
}

MODULES.update(oracle_sequences.MODULES)
