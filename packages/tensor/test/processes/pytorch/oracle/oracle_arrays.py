"""The array functions of @ringwise/tensor, written with PyTorch. Arguments are those of the TypeScript functions."""
import torch

DTYPES = {name: getattr(torch, name) for name in "float32 float64 float16 bfloat16 int32 int64 uint8 bool".split()}

SNAKE = {
    "equalNan": "equal_nan",
    "withReplacement": "with_replacement",
    "outInt32": "out_int32",
    "keepDim": "keepdim",
}


def named(o):
    """Returns an options object as keyword arguments."""
    own = {SNAKE.get(name, name): value for name, value in (o or {}).items()}
    return {**own, "dtype": DTYPES[own["dtype"]]} if "dtype" in own else own


def split(fn):
    return lambda x, sections, *rest: fn(x, tuple(sections) if isinstance(sections, list) else sections, *rest)


def combinations(x, r=2, o=None):
    return torch.combinations(x, 2 if r is None else r, **named(o))


def rot90(x, k=1, dims=None):
    return torch.rot90(x, 1 if k is None else k, (0, 1) if dims is None else dims)


def triangle(fn):
    return lambda rows, cols, offset=0, o=None: fn(rows, cols, 0 if offset is None else offset, **named(o))


def searchsorted(sequence, values, o=None):
    return torch.searchsorted(sequence, values, **named(o))


def tensordot(a, b, dims=2):
    return torch.tensordot(a, b, dims)


def addition(fn):
    return lambda x, a, b, o=None: fn(x, a, b, **named(o))


def dims_of(dims):
    return dims if dims is None or isinstance(dims, int) else tuple(dims)


def over(fn):
    return lambda x, dims=None, keep=False: fn(x, dims_of(dims), keepdim=bool(keep))


def extreme(fn):
    return lambda x, dims=None, keep=False: fn(x, () if dims is None else dims_of(dims), keepdim=bool(keep))


def ranked(fn):
    return lambda x, *args: fn(x, *[a for a in args if a is not None])


def median(fn):
    return lambda x, dim=None, keep=False: fn(x) if dim is None else fn(x, dim, keepdim=bool(keep))


def quantile(fn):
    return lambda x, q, dim=None, o=None: fn(x, q, dim=dim, **{"keepdim": False, **named(o)})


def unique(fn, **fixed):
    def run(x, o=None):
        o = dict(o or {})
        inverse, counts = o.get("returnInverse", False), o.get("returnCounts", False)
        out = fn(x, **fixed, return_inverse=inverse, return_counts=counts, dim=o.get("dim"))
        return list(out) if isinstance(out, tuple) else [out]

    return run


def bincount(x, o=None):
    o = o or {}
    return torch.bincount(x, o.get("weights"), o.get("minLength", 0))


def diff(x, n=1, dim=-1, o=None):
    return torch.diff(x, 1 if n is None else n, dim, **(o or {}))


def trapezoid(y, x=None, dim=-1):
    if isinstance(x, torch.Tensor):
        return torch.trapezoid(y, x, dim=dim)
    return torch.trapezoid(y, dx=1 if x is None else x, dim=dim)


def histc(x, bins=100, low=0, high=0):
    return torch.histc(x, bins, 0 if low is None else low, 0 if high is None else high)


def std_mean(x, dims=None, o=None):
    return torch.std_mean(x, dims_of(dims), **{"correction": 1, **named(o)})


