"""The elementwise functions of @ringwise/tensor that are not arithmetic, written with PyTorch."""
import torch
import torch.nn.functional as F

FUNCTIONS = {
    **{name: getattr(F, name) for name in "softsign tanhshrink relu6 hardsigmoid hardswish selu mish".split()},
    "logSigmoid": F.logsigmoid,
    "hardtanh": lambda x, low=-1.0, high=1.0: F.hardtanh(x, low, high),
    "threshold": F.threshold,
    "hardshrink": F.hardshrink,
    "softshrink": F.softshrink,
    "celu": F.celu,
    "prelu": F.prelu,
    "glu": lambda x, dim=-1: F.glu(x, -1 if dim is None else dim),
}
