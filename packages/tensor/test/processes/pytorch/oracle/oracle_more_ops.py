"""Functions that write to parts of tensors, estimate slopes and count in bins, written with PyTorch."""
import torch
import torch.nn.functional as F

from oracle_arrays import dims_of
from oracle_ops import long


def index_reduce(x, dim, index, source, reduce, o=None):
    return x.index_reduce(dim, long(index), source, reduce, include_self=(o or {}).get("includeSelf", True))


def cumulative_trapezoid(y, x=None, dim=-1):
    if isinstance(x, torch.Tensor):
        return torch.cumulative_trapezoid(y, x, dim=dim)
    return torch.cumulative_trapezoid(y, dx=1 if x is None else x, dim=dim)


def gradient(x, dims=None, o=None):
    o = o or {}
    spacing = o.get("spacing", 1)
    if isinstance(spacing, list) and any(isinstance(each, torch.Tensor) for each in spacing):
        spacing = [each if isinstance(each, torch.Tensor) else torch.arange(x.shape[d]) * each for d, each in enumerate(spacing)]
    return list(torch.gradient(x, spacing=spacing, dim=dims_of(dims), edge_order=o.get("edgeOrder", 1)))


def histogram(x, bins, o=None):
    return list(torch.histogram(x, bins, **(o or {})))


MORE_OPS = {
    "ldexp": torch.ldexp,
    "floatPower": torch.float_power,
    "positive": torch.positive,
    "isFloatingPoint": torch.is_floating_point,
    "softmin": lambda x, dim=-1: F.softmin(x, dim),
    "put": lambda x, index, source, accumulate=False: x.put(long(index), source, accumulate),
    "maskedScatter": torch.masked_scatter,
    "indexReduce": index_reduce,
    "selectScatter": torch.select_scatter,
    "sliceScatter": torch.slice_scatter,
    "diagonalScatter": torch.diagonal_scatter,
    "sumToSize": lambda x, shape: x.sum_to_size(shape),
    "broadcastShapes": lambda *shapes: list(torch.broadcast_shapes(*shapes)),
    "cumulativeTrapezoid": cumulative_trapezoid,
    "gradient": gradient,
    "histogram": histogram,
    "vander": lambda x, columns=None, increasing=False: torch.vander(x, columns, increasing=increasing),
    "scatter_": lambda x, dim, index, source: x.scatter_(dim, long(index), source),
    "scatterAdd_": lambda x, dim, index, source: x.scatter_add_(dim, long(index), source),
    "indexAdd_": lambda x, dim, index, source, o=None: x.index_add_(dim, index, source, **(o or {})),
    "indexCopy_": lambda x, dim, index, source: x.index_copy_(dim, long(index), source),
    "indexFill_": lambda x, dim, index, value: x.index_fill_(dim, long(index), value),
    "put_": lambda x, index, source, accumulate=False: x.put_(long(index), source, accumulate),
    "maskedScatter_": lambda x, mask, source: x.masked_scatter_(mask, source),
    "ldexp_": lambda x, other: x.ldexp_(other if isinstance(other, torch.Tensor) else torch.tensor(other)),
}
