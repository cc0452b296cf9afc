"""Computes PyTorch's answers to cases of the generator.

Reads a JSON array of cases (see case.ts) on stdin and writes {"torch": version, "answers": [one per case]} on stdout.
An answer is {"outs": [value, ...], "grads": [value or null, ...]} or {"raises": "..."}; "gradRaises" replaces "grads"
if backward raises, and "error" says how far results and gradients of an unsteady case move. A value is a text, or
[dtype, shape, base64 of the elements in little-endian order], with 16-bit floats as float32.
"""
import base64
import json
import sys
import warnings

import torch

from oracle_functions import FUNCTIONS
from oracle_layers import MODULES
from oracle_linalg import LINALG
from oracle_more_losses import LOSS_MODULES, LOSS_OPS
from oracle_more_ops import MORE_OPS
from oracle_ops import OPS
from oracle_sequences import flattened
from oracle_spatial import SPATIAL_MODULES, SPATIAL_OPS
from oracle_structured import STRUCTURED_MODULES, STRUCTURED_OPS

OPS.update(SPATIAL_OPS)
OPS.update(FUNCTIONS)
OPS.update(LINALG)
MODULES.update(SPATIAL_MODULES)
OPS.update(LOSS_OPS)
OPS.update(MORE_OPS)
OPS.update(STRUCTURED_OPS)
MODULES.update(STRUCTURED_MODULES)
MODULES.update(LOSS_MODULES)

DTYPES = {name: getattr(torch, name) for name in "float32 float64 float16 bfloat16 int32 int64 uint8 bool".split()}
NAMES = {dtype: name for name, dtype in DTYPES.items()}


def encoded(value):
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, int, float)):
        value = torch.tensor(value, dtype=torch.float64)
    dense = value.detach().contiguous()
    wide = dense.float() if dense.dtype in (torch.float16, torch.bfloat16) else dense
    return [NAMES.get(value.dtype, str(value.dtype)), list(value.shape), base64.b64encode(wide.numpy(force=True).tobytes()).decode()]


def leaf_of(spec):
    dtype = DTYPES[spec["dtype"]]
    values = [float(x) if dtype.is_floating_point else int(x) for x in spec["values"]]
    return torch.tensor(values, dtype=dtype).reshape(spec["shape"]).requires_grad_(spec["grad"])


def viewed(x, views):
    for name, *args in views:
        if name == "slice":
            dim, start, end, step = args
            x = x[(slice(None),) * dim + (slice(start, end, step),)]
        else:
            x = getattr(x, name)(*args)
        if name == "flip":
            x = x.contiguous()  # PyTorch's flip() keeps the memory order of its input; view() depends on that order
    return x


SPECIAL = {"undefined": None, "nan": float("nan"), "inf": float("inf"), "-inf": float("-inf"), "-0": -0.0}


def decoded(arg, values):
    if isinstance(arg, list):
        return [decoded(item, values) for item in arg]
    if not isinstance(arg, dict):
        return arg
    if "$" in arg:
        name = arg["$"]
        return SPECIAL[name] if isinstance(name, str) else values[name]
    return {key: decoded(item, values) for key, item in arg.items()}


def results(out):
    """Returns the results of a call: the items of a list, or one. A packed sequence is one, though it is a tuple."""
    return list(out) if isinstance(out, (tuple, list)) and not hasattr(out, "batch_sizes") else [out]


def run_module(step, values):
    """Builds the module, loads its state, and returns the results of forward, then the loaded buffers by name."""
    module = MODULES[step["op"]](*decoded(step["new"], values))
    own = dict(module.named_parameters()) | dict(module.named_buffers())
    state = {name: values[ref["$"]] for name, ref in step["state"].items()}
    if any(name not in own or own[name].shape != value.shape for name, value in state.items()):
        raise KeyError(f"state {list(state)} for {list(own)}")
    module.train(step["training"])
    buffers = {name: state[name].detach().clone() for name, _ in module.named_buffers() if name in state}
    out = torch.func.functional_call(module, {**state, **buffers}, tuple(decoded(step["args"], values)))
    outs = results(out)
    return outs + [buffers[name] for name in sorted(buffers)]


def run_steps(case, leaves, move):
    """Returns the results of the last step; an in-place step adds the whole leaf of input 0."""
    values = [move(viewed(x, spec["views"])) for x, spec in zip(leaves, case["inputs"])]
    for step in case["steps"]:
        if "new" in step:
            outs = run_module(step, values)
        else:
            args = decoded(step["args"], values)
            if step.get("inPlace"):
                with torch.no_grad():
                    outs = [OPS[step["op"]](*args), leaves[0]]
            else:
                out = OPS[step["op"]](*args)
                outs = results(out)
        values.append(outs[0] if outs else None)
    return flattened(outs)


