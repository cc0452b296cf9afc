"""Recurrent layers and packed sequences, with PyTorch. Arguments are those of the TypeScript functions."""
import torch
from torch import nn
from torch.nn.utils import rnn

NAMES = {
    "numLayers": "num_layers",
    "batchFirst": "batch_first",
    "enforceSorted": "enforce_sorted",
    "paddingValue": "padding_value",
    "paddingSide": "padding_side",
    "totalLength": "total_length",
}

CLASSES = {name: getattr(nn, name) for name in "RNN LSTM GRU RNNCell LSTMCell GRUCell".split()}


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


OPS = {
    "nn.packPaddedSequence": with_options(rnn.pack_padded_sequence),
    "nn.padPackedSequence": with_options(rnn.pad_packed_sequence),
    "nn.padSequence": with_options(rnn.pad_sequence),
    "nn.packSequence": with_options(rnn.pack_sequence),
}
