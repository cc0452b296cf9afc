"""Operations on planes, signals and volumes, and their layers, written with PyTorch. Arguments are those of TypeScript."""
import torch
import torch.nn.functional as F
from torch import nn

from oracle_layers import of
from oracle_ops import conv, options

NAMES = {
    "outputPadding": "output_padding",
    "paddingMode": "padding_mode",
    "scaleFactor": "scale_factor",
    "alignCorners": "align_corners",
    "recomputeScaleFactor": "recompute_scale_factor",
    "outputSize": "output_size",
    "divisorOverride": "divisor_override",
    "useInputStats": "use_input_stats",
    "trackRunningStats": "track_running_stats",
}


def named(o):
    return {NAMES.get(name, name): value for name, value in options(o).items()}


def with_options(fn):
    """Wraps a function whose last argument may be an object of options."""

    def run(*args):
        args = list(args)
        o = args.pop() if args and isinstance(args[-1], dict) else {}
        return fn(*args, **named(o))

    return run


def transposed(fn):
    """Wraps a transposed convolution. The weight is made contiguous, as for conv()."""
    return lambda x, w, b=None, o=None: fn(x, w.contiguous(), b, **named(o))


def layer(cls):
    """Returns a constructor of `cls` whose last argument may be an object of options."""
    return of(cls, **NAMES)


def instance_norm(x, mean=None, var=None, o=None):
    """Returns [result, mean, var]; mean and var are the running statistics after the call."""
    mean, var = (None if s is None else s.detach().clone() for s in (mean, var))
    out = F.instance_norm(x, mean, var, **named(o))
    return [s for s in (out, mean, var) if s is not None]


def dropping(name):
    """Returns a function that drops while training, which is its default here."""
    fn = {"alphaDropout": F.alpha_dropout}.get(name) or getattr(F, name)
    return lambda x, p=0.5, o=None: fn(x, p, (o or {}).get("training", True))


SPATIAL_OPS = {
    "conv3d": conv(F.conv3d),
    "convTranspose1d": transposed(F.conv_transpose1d),
    "convTranspose2d": transposed(F.conv_transpose2d),
    "pad": with_options(F.pad),
    "groupNorm": with_options(F.group_norm),
    "instanceNorm": instance_norm,
    "interpolate": with_options(F.interpolate),
    "gridSample": with_options(lambda *args, **o: F.grid_sample(*args, **{"align_corners": False, **o})),
    "affineGrid": lambda theta, size, corners=False: F.affine_grid(theta, size, align_corners=corners),
    "maxPool1d": with_options(F.max_pool1d),
    "avgPool1d": with_options(F.avg_pool1d),
    "avgPool2d": with_options(F.avg_pool2d),
    "adaptiveAvgPool1d": F.adaptive_avg_pool1d,
    "adaptiveMaxPool1d": F.adaptive_max_pool1d,
    "adaptiveMaxPool2d": F.adaptive_max_pool2d,
    "maxPool2dWithIndices": with_options(lambda *args, **o: F.max_pool2d(*args, return_indices=True, **o)),
    "maxUnpool2d": with_options(F.max_unpool2d),
    "lpPool1d": with_options(F.lp_pool1d),
    "lpPool2d": with_options(F.lp_pool2d),
    "im2col": with_options(F.unfold),
    "col2im": with_options(F.fold),
    "pixelShuffle": F.pixel_shuffle,
    "pixelUnshuffle": F.pixel_unshuffle,
    "channelShuffle": F.channel_shuffle,
    **{name: dropping(name) for name in ("dropout1d", "dropout2d", "dropout3d", "alphaDropout")},
    # PyTorch 2.13 refuses some strided tensors.
    "localResponseNorm": with_options(lambda x, *args, **o: F.local_response_norm(x.contiguous(), *args, **o)),
}

LAYERS = """
Conv1d Conv3d ConvTranspose1d ConvTranspose2d
ZeroPad1d ZeroPad2d ZeroPad3d ConstantPad1d ConstantPad2d ConstantPad3d
ReflectionPad1d ReflectionPad2d ReflectionPad3d ReplicationPad1d ReplicationPad2d ReplicationPad3d
CircularPad1d CircularPad2d CircularPad3d
GroupNorm InstanceNorm1d InstanceNorm2d InstanceNorm3d LocalResponseNorm
Upsample UpsamplingNearest2d UpsamplingBilinear2d
MaxPool1d AvgPool1d AdaptiveAvgPool1d AdaptiveMaxPool1d AdaptiveMaxPool2d MaxUnpool2d LPPool1d LPPool2d
Unfold Fold PixelShuffle PixelUnshuffle ChannelShuffle Unflatten Dropout1d Dropout2d Dropout3d AlphaDropout
"""
SPATIAL_MODULES = {
    **{f"nn.{name}": layer(getattr(nn, name)) for name in LAYERS.split()},
    "nn.Conv2d": layer(nn.Conv2d),
    "nn.AvgPool2d": layer(nn.AvgPool2d),
}
