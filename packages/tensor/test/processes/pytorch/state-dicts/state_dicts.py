"""Writes the files that state-dicts.test.ts reads: layers, model, optimizer and training.safetensors.

    python3 state_dicts.py

layers.safetensors has, for each layer, its state_dict() as "<layer>/state/<name>", its inputs as "<layer>/input/<i>" and
its outputs in evaluation as "<layer>/output/<i>". The others are a model and its optimiser in the middle of a training, as
files of their own, and the data and losses of the rest of it.
"""
import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn

FOLDER = Path(__file__).parent


def fill(module):
    """Gives all parameters and buffers values that differ from the initial ones."""
    for parameter in module.parameters():
        nn.init.normal_(parameter, 0, 0.5)
    for name, own in module.named_buffers():
        if name.endswith("num_batches_tracked"):
            own.fill_(3)
        else:
            nn.init.uniform_(own, 0.5, 1.5)
    return module


def flat(outputs):
    if torch.is_tensor(outputs):
        return [outputs]
    return [tensor for output in outputs if output is not None for tensor in flat(output)]


def whole(*shape, below):
    return torch.randint(below, shape)


R = torch.randn
STEP = dict(dim_feedforward=12, dropout=0.1)
NORMED = dict(affine=True, track_running_stats=True)


def layers():
    """Yields the name of each layer, the layer, and its inputs."""
    yield "Linear", nn.Linear(3, 4), [R(2, 3)]
    yield "Linear without bias", nn.Linear(3, 4, bias=False), [R(2, 3)]
    yield "Conv1d", nn.Conv1d(2, 3, 3, padding=1), [R(2, 2, 5)]
    yield "Conv2d", nn.Conv2d(4, 6, (3, 2), stride=2, padding=1, groups=2), [R(1, 4, 5, 6)]
    yield "Conv2d with reflection", nn.Conv2d(2, 2, 3, padding=1, padding_mode="reflect"), [R(1, 2, 4, 4)]
    yield "Conv3d", nn.Conv3d(2, 2, 2), [R(1, 2, 3, 3, 3)]
    yield "ConvTranspose1d", nn.ConvTranspose1d(2, 3, 3, stride=2, output_padding=1), [R(1, 2, 4)]
    yield "ConvTranspose2d", nn.ConvTranspose2d(4, 2, 3, stride=2, padding=1, groups=2), [R(1, 4, 3, 3)]
    yield "BatchNorm1d", nn.BatchNorm1d(3), [R(4, 3)]
    yield "BatchNorm2d", nn.BatchNorm2d(3), [R(2, 3, 2, 2)]
    yield "BatchNorm3d", nn.BatchNorm3d(2), [R(2, 2, 2, 2, 2)]
    yield "BatchNorm2d without weights", nn.BatchNorm2d(3, affine=False), [R(2, 3, 2, 2)]
    yield "BatchNorm1d without statistics", nn.BatchNorm1d(3, track_running_stats=False), [R(4, 3)]
    yield "InstanceNorm1d", nn.InstanceNorm1d(3, **NORMED), [R(2, 3, 4)]
    yield "InstanceNorm2d", nn.InstanceNorm2d(3, **NORMED), [R(2, 3, 2, 3)]
    yield "InstanceNorm3d", nn.InstanceNorm3d(2, affine=True), [R(2, 2, 2, 2, 2)]
    yield "GroupNorm", nn.GroupNorm(2, 4), [R(2, 4, 3)]
    yield "LayerNorm", nn.LayerNorm([2, 3]), [R(2, 2, 3)]
    yield "LayerNorm without bias", nn.LayerNorm(3, bias=False), [R(2, 3)]
    yield "RMSNorm", nn.RMSNorm(4), [R(2, 4)]
    yield "Embedding", nn.Embedding(5, 3, padding_idx=1), [whole(2, 3, below=5)]
    yield "PReLU", nn.PReLU(3), [R(2, 3, 2)]
    yield "RNN", nn.RNN(2, 3, nonlinearity="relu"), [R(4, 2, 2)]
    yield "LSTM", nn.LSTM(2, 3, num_layers=2, bidirectional=True, batch_first=True), [R(2, 4, 2)]
    yield "GRU", nn.GRU(2, 3, num_layers=2, bidirectional=True), [R(4, 2, 2), R(4, 2, 3)]
    yield "GRU without bias", nn.GRU(2, 3, bias=False), [R(4, 2, 2)]
    yield "RNNCell", nn.RNNCell(2, 3), [R(2, 2), R(2, 3)]
    yield "LSTMCell", nn.LSTMCell(2, 3), [R(2, 2)]
    yield "GRUCell", nn.GRUCell(2, 3), [R(2, 2), R(2, 3)]
    yield "MultiheadAttention", nn.MultiheadAttention(8, 2), [R(3, 2, 8), R(4, 2, 8), R(4, 2, 8)]
    apart = nn.MultiheadAttention(8, 2, kdim=3, vdim=5, batch_first=True)
    yield "MultiheadAttention of other widths", apart, [R(2, 3, 8), R(2, 4, 3), R(2, 4, 5)]
    yield "TransformerEncoderLayer", nn.TransformerEncoderLayer(8, 2, activation="gelu", norm_first=True, **STEP), [R(3, 2, 8)]
    yield "TransformerDecoderLayer", nn.TransformerDecoderLayer(8, 2, batch_first=True, **STEP), [R(2, 3, 8), R(2, 4, 8)]
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, batch_first=True, **STEP), 2, nn.LayerNorm(8))
    yield "TransformerEncoder", encoder, [R(2, 3, 8)]
    decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, bias=False, **STEP), 2)
    yield "TransformerDecoder", decoder, [R(3, 2, 8), R(4, 2, 8)]
    yield "Transformer", nn.Transformer(8, 2, num_encoder_layers=1, num_decoder_layers=1, **STEP), [R(4, 2, 8), R(3, 2, 8)]
    yield "ParameterList", nn.ParameterList([R(2), R(2, 3)]), None
    yield "ParameterDict", nn.ParameterDict({"a": R(2), "b": R(3)}), None
    yield "ModuleList", nn.ModuleList([nn.Linear(2, 3), nn.PReLU()]), None
    yield "ModuleDict", nn.ModuleDict({"first": nn.Linear(2, 3), "norm": nn.BatchNorm1d(2)}), None
    nested = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 2)))
    yield "Sequential", nested, [R(2, 3)]
    yield "CrossEntropyLoss", nn.CrossEntropyLoss(torch.ones(3)), [R(4, 3), whole(4, below=3)]
    yield "NLLLoss", nn.NLLLoss(torch.ones(3)), [R(4, 3).log_softmax(1), whole(4, below=3)]
    yield "BCELoss", nn.BCELoss(torch.ones(3)), [R(4, 3).sigmoid(), torch.rand(4, 3)]
    logits = nn.BCEWithLogitsLoss(torch.ones(3), pos_weight=torch.ones(3))
    yield "BCEWithLogitsLoss", logits, [R(4, 3), torch.rand(4, 3)]
    yield "MultiMarginLoss", nn.MultiMarginLoss(weight=torch.ones(3)), [R(4, 3), whole(4, below=3)]
    yield "MultiLabelSoftMarginLoss", nn.MultiLabelSoftMarginLoss(torch.ones(3)), [R(4, 3), whole(4, 3, below=2).float()]


