"""Losses with margins and likelihoods, with PyTorch. Arguments are those of the TypeScript functions."""
import torch.nn.functional as F
from torch import nn

NAMES = {"logInput": "log_input", "keepDim": "keepdim", "distanceFunction": "distance_function"}

FUNCTIONS = {
    "marginRankingLoss": (F.margin_ranking_loss, nn.MarginRankingLoss),
    "hingeEmbeddingLoss": (F.hinge_embedding_loss, nn.HingeEmbeddingLoss),
    "softMarginLoss": (F.soft_margin_loss, nn.SoftMarginLoss),
    "multiMarginLoss": (F.multi_margin_loss, nn.MultiMarginLoss),
    "multilabelMarginLoss": (F.multilabel_margin_loss, nn.MultiLabelMarginLoss),
    "multilabelSoftMarginLoss": (F.multilabel_soft_margin_loss, nn.MultiLabelSoftMarginLoss),
    "tripletMarginLoss": (F.triplet_margin_loss, nn.TripletMarginLoss),
    "tripletMarginWithDistanceLoss": (F.triplet_margin_with_distance_loss, nn.TripletMarginWithDistanceLoss),
    "gaussianNllLoss": (F.gaussian_nll_loss, nn.GaussianNLLLoss),
    "poissonNllLoss": (F.poisson_nll_loss, nn.PoissonNLLLoss),
    "pairwiseDistance": (F.pairwise_distance, nn.PairwiseDistance),
}


def keywords(o):
    return {NAMES.get(name, name): value for name, value in (o or {}).items()}


def function(fn):
    def call(*args):
        args = list(args)
        o = args.pop() if isinstance(args[-1], dict) else {}
        return fn(*args, **keywords(o))

    return call


def module(cls):
    return lambda o=None: cls(**keywords(o))


LOSS_OPS = {name: function(fn) for name, (fn, _) in FUNCTIONS.items()}
LOSS_MODULES = {f"nn.{cls.__name__}": module(cls) for _, cls in FUNCTIONS.values()}

ACTIVATIONS = (
    "CELU GLU Hardshrink Hardsigmoid Hardswish Hardtanh LogSigmoid Mish PReLU"
    " ReLU6 SELU Softmax2d Softmin Softshrink Softsign Tanhshrink Threshold"
).split()
LOSS_MODULES.update({f"nn.{name}": getattr(nn, name) for name in ACTIVATIONS if name != "Softmin"})
LOSS_MODULES["nn.Softmin"] = lambda dim=-1: nn.Softmin(dim)
