"""The functions of @ringwise/tensor, written with PyTorch. Arguments are those of the TypeScript functions."""
import math

import torch
import torch.nn.functional as F

import oracle_sequences
from oracle_arrays import ARRAYS

DTYPES = {name: getattr(torch, name) for name in "float32 float64 float16 bfloat16 int32 int64 uint8 bool".split()}
NAMES = {dtype: name for name, dtype in DTYPES.items()}

SNAKE = {
    "ignoreIndex": "ignore_index",
    "labelSmoothing": "label_smoothing",
    "posWeight": "pos_weight",
    "logTarget": "log_target",
    "keepDim": "keepdim",
    "ceilMode": "ceil_mode",
    "countIncludePad": "count_include_pad",
    "causal": "is_causal",
    "mask": "attn_mask",
    "dropout": "dropout_p",
    "enableGqa": "enable_gqa",
    "requiresGrad": "requires_grad",
}


def options(given):
    """Returns an options object as keyword arguments."""
    return {SNAKE.get(name, name): value for name, value in (given or {}).items()}


def dims_of(dims):
    return dims if dims is None or isinstance(dims, int) else tuple(dims)


def tensor_beside(value, other):
    """Returns a number as a tensor without dimensions, in the dtype of an operation of `other` with it."""
    if isinstance(value, torch.Tensor):
        return value
    return torch.tensor(value, dtype=torch.result_type(other, value))


def pair(fn):
    """Wraps a function of two operands that PyTorch does not define on numbers."""
    return lambda a, b: fn(tensor_beside(a, b), tensor_beside(b, a))


def long(index):
    """Returns an index of int32 as int64: some functions of PyTorch refuse int32, which the package takes everywhere."""
    return index.long() if index.dtype == torch.int32 else index


def index_of(index):
    if isinstance(index, torch.Tensor):
        return long(index)
    if index == ":":
        return slice(None)
    if index == "...":
        return Ellipsis
    return slice(*(index + [None] * 3)[:3]) if isinstance(index, list) else index


def prod(x, dims=None, keep=False):
    """Returns torch.prod over all, one or several dimensions."""
    if dims is None or isinstance(dims, int):
        return torch.prod(x) if dims is None and not keep else over_all(torch.prod, x, dims, keep)
    at = [range(max(1, x.dim()))[d] for d in dims]
    if len(set(at)) != len(at):
        raise RuntimeError("dim appears multiple times in the list of dims")
    if not at:
        return over_all(torch.prod, x, None, keep)
    for d in sorted(at, reverse=True):
        x = torch.prod(x, d, keepdim=keep)
    return x


def over_all(fn, x, dims, keep):
    """Reduces over all dimensions if `dims` is None. `keep` then gives the result as many dimensions as x has."""
    if dims is None:
        out = fn(x)
        return out.reshape([1] * x.dim()) if keep else out
    return fn(x, dims, keepdim=keep)


def reduction(fn):
    return lambda x, dims=None, keep=False: over_all(fn, x, dims_of(dims), keep)


def extreme(of_all, along):
    """Returns a reduction that calls `of_all` without dimensions, else `along`. Their gradients differ at NaN."""
    return lambda x, dims=None, keep=False: over_all(of_all if dims is None else along, x, dims_of(dims), keep)


def variance(fn):
    def run(x, dims=None, o=None):
        return fn(x, dims_of(dims), **{"correction": 1, **options(o)})

    return run


def norm(x, dims=None, o=None):
    o = o or {}
    return torch.linalg.vector_norm(x, o.get("p", 2), dims_of(dims), o.get("keepDim", False))