def save_layers():
    tensors = {}
    for name, layer, inputs in layers():
        fill(layer)
        layer.eval()
        for key, value in layer.state_dict().items():
            tensors[f"{name}/state/{key}"] = value.clone()
        if inputs is None:
            continue
        with torch.no_grad():
            outputs = flat(layer(*inputs))
        for kind, values in (("input", inputs), ("output", outputs)):
            for i, value in enumerate(values):
                tensors[f"{name}/{kind}/{i}"] = value.contiguous()
    save_file(tensors, FOLDER / "layers.safetensors", {"torch": torch.__version__})


def save_optimizer(optimizer, file):
    """Is the function of docs/tensor.md."""
    saved = optimizer.state_dict()
    tensors = {}
    for parameter, state in saved["state"].items():
        for name, value in state.items():
            if isinstance(value, list):  # the history of L-BFGS
                value = torch.stack([v for v in value if v is not None])
            if value is not None:
                tensors[f"{parameter}.{name}"] = torch.as_tensor(value).contiguous()
    save_file(tensors, file, {"param_groups": json.dumps(saved["param_groups"], default=float)})


def save_training():
    """Trains a model with NAdam for 6 steps; saves it after 3 with its optimiser, and its loss in each step."""
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(8, 2))
    groups = [{"params": [p for p in model.parameters() if p.dim() > 1], "weight_decay": 0.1}]
    groups.append({"params": [p for p in model.parameters() if p.dim() == 1], "lr": 0.02})
    optimizer = torch.optim.NAdam(groups, lr=0.01, decoupled_weight_decay=True)
    x, y = R(5, 1, 4, 4), whole(5, below=2)
    losses = []
    for step in range(6):
        if step == 3:
            state = {name: value.clone() for name, value in model.state_dict().items()}
            save_optimizer(optimizer, FOLDER / "optimizer.safetensors")
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    save_file(state, FOLDER / "model.safetensors")
    tensors = {"x": x, "y": y, "losses": torch.tensor(losses[3:])}
    save_file(tensors, FOLDER / "training.safetensors")


if __name__ == "__main__":
    torch.manual_seed(1)
    torch.set_num_threads(1)
    save_layers()
    save_training()
