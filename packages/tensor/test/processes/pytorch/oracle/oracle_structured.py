"""Volumes, bags, bilinear products and losses of sequences, written with PyTorch. Arguments are those of TypeScript."""
import torch
import torch.nn.functional as F
from torch import nn

from oracle_spatial import layer, transposed, with_options

NAMES = {
    "perSampleWeights": "per_sample_weights",
    "includeLastOffset": "include_last_offset",
    "paddingIdx": "padding_idx",
    "zeroInfinity": "zero_infinity",
    "linearBias": "linear_bias",
    "outFeatures": "out_features",
    "divValue": "div_value",
    "headBias": "head_bias",
    "ignoreIndex": "ignore_index",
    "labelSmoothing": "label_smoothing",
}


def keywords(o):
    return {NAMES.get(name, name): value for name, value in (o or {}).items()}


def lengths(value):
    return value.long() if isinstance(value, torch.Tensor) else torch.tensor(value)


def ctc(logits, targets, inputs, sizes, o=None):
    """PyTorch's gradient of ctc_loss is right only behind log_softmax, which is part of the case."""
    return F.ctc_loss(logits, targets, lengths(inputs), lengths(sizes), **keywords(o))


class Ctc(nn.CTCLoss):
    def forward(self, logits, targets, inputs, sizes):
        return super().forward(logits, targets, lengths(inputs), lengths(sizes))


class Adaptive(nn.AdaptiveLogSoftmaxWithLoss):
    def forward(self, x, target):
        return tuple(super().forward(x, target))


class Bag(nn.EmbeddingBag):
    def forward(self, index, offsets=None, o=None):
        return super().forward(index, None if offsets is None else offsets.to(index.dtype), **keywords(o))


def embedding_bag(index, weight, offsets=None, o=None):
    offsets = None if offsets is None else offsets.to(index.dtype)
    return F.embedding_bag(index, weight, offsets, **{"mode": "mean", **keywords(o)})


def made(cls):
    def make(*args):
        args = list(args)
        o = args.pop() if args and isinstance(args[-1], dict) else {}
        return cls(*args, **keywords(o))

    return make


STRUCTURED_OPS = {
    "convTranspose3d": transposed(F.conv_transpose3d),
    "maxPool3d": with_options(F.max_pool3d),
    "avgPool3d": with_options(F.avg_pool3d),
    "lpPool3d": with_options(F.lp_pool3d),
    "adaptiveAvgPool3d": F.adaptive_avg_pool3d,
    "adaptiveMaxPool3d": F.adaptive_max_pool3d,
    "maxPool1dWithIndices": with_options(lambda *args, **o: F.max_pool1d(*args, return_indices=True, **o)),
    "maxPool3dWithIndices": with_options(lambda *args, **o: F.max_pool3d(*args, return_indices=True, **o)),
    "maxUnpool1d": with_options(F.max_unpool1d),
    "maxUnpool3d": with_options(F.max_unpool3d),
    "featureAlphaDropout": lambda x, p=0.5, o=None: F.feature_alpha_dropout(x, p, (o or {}).get("training", True)),
    "bilinear": F.bilinear,
    "embeddingBag": embedding_bag,
    "ctcLoss": ctc,
    "linearCrossEntropy": lambda x, w, y, o=None: F.linear_cross_entropy(x, w, y, **keywords(o)),
    "rrelu": lambda x, lower=1 / 8, upper=1 / 3, o=None: F.rrelu(
        x, 1 / 8 if lower is None else lower, 1 / 3 if upper is None else upper, **(o or {})
    ),
    "gumbelSoftmax": lambda x, dim=-1, o=None: F.gumbel_softmax(x, dim=-1 if dim is None else dim, **(o or {})),
}

VOLUMES = """
ConvTranspose3d MaxPool3d AvgPool3d LPPool3d AdaptiveAvgPool3d AdaptiveMaxPool3d MaxUnpool1d MaxUnpool3d FeatureAlphaDropout
"""
STRUCTURED_MODULES = {
    **{f"nn.{name}": layer(getattr(nn, name)) for name in VOLUMES.split()},
    "nn.RReLU": nn.RReLU,
    "nn.Bilinear": made(nn.Bilinear),
    "nn.EmbeddingBag": made(Bag),
    "nn.CTCLoss": made(Ctc),
    "nn.LinearCrossEntropyLoss": made(nn.LinearCrossEntropyLoss),
    "nn.AdaptiveLogSoftmaxWithLoss": made(Adaptive),
}
