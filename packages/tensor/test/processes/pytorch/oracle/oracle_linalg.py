"""The functions of the namespace linalg, written with torch.linalg. Arguments are those of the TypeScript functions."""
import torch

L = torch.linalg


def sign_of(vectors):
    """Returns, for each column, the sign with which its first element that is at least half as large as the largest gets
    positive: the vectors of the package have this sign."""
    own = vectors.detach()
    large = own.abs() >= own.abs().amax(-2, keepdim=True) / 2
    first = large.int().argmax(-2, keepdim=True)
    return torch.where(own.gather(-2, first) < 0, -1.0, 1.0).to(own.dtype)


def eigh(a, o=None):
    values, vectors = L.eigh(a, (o or {}).get("uplo", "L"))
    return values, vectors * sign_of(vectors) if vectors.numel() else vectors


def svd(a, o=None):
    u, s, vh = L.svd(a, (o or {}).get("fullMatrices", True))
    if u.numel() == 0 or vh.numel() == 0:
        return u, s, vh
    signs = sign_of(u)
    return u * signs, s, vh * signs.transpose(-2, -1)


def solve(a, b, o=None):
    return L.solve(a, b, **(o or {}))


def rank_options(o):
    return dict(o or {})


def lstsq(a, b, o=None):
    found = L.lstsq(a, b, **(o or {}))
    return found.solution, found.residuals, found.rank, found.singular_values


def order(o, default):
    own = (o or {}).get("ord", default)
    return own, {"keepdim": (o or {}).get("keepDim", False)}


def dims_of(dims):
    return tuple(dims) if isinstance(dims, list) else dims


def vector_norm(a, dims=None, o=None):
    own, keep = order(o, 2)
    return L.vector_norm(a, own, dims_of(dims), **keep)


def matrix_norm(a, dims=None, o=None):
    own, keep = order(o, "fro")
    return L.matrix_norm(a, own, (-2, -1) if dims is None else dims_of(dims), **keep)


def norm(a, dims=None, o=None):
    own, keep = order(o, None)
    return L.norm(a, own, dims_of(dims), **keep)


LINALG = {
    "linalg.cholesky": lambda a, o=None: L.cholesky(a, **(o or {})),
    "linalg.solve": solve,
    "linalg.solveTriangular": lambda a, b, o: L.solve_triangular(a, b, **o),
    "linalg.inv": L.inv,
    "linalg.det": L.det,
    "linalg.slogdet": L.slogdet,
    "linalg.qr": lambda a, o=None: L.qr(a, (o or {}).get("mode", "reduced")),
    "linalg.eigh": eigh,
    "linalg.eigvalsh": lambda a, o=None: L.eigvalsh(a, (o or {}).get("uplo", "L")),
    "linalg.svd": svd,
    "linalg.svdvals": L.svdvals,
    "linalg.pinv": lambda a, o=None: L.pinv(a, **rank_options(o)),
    "linalg.lstsq": lstsq,
    "linalg.matrixRank": lambda a, o=None: L.matrix_rank(a, **rank_options(o)),
    "linalg.matrixPower": L.matrix_power,
    # PyTorch cannot view some strided batches as it wants to.
    "linalg.matrixExp": lambda a: L.matrix_exp(a.contiguous()),
    "linalg.vectorNorm": vector_norm,
    "linalg.matrixNorm": matrix_norm,
    "linalg.norm": norm,
    "linalg.cond": lambda a, p=None: L.cond(a, p),
}