ARRAYS = {
    "argsort": lambda x, dim=-1, o=None: torch.argsort(x, dim=dim, **named(o)),
    "msort": torch.msort,
    "kthvalue": lambda x, k, dim=-1, keep=False: torch.kthvalue(x, k, dim, bool(keep)),
    "mode": lambda x, dim=-1, keep=False: torch.mode(x, dim, bool(keep)),
    "median": median(torch.median),
    "nanmedian": median(torch.nanmedian),
    "quantile": quantile(torch.quantile),
    "nanquantile": quantile(torch.nanquantile),
    **{name: getattr(torch, name) for name in "cummax cummin cumprod logcumsumexp corrcoef renorm".split()},
    "amax": extreme(torch.amax),
    "amin": extreme(torch.amin),
    "aminmax": lambda x, dim=None, o=None: torch.aminmax(x, dim=dim, **named(o)),
    "nansum": over(torch.nansum),
    "nanmean": over(torch.nanmean),
    "countNonzero": lambda x, dims=None: torch.count_nonzero(x, dims_of(dims)),
    "stdMean": std_mean,
    "unique": unique(torch.unique, sorted=True),
    "uniqueConsecutive": unique(torch.unique_consecutive),
    "bincount": bincount,
    "histc": histc,
    "diff": diff,
    "trapezoid": trapezoid,
    "cov": lambda x, o=None: torch.cov(x, **named(o)),
    "cdist": lambda a, b, o=None: torch.cdist(a, b, **{"compute_mode": "donot_use_mm_for_euclid_dist", **(o or {})}),
    "pdist": lambda x, p=2: torch.pdist(x, 2 if p is None else p),
    "dist": lambda a, b, p=2: torch.dist(a, b, 2 if p is None else p),
    "pairwiseDistance": lambda a, b, o=None: torch.nn.functional.pairwise_distance(a, b, **named(o)),
    "normalize": lambda x, o=None: torch.nn.functional.normalize(x, **named(o)),
    **{name: getattr(torch, name) for name in "outer mm bmm mv dot vdot inner trace diag diagonal diagflat".split()},
    **{name: addition(getattr(torch, name)) for name in "addmm addmv addr baddbmm addbmm".split()},
    "tensordot": tensordot,
    "kron": lambda a, b: torch.kron(a.contiguous(), b.contiguous()),  # PyTorch 2.13 refuses some strides
    "cross": lambda a, b, dim=-1: torch.linalg.cross(a, b, dim=-1 if dim is None else dim),
    "diagEmbed": torch.diag_embed,
    "trilIndices": triangle(torch.tril_indices),
    "triuIndices": triangle(torch.triu_indices),
    "blockDiag": torch.block_diag,
    "empty": lambda shape, o=None: torch.empty(shape, **named(o)),
    "emptyLike": lambda x, o=None: torch.empty_like(x, **named(o)),
    "fullLike": lambda x, value, o=None: torch.full_like(x, value, **named(o)),
    "newZeros": lambda x, shape, o=None: x.new_zeros(shape, **named(o)),
    "newOnes": lambda x, shape, o=None: x.new_ones(shape, **named(o)),
    "newFull": lambda x, shape, value, o=None: x.new_full(shape, value, **named(o)),
    "newEmpty": lambda x, shape, o=None: x.new_empty(shape, **named(o)),
    "logspace": lambda start, end, count, o=None: torch.logspace(start, end, count, **named(o)),
    "randLike": torch.rand_like,
    "randnLike": torch.randn_like,
    "randintLike": torch.randint_like,
    "normal": torch.normal,
    "allclose": lambda a, b, o=None: torch.allclose(a, b, **named(o)),
    "equal": torch.equal,
    # PyTorch 2.13 cannot sort test elements with strides.
    "isin": lambda a, b, o=None: torch.isin(a, b.contiguous() if isinstance(b, torch.Tensor) else b, **named(o)),
    "meshgrid": lambda tensors, o=None: torch.meshgrid(*tensors, **{"indexing": "ij", **named(o)}),
    "tile": lambda x, counts: torch.tile(x, counts),
    "repeatInterleave": lambda x, repeats, dim=None: torch.repeat_interleave(x, repeats, dim),
    "movedim": torch.movedim,
    "swapaxes": torch.swapaxes,
    "unfold": lambda x, dim, size, step: x.unfold(dim, size, step),
    "rot90": rot90,
    "fliplr": torch.fliplr,
    "flipud": torch.flipud,
    "argwhere": torch.argwhere,
    "ravel": torch.ravel,
    "hstack": torch.hstack,
    "vstack": torch.vstack,
    "dstack": torch.dstack,
    "columnStack": torch.column_stack,
    "atleast1d": torch.atleast_1d,
    "atleast2d": torch.atleast_2d,
    "atleast3d": torch.atleast_3d,
    "tensorSplit": split(torch.tensor_split),
    "hsplit": split(torch.hsplit),
    "vsplit": split(torch.vsplit),
    "dsplit": split(torch.dsplit),
    "broadcastTo": torch.broadcast_to,
    "broadcastTensors": torch.broadcast_tensors,
    "viewAs": lambda x, other: x.view_as(other),
    "reshapeAs": lambda x, other: x.reshape_as(other),
    "expandAs": lambda x, other: x.expand_as(other),
    "searchsorted": searchsorted,
    "bucketize": lambda x, boundaries, o=None: torch.bucketize(x, boundaries, **named(o)),
    "cartesianProd": torch.cartesian_prod,
    "combinations": combinations,
}
