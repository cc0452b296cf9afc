"""Recurrent layers and packed sequences, with PyTorch. Arguments are those of the TypeScript functions."""
import torch
from torch import nn
from torch.nn.utils import rnn

NAMES = {
    "numLayers": "num_layers",
    "batchFirst": "batch_first",
    "projSize": "proj_size",
    "enforceSorted": "enforce_sorted",
    "paddingValue": "padding_value",
    "paddingSide": "padding_side",
    "totalLength": "total_length",
    "dimFeedforward": "dim_feedforward",
    "layerNormEps": "layer_norm_eps",
    "normFirst": "norm_first",
    "numEncoderLayers": "num_encoder_layers",
    "numDecoderLayers": "num_decoder_layers",
    "keyPaddingMask": "key_padding_mask",
    "needWeights": "need_weights",
    "attnMask": "attn_mask",
    "addBiasKv": "add_bias_kv",
    "addZeroAttn": "add_zero_attn",
    "averageAttnWeights": "average_attn_weights",
    "isCausal": "is_causal",
    "srcMask": "src_mask",
    "srcKeyPaddingMask": "src_key_padding_mask",
    "tgtMask": "tgt_mask",
    "memoryMask": "memory_mask",
    "tgtKeyPaddingMask": "tgt_key_padding_mask",
    "memoryKeyPaddingMask": "memory_key_padding_mask",
}



def of_options(cls):
    """Returns a subclass whose forward takes its keyword arguments as an object at the end."""

    class Own(cls):
        def forward(self, *args, **keywords):
            args = list(args)
            o = args.pop() if isinstance(args[-1], dict) else {}
            return super().forward(*args, **{NAMES.get(name, name): value for name, value in o.items()}, **keywords)

    return Own


def inner(cls, layer):
    """Returns a constructor of an encoder or a decoder from the arguments of its layers, their number and a width."""

    def make(own, count, width=None):
        *sizes, o = own
        keywords = {NAMES.get(name, name): value for name, value in o.items()}
        norm = None if width is None else nn.LayerNorm(width)
        return of_options(cls)(layer(*sizes, **keywords), count, norm)

    return make


CLASSES = {name: getattr(nn, name) for name in "RNN LSTM GRU RNNCell LSTMCell GRUCell".split()}
CLASSES["MultiheadAttention"] = of_options(nn.MultiheadAttention)
CLASSES["TransformerEncoderLayer"] = of_options(nn.TransformerEncoderLayer)
CLASSES["TransformerDecoderLayer"] = of_options(nn.TransformerDecoderLayer)
CLASSES["Transformer"] = of_options(nn.Transformer)


def of(cls):
    """Returns a constructor of `cls` whose last argument may be an object of options."""

    def make(*args):
        args = list(args)
        o = args.pop() if args and isinstance(args[-1], dict) else {}
        return cls(*args, **{NAMES.get(name, name): value for name, value in o.items()})

    return make


MODULES = {
    **{f"nn.{name}": of(cls) for name, cls in CLASSES.items()},
    "nn.TransformerEncoder": inner(nn.TransformerEncoder, nn.TransformerEncoderLayer),
    "nn.TransformerDecoder": inner(nn.TransformerDecoder, nn.TransformerDecoderLayer),
}


def flattened(outs):
    """Returns nested results as one list, without None, and of packed sequences their data."""
    flat = []
    for out in outs:
        if isinstance(out, rnn.PackedSequence):
            flat.append(out.data)
        elif isinstance(out, (tuple, list)):
            flat += flattened(out)
        elif out is not None:
            flat.append(out)
    return flat


def with_options(fn):
    def call(*args):
        args = list(args)
        o = args.pop() if isinstance(args[-1], dict) else {}
        return fn(*args, **{NAMES.get(name, name): value for name, value in (o or {}).items()})

    return call


def rotary_embedding(positions, width, o=None):
    positions = torch.arange(positions) if isinstance(positions, int) else positions
    base = (o or {}).get("base", 10000)
    angles = positions.float()[..., None] * (1.0 / base ** (torch.arange(0, width, 2) / width))
    return angles.cos(), angles.sin()


def apply_rotary(x, cos, sin, o=None):
    """For the layout 'half' this is apply_rotary_pos_emb of the Llama of Hugging Face."""
    if not x.is_floating_point():
        raise RuntimeError("dtype")
    if (o or {}).get("layout") == "interleaved":
        a, b = x[..., ::2], x[..., 1::2]
        out = torch.stack([a * cos - b * sin, b * cos + a * sin], -1).flatten(-2)
    else:
        a, b = x.chunk(2, -1)
        out = x * torch.cat([cos, cos], -1) + torch.cat([-b, a], -1) * torch.cat([sin, sin], -1)
    if out.shape != x.shape:
        raise RuntimeError("shapes")
    return out.to(x.dtype)


OPS = {
    "rotaryEmbedding": rotary_embedding,
    "applyRotary": apply_rotary,
    "nn.Transformer.generateSquareSubsequentMask": nn.Transformer.generate_square_subsequent_mask,
    "nn.packPaddedSequence": with_options(rnn.pack_padded_sequence),
    "nn.padPackedSequence": with_options(rnn.pad_packed_sequence),
    "nn.padSequence": with_options(rnn.pad_sequence),
    "nn.packSequence": with_options(rnn.pack_sequence),
}