def weights_of(x):
    """Returns the gradient of a result: exact in every float dtype, and never 0. It has the strides of the result,
    because backward of batch_norm in PyTorch 2.13 reads a dense gradient as channels-last if the result is so."""
    values = (torch.arange(x.numel()) * 7 + 3) % 12
    return torch.empty_like(x).copy_(((values.double() - 5.5) / 4).reshape(x.shape))


def seconds_of(case, roots, wanted):
    """Returns the gradients of a weighted sum of the gradients; None for zero, or where PyTorch has none."""
    grads = torch.autograd.grad(roots, wanted, [weights_of(x) for x in roots], create_graph=True, allow_unused=True)
    again = [x for x in grads if x is not None and x.requires_grad]
    if not again:
        return [None] * len(wanted)
    return torch.autograd.grad(again, wanted, [weights_of(x) for x in again], allow_unused=True)


def has_seconds(case, wanted):
    """Tells whether second gradients are compared: of finite floats of 32 and 64 bits. Their rounding errors are small."""
    if any(isinstance(value, str) for spec in case["inputs"] for value in spec["values"]):
        return False
    is_wide = all(x.dtype in (torch.float32, torch.float64) for x in wanted)
    return is_wide and case["compares"] == "all" and "unsteady" not in case


def attempt(case, move=lambda x: x):
    leaves = [leaf_of(spec) for spec in case["inputs"]]
    try:
        outs = run_steps(case, leaves, move)
    except (RuntimeError, ValueError, TypeError, IndexError, AssertionError, NotImplementedError) as error:
        return {"raises": str(error).split("\n")[0][:160]}, [], []
    if any(min(x.shape, default=0) < 0 for x in outs if isinstance(x, torch.Tensor)):
        return {"raises": "PyTorch made a tensor of a negative size"}, [], []
    wanted = [x for x in leaves if x.requires_grad]
    roots = [x for x in outs if isinstance(x, torch.Tensor) and x.requires_grad]
    grads = [None] * len(wanted)
    answer = {}
    if roots and wanted:
        try:
            given = [weights_of(x) for x in roots]
            grads = torch.autograd.grad(roots, wanted, given, allow_unused=True, retain_graph=True)
        except (RuntimeError, IndexError, NotImplementedError) as error:
            answer["gradRaises"] = str(error).split("\n")[0][:160]
        if has_seconds(case, wanted):
            try:
                answer["seconds"] = [None if x is None else encoded(x) for x in seconds_of(case, roots, wanted)]
            except (RuntimeError, IndexError, NotImplementedError):
                pass
    return answer, outs, grads


def moved_by(share, each):
    """Returns a function that scales floats by 1 + share; with `each`, every second element by 1 − share instead."""

    def move(x):
        if not x.is_floating_point():
            return x
        signs = 1 - 2 * (torch.arange(x.numel()).reshape(x.shape) % 2) if each else 1
        return (x.double() * (1 + share * signs)).to(x.dtype)

    return move


def error_of(values, others):
    """Returns the largest distance between a number of `values` and the same number in `others`."""
    most = 0.0
    for x, *rest in zip(values, *others):
        for y in rest:
            if x is None or y is None or not isinstance(x, torch.Tensor) or x.numel() == 0:
                continue
            gap = (x.double() - y.double()).abs()
            is_same = (x == y) | (x.isnan() & y.isnan())
            most = max(most, float(torch.where(is_same, 0, torch.nan_to_num(gap, nan=1e300, posinf=1e300)).max()))
    return most


def answer(case):
    found, outs, grads = attempt(case)
    if "raises" not in found:
        found["outs"] = [encoded(x) for x in outs]
        if "gradRaises" not in found:
            found["grads"] = [None if x is None else encoded(x) for x in grads]
        if "unsteady" in case:
            # Expressions move all elements alike, so that equal ones stay equal: otherwise the gradient of max jumps.
            each = len(case["steps"]) == 1
            others = [attempt(case, moved_by(sign * case["unsteady"], each)) for sign in (1, -1, 3)]
            found["error"] = error_of([*outs, *grads], [[*outs, *grads] for _, outs, grads in others])
    return found


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    json.dump({"torch": torch.__version__, "answers": [answer(case) for case in json.load(sys.stdin)]}, sys.stdout)