def self_attention(qkv, heads, o=None):
    width = qkv.shape[-1] // 3
    if qkv.dim() < 2 or heads < 1 or qkv.shape[-1] % (3 * heads):
        raise RuntimeError("channels")
    lead, time = qkv.shape[:-2], qkv.shape[-2]
    batch = math.prod(lead)
    q, k, v = (part.reshape(batch, time, heads, width // heads).transpose(1, 2) for part in qkv.split(width, -1))
    return attention(q, k, v, o).transpose(1, 2).reshape(*lead, time, width)


def attention(q, k, v, o=None):
    return F.scaled_dot_product_attention(q, k, v, **options(o))


def linear(x, w, b=None, o=None):
    out = F.linear(x, w, b)
    return {"none": lambda a: a, "relu": F.relu, "gelu": F.gelu, "geluTanh": lambda a: F.gelu(a, approximate="tanh")}[
        (o or {}).get("activation", "none")
    ](out)


def add_layer_norm(x, residual, shape, o=None):
    if x.shape != residual.shape:
        raise RuntimeError("shapes")
    both = x + residual
    return [both, F.layer_norm(both, shape, **options(o))]


def batch_norm(x, mean=None, var=None, o=None):
    """Returns [result, mean, var]; mean and var are the running statistics after the call. Weight and bias are made
    contiguous, because backward of PyTorch 2.13 reads a strided weight as dense."""
    mean, var = (None if s is None else s.detach().clone() for s in (mean, var))
    o = {name: value.contiguous() if isinstance(value, torch.Tensor) else value for name, value in (o or {}).items()}
    out = F.batch_norm(x, mean, var, **options(o))
    return [s for s in (out, mean, var) if s is not None]


def conv(fn):
    """Wraps a convolution. The weight is made contiguous: backward of PyTorch 2.13 refuses some strided ones."""
    return lambda x, w, b=None, o=None: fn(x, w.contiguous(), b, **options(o))


def loss(fn):
    return lambda x, y, o=None: fn(x, y, **options(o))


def made(fn):
    """Wraps a function that creates a tensor; its last argument may hold options."""

    def run(*args):
        args = list(args)
        o = dict(args.pop()) if args and isinstance(args[-1], dict) else {}
        dtype = DTYPES[o.pop("dtype")] if "dtype" in o else None
        return fn(*[a for a in args if a is not None], dtype=dtype)

    return run


def like(fn):
    return lambda x, o=None: fn(x, **({"dtype": DTYPES[o["dtype"]]} if o and "dtype" in o else {}))


def tensor(data, o=None):
    return torch.tensor(data, dtype=DTYPES[o["dtype"]] if o else None)


def multinomial(weights, count, o=None):
    return torch.multinomial(weights, count, **options(o))


def at(x, *indices):
    return x[tuple(index_of(i) for i in indices)]


def put(x, indices, value, o=None):
    """Writes to the elements of x that indices name. `x[...] = value` converts no tensors, so that index_put_ checks."""
    own = tuple(index_of(i) for i in indices)
    if o and o.get("accumulate"):
        places = torch.arange(x.numel()).reshape(x.shape)[own]
        values = value if isinstance(value, torch.Tensor) else torch.tensor(value, dtype=x.dtype)
        if not any(isinstance(i, torch.Tensor) for i in own):
            values = values.to(x.dtype)  # x[:] += values converts
        flat = x.reshape(-1) if x.is_contiguous() else x.contiguous().view(-1)
        return x.copy_(flat.index_put((places.reshape(-1),), values.expand(places.shape).reshape(-1), True).view(x.shape))
    x[own] = value
    return x


def scatter_reduce(x, dim, index, source, reduce, o=None):
    return x.scatter_reduce(dim, long(index), source, reduce, include_self=(o or {}).get("includeSelf", True))


def in_place(name):
    return lambda x, y: getattr(x, name)(y)


UNARY = "neg abs sign exp log sqrt rsqrt square sin cos tanh sigmoid relu erf floor ceil round trunc".split()
OPS = {
    **ARRAYS,
    **{name: getattr(torch, name) for name in UNARY},
    "gelu": lambda x, o=None: F.gelu(x, **(o or {})),
    "silu": F.silu,
    "leakyRelu": lambda x, slope=0.01: F.leaky_relu(x, slope),
    "elu": lambda x, alpha=1.0: F.elu(x, alpha),
    "softplus": F.softplus,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "pow": lambda a, b: torch.pow(a, b),
    "maximum": pair(torch.maximum),
    "minimum": pair(torch.minimum),
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "logicalAnd": pair(torch.logical_and),
    "logicalOr": pair(torch.logical_or),
    "logicalXor": pair(torch.logical_xor),
    "logicalNot": torch.logical_not,
    "where": torch.where,
    "maskedFill": lambda x, mask, value: x.masked_fill(mask, value),
    "clamp": lambda x, low=None, high=None: torch.clamp(x, low, high),
    "matmul": torch.matmul,
    "linear": linear,
    "einsum": lambda equation, *operands: torch.einsum(equation, *operands),
    "at": at,
    "reshape": lambda x, shape: x.reshape(shape),
    "view": lambda x, shape: x.view(shape),
    "flatten": lambda x, start=0, end=-1: x.flatten(start, end),
    "squeeze": lambda x, dim=None: x.squeeze() if dim is None else x.squeeze(dim),
    "unsqueeze": lambda x, dim: x.unsqueeze(dim),
    "permute": lambda x, dims: x.permute(dims),
    "transpose": lambda x, a, b: x.transpose(a, b),
    "t": lambda x: x.t(),
    "expand": lambda x, shape: x.expand(shape),
    "narrow": lambda x, dim, start, length: x.narrow(dim, start, length),
    "select": lambda x, dim, index: x.select(dim, index),
    "split": lambda x, sizes, dim=0: x.split(sizes, dim),
    "chunk": lambda x, chunks, dim=0: x.chunk(chunks, dim),
    "unbind": lambda x, dim=0: x.unbind(dim),
    "unflatten": lambda x, dim, sizes: x.unflatten(dim, sizes),
    "flip": lambda x, dims: x.flip(dims),
    "roll": lambda x, shift, dim=None: x.roll(shift, dim),
    "repeat": lambda x, counts: x.repeat(counts),
    "clone": torch.clone,
    "contiguous": lambda x: x.contiguous(),
    "detach": lambda x: x.detach(),
    "to": lambda x, dtype: x.to(DTYPES[dtype]),
    "cat": lambda tensors, dim=0: torch.cat(tensors, dim),
    "stack": lambda tensors, dim=0: torch.stack(tensors, dim),
    "sum": reduction(torch.sum),
    "mean": reduction(torch.mean),
    "prod": prod,
    "max": extreme(torch.max, torch.amax),
    "min": extreme(torch.min, torch.amin),
    "any": reduction(torch.any),
    "all": reduction(torch.all),
    "argmax": lambda x, dim=None, keep=False: torch.argmax(x, dim, keep),
    "argmin": lambda x, dim=None, keep=False: torch.argmin(x, dim, keep),
    "variance": variance(torch.var),
    "std": variance(torch.std),
    "varMean": variance(torch.var_mean),
    "norm": norm,
    "logSumExp": lambda x, dims, keep=False: torch.logsumexp(x, dims_of(dims), keep),
    "softmax": lambda x, dim=-1: torch.softmax(x, dim),
    "logSoftmax": lambda x, dim=-1: torch.log_softmax(x, dim),
    "cumsum": torch.cumsum,
    "sort": lambda x, dim=-1, o=None: torch.sort(x, dim=dim, stable=True, **(o or {})),
    "topk": lambda x, k, dim=-1, o=None: torch.topk(x, k, dim, **(o or {})),
    "tril": torch.tril,
    "triu": torch.triu,
    "gather": torch.gather,
    # Backward of PyTorch 2.13 reads an expanded index of int32 as int64.
    "scatterAdd": lambda x, dim, index, source: x.scatter_add(dim, index.contiguous(), source),
    "indexSelect": torch.index_select,
    "indexPut": lambda x, indices, value, o=None: put(x.clone(), indices, value, o),
    "set": put,
    "scatter": lambda x, dim, index, source: torch.scatter(x, dim, long(index), source),
    "scatterReduce": scatter_reduce,
    "indexAdd": lambda x, dim, index, source, o=None: x.index_add(dim, index, source, **(o or {})),
    "indexCopy": lambda x, dim, index, source: torch.index_copy(x, dim, long(index), source),
    "indexFill": lambda x, dim, index, value: torch.index_fill(x, dim, long(index), value),
    "takeAlongDim": lambda x, index, dim=None: torch.take_along_dim(x, long(index), dim),
    "take": lambda x, index: torch.take(x, long(index)),
    "maskedSelect": torch.masked_select,
    "nonzero": torch.nonzero,
    "embedding": lambda index, weight: F.embedding(index, weight),
    "oneHot": lambda labels, classes=None: F.one_hot(labels, -1 if classes is None else classes),
    "dropout": lambda x, p=0.5, o=None: F.dropout(x, p, **options(o)),
    "mseLoss": loss(F.mse_loss),
    "l1Loss": loss(F.l1_loss),
    "huberLoss": loss(F.huber_loss),
    "smoothL1Loss": loss(F.smooth_l1_loss),
    "bce": loss(F.binary_cross_entropy),
    "bceWithLogits": loss(F.binary_cross_entropy_with_logits),
    "klDiv": loss(F.kl_div),
    "nllLoss": loss(F.nll_loss),
    "crossEntropy": loss(F.cross_entropy),
    "cosineSimilarity": lambda a, b, dim=None, eps=1e-8: F.cosine_similarity(a, b, 1 if dim is None else dim, eps),
    "cosineEmbeddingLoss": lambda a, b, y, o=None: F.cosine_embedding_loss(a, b, y, **options(o)),
    "conv1d": conv(F.conv1d),
    "conv2d": conv(F.conv2d),
    "maxPool2d": lambda x, size, o=None: F.max_pool2d(x, size, **options(o)),
    "avgPool2d": lambda x, size, o=None: F.avg_pool2d(x, size, **options(o)),
    "adaptiveAvgPool2d": F.adaptive_avg_pool2d,
    "batchNorm": batch_norm,
    "layerNorm": lambda x, shape, o=None: F.layer_norm(x, shape, **options(o)),
    "rmsNorm": lambda x, shape, o=None: F.rms_norm(x, shape, **options(o)),
    "addLayerNorm": add_layer_norm,
    "scaledDotProductAttention": attention,
    "selfAttention": self_attention,
    "zeros": made(torch.zeros),
    "ones": made(torch.ones),
    "full": made(torch.full),
    "eye": made(torch.eye),
    "arange": made(torch.arange),
    "linspace": made(torch.linspace),
    "zerosLike": like(torch.zeros_like),
    "onesLike": like(torch.ones_like),
    "tensor": tensor,
    "promoteTypes": lambda a, b: NAMES[torch.promote_types(DTYPES[a], DTYPES[b])],
    "resultType": lambda a, b: NAMES[torch.result_type(a, b)],
    "item": lambda x: x.item(),
    "rand": lambda shape: torch.rand(shape),
    "randn": lambda shape: torch.randn(shape),
    "randint": lambda low, high, shape: torch.randint(low, high, shape),
    "randperm": lambda count: torch.randperm(count),
    "bernoulli": torch.bernoulli,
    "multinomial": multinomial,
    **{name: in_place(name) for name in "add_ sub_ mul_ div_ copy_ fill_".split()},
    "zero_": lambda x: x.zero_(),
    "nn.init.constant_": torch.nn.init.constant_,
    "nn.init.zeros_": torch.nn.init.zeros_,
    "nn.init.ones_": torch.nn.init.ones_,
    "nn.init.eye_": torch.nn.init.eye_,
    "nn.init.calculateGain": lambda name, slope=None: torch.nn.init.calculate_gain(
        {"leakyRelu": "leaky_relu"}.get(name, name), slope
    ),
}

OPS.update(oracle_sequences.OPS)
