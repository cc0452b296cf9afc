"""Computes with PyTorch the optimisers, schedules and trainings of training.test.ts; writes JSON on standard output.

    python3 training.py > training.json

Inputs come from formulas that training.ts, optimizers.ts and wave.ts compute, too; floats are float32.
"""
import json
import math
import sys

import torch
import torch.nn.functional as F


def wave(count, n, scale=1.5):
    """Returns the elements of tensor number n: sin(0.7 i + n) times `scale`."""
    return [math.sin(i * 0.7 + n) * scale for i in range(count)]


def hashed(i, n):
    """Returns a number between -1 and 1. Unlike those of a wave, matrices of such numbers have full rank."""
    x = math.sin(i * 12.9898 + n * 78.233) * 43758.5453
    return (x - math.floor(x)) * 2 - 1


def tensor(shape, n, grad=True, dtype=torch.float32):
    count = math.prod(shape)
    return torch.tensor(wave(count, n), dtype=dtype).reshape(shape).requires_grad_(grad)


def numbers(t):
    digits = 10 if t.dtype == torch.float64 else 8
    return [float(f"{x:.{digits}g}") for x in t.detach().double().flatten().tolist()]


def labels(count, classes):
    return torch.tensor([(i * 5 + 1) % classes for i in range(count)])


class Lion(torch.optim.Optimizer):
    """Lion by Chen et al. 2023, algorithm 2; PyTorch has none."""

    def __init__(self, params, lr, betas, weight_decay):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure):
        with torch.enable_grad():
            closure()
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.sub_(torch.sign(beta1 * m + (1 - beta1) * p.grad) * group["lr"])
                m.mul_(beta2).add_(p.grad, alpha=1 - beta2)


O = torch.optim
OPTIMIZERS = {
    "SGD": lambda p: O.SGD(p, lr=0.05),
    "SGD momentum": lambda p: O.SGD(p, lr=0.02, momentum=0.9, dampening=0.1, weight_decay=0.01),
    "SGD nesterov": lambda p: O.SGD(p, lr=0.02, momentum=0.9, nesterov=True),
    "Adam": lambda p: O.Adam(p, lr=0.02, weight_decay=0.01),
    "Adam amsgrad": lambda p: O.Adam(p, lr=0.02, betas=(0.8, 0.95), amsgrad=True),
    "Adam decoupled": lambda p: O.Adam(p, lr=0.02, weight_decay=0.1, decoupled_weight_decay=True),
    "AdamW": lambda p: O.AdamW(p, lr=0.02, weight_decay=0.1),
    "RMSprop": lambda p: O.RMSprop(p, lr=0.01),
    "RMSprop centered": lambda p: O.RMSprop(p, lr=0.005, alpha=0.9, momentum=0.5, centered=True, weight_decay=0.01),
    "Lion": lambda p: Lion(p, lr=0.01, betas=(0.9, 0.99), weight_decay=0.1),
    "Adagrad": lambda p: O.Adagrad(p, lr=0.05),
    "Adagrad decay": lambda p: O.Adagrad(p, lr=0.1, lr_decay=0.02, weight_decay=0.01, initial_accumulator_value=0.1, eps=1e-8, maximize=True),
    "Adadelta": lambda p: O.Adadelta(p),
    "Adadelta decay": lambda p: O.Adadelta(p, lr=0.5, rho=0.8, eps=1e-4, weight_decay=0.02, maximize=True),
    "Adamax": lambda p: O.Adamax(p, lr=0.02),
    "Adamax decay": lambda p: O.Adamax(p, lr=0.01, betas=(0.4, 0.9), weight_decay=0.1, maximize=True),
    "NAdam": lambda p: O.NAdam(p, lr=0.02),
    "NAdam decay": lambda p: O.NAdam(p, lr=0.01, betas=(0.8, 0.95), weight_decay=0.05, momentum_decay=0.01, maximize=True),
    "NAdam decoupled": lambda p: O.NAdam(p, lr=0.02, weight_decay=0.1, decoupled_weight_decay=True),
    "RAdam": lambda p: O.RAdam(p, lr=0.02),
    "RAdam decay": lambda p: O.RAdam(p, lr=0.02, betas=(0.8, 0.95), weight_decay=0.05, maximize=True),
    "RAdam decoupled": lambda p: O.RAdam(p, lr=0.02, betas=(0.9, 0.99), weight_decay=0.1, decoupled_weight_decay=True),
    "ASGD": lambda p: O.ASGD(p, lr=0.05),
    "ASGD averaged": lambda p: O.ASGD(p, lr=0.05, lambd=0.02, alpha=0.6, t0=2, weight_decay=0.01),
    "Rprop": lambda p: O.Rprop(p),
    "Rprop bounds": lambda p: O.Rprop(p, lr=0.02, etas=(0.4, 1.3), step_sizes=(0.005, 0.1), maximize=True),
    "Adafactor": lambda p: O.Adafactor(p),
    "Adafactor decay": lambda p: O.Adafactor(p, lr=0.05, beta2_decay=-0.6, eps=(1e-4, 1e-2), d=1.5, weight_decay=0.1, maximize=True),
    "Muon": lambda p: O.Muon(p, lr=0.02),
    "Muon adjusted": lambda p: O.Muon(p, lr=0.02, momentum=0.8, nesterov=False, weight_decay=0.01, ns_steps=3, adjust_lr_fn="match_rms_adamw"),
    "LBFGS": lambda p: O.LBFGS(p, lr=0.1, max_iter=4, history_size=3),
    "LBFGS searching": lambda p: O.LBFGS(p, max_iter=3, line_search_fn="strong_wolfe"),
}


def parameters_of(name, dtype):
    shapes = [[4, 3], [2, 3]] if name.startswith("Muon") else [[7], [2, 3], [2, 2, 3]]
    return [tensor(shape, n + 1, dtype=dtype) for n, shape in enumerate(shapes)]


def optimizer_case(name, dtype, seen_at):
    """Returns the parameters after these steps."""
    params = parameters_of(name, dtype)
    optimizer = OPTIMIZERS[name](params)
    seen = []
    for step in range(seen_at[-1]):
        optimizer_step(optimizer, params, step)
        if step + 1 in seen_at:
            seen.append([x for p in params for x in numbers(p)])
    return seen


def saved_tensors(state):
    """Returns the tensors of state_dict()["state"] by name, as docs/tensor.md writes them to a file."""
    tensors = {}
    for parameter, own in state.items():
        for name, value in own.items():
            if isinstance(value, list):
                value = torch.stack([v for v in value if v is not None])
            if value is not None:
                tensors[f"{parameter}.{name}"] = torch.as_tensor(value)
    return tensors


def resumed_case(name):
    """Returns the state of an optimiser after 7 steps, and the parameters then and after 20 steps."""
    params = parameters_of(name, torch.float64)
    optimizer = OPTIMIZERS[name](params)
    for step in range(20):
        if step == 7:
            state = optimizer.state_dict()
            tensors = {
                key: {"shape": list(t.shape), "values": numbers(t)}
                for key, t in saved_tensors(state["state"]).items()
            }
            case = {"step": step, "groups": state["param_groups"], "tensors": tensors}
            case["params"] = [numbers(p) for p in params]
        optimizer_step(optimizer, params, step)
    return {**case, "after": [x for p in params for x in numbers(p)]}


def optimizer_step(optimizer, params, step):
    """Makes a step. The gradient of element i of parameter n is p + sin(0.3 step + i + n)."""

    def closure():
        optimizer.zero_grad()
        losses = []
        for n, p in enumerate(params):
            push = torch.tensor([math.sin(step * 0.3 + i + n) for i in range(p.numel())], dtype=p.dtype)
            losses.append((p * p).sum() * 0.5 + (p.flatten() * push).sum())
        loss = sum(losses)
        loss.backward()
        return loss

    optimizer.step(closure)


def schedule_rates(make):
    optimizer = torch.optim.SGD([tensor([1], 0)], lr=0.4, momentum=0.9)
    schedule = make(optimizer)
    rates = []
    for step in range(24):
        rates.append(float(f"{optimizer.param_groups[0]['lr']:.10g}"))
        optimizer.step()
        if step == 23:
            break  # a cycle of 23 steps takes no more
        if isinstance(schedule, S.ReduceLROnPlateau):
            schedule.step(math.sin(step * 0.8) / (1 + step * 0.3))
        else:
            schedule.step()
    return rates


S = torch.optim.lr_scheduler
SWALR = torch.optim.swa_utils.SWALR
SCHEDULES = {
    "StepLR": lambda o: S.StepLR(o, 5, 0.5),
    "MultiStepLR": lambda o: S.MultiStepLR(o, [3, 9], 0.3),
    "LambdaLR": lambda o: S.LambdaLR(o, lambda step: 1 / (1 + step)),
    "ExponentialLR": lambda o: S.ExponentialLR(o, 0.9),
    "CosineAnnealingLR": lambda o: S.CosineAnnealingLR(o, 10, 0.01),
    "LinearLR": lambda o: S.LinearLR(o, 0.25, 0.75, 6),
    "OneCycleLR": lambda o: S.OneCycleLR(o, 1.0, 24),
    "OneCycleLR to the end": lambda o: S.OneCycleLR(o, 1.0, 23),
    "OneCycleLR to the end, linear": lambda o: S.OneCycleLR(o, 1.0, 23, anneal_strategy="linear"),
    "OneCycleLR in three phases": lambda o: S.OneCycleLR(o, 1.0, 24, pct_start=0.4, three_phase=True, anneal_strategy="linear"),
    "ConstantLR": lambda o: S.ConstantLR(o, 0.3, 7),
    "PolynomialLR": lambda o: S.PolynomialLR(o, 15, 2.0),
    "MultiplicativeLR": lambda o: S.MultiplicativeLR(o, lambda step: 1 - 1 / (1 + step)),
    "CosineAnnealingWarmRestarts": lambda o: S.CosineAnnealingWarmRestarts(o, 3, 2, 0.01),
    "CosineAnnealingWarmRestarts of equal length": lambda o: S.CosineAnnealingWarmRestarts(o, 5),
    "CyclicLR": lambda o: S.CyclicLR(o, 0.1, 0.5, 4),
    "CyclicLR that halves": lambda o: S.CyclicLR(o, 0.1, 0.5, 3, 2, mode="triangular2"),
    "CyclicLR that decays": lambda o: S.CyclicLR(o, [0.1], [0.5], 3, mode="exp_range", gamma=0.9),
    "CyclicLR by a function": lambda o: S.CyclicLR(o, 0.1, 0.5, 3, scale_fn=lambda x: 1 / x),
    "ReduceLROnPlateau": lambda o: S.ReduceLROnPlateau(o, patience=2),
    "ReduceLROnPlateau upwards": lambda o: S.ReduceLROnPlateau(o, "max", 0.5, 1, 0.01, "abs", 2, 0.03),
    "ChainedScheduler": lambda o: S.ChainedScheduler([S.ConstantLR(o, 0.1, 4), S.ExponentialLR(o, 0.9), S.CosineAnnealingLR(o, 30)]),
    "SWALR": lambda o: SWALR(o, 0.05, anneal_epochs=8),
    "SWALR linear": lambda o: SWALR(o, [0.05], anneal_epochs=6, anneal_strategy="linear"),
    "SWALR at once": lambda o: SWALR(o, 0.05, anneal_epochs=0),
    "SequentialLR": lambda o: S.SequentialLR(o, [S.LinearLR(o, 0.1, 1, 4), S.CosineAnnealingLR(o, 20)], [4]),
}


U = torch.optim.swa_utils
AVERAGES = {
    "SWA": {},
    "SWA with buffers": {"use_buffers": True},
    "EMA": {"multi_avg_fn": U.get_ema_multi_avg_fn(0.8)},
    "EMA of one": {"avg_fn": U.get_ema_avg_fn(0.3)},
    "SWA of one": {"avg_fn": U.get_swa_avg_fn()},
    "SWA of all": {"multi_avg_fn": U.get_swa_multi_avg_fn()},
}


def average_case(options):
    """Returns parameters and buffers of the average of four models, then the statistics that update_bn computes."""
    model = torch.nn.BatchNorm1d(3)
    averaged = U.AveragedModel(model, **options)
    for n in range(4):
        with torch.no_grad():
            model.weight.copy_(tensor([3], n, grad=False))
            model.bias.copy_(tensor([3], n + 4, grad=False))
        model(tensor([4, 3], n, grad=False))
        averaged.update_parameters(model)
    seen = [x for t in averaged.state_dict().values() for x in numbers(t)]
    U.update_bn([[tensor([5, 3], n, grad=False)] for n in range(3)], averaged)
    return seen + [x for t in averaged.buffers() for x in numbers(t)]


def weights(shape, n):
    fan_in = math.prod(shape[1:]) if len(shape) > 1 else shape[0]
    values = [hashed(i, n) * 1.5 / math.sqrt(fan_in) for i in range(math.prod(shape))]
    return torch.tensor(values, dtype=torch.float32).reshape(shape).requires_grad_()


def train(params, optimizer, loss_of):
    losses = []
    for step in range(200):
        loss = loss_of(step, *params)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(f"{loss.item():.8g}"))
    return losses


def batch(step, rows, cols):
    values = [math.sin(step % 10 + i * 0.37) for i in range(rows * cols)]
    return torch.tensor(values, dtype=torch.float32).reshape(rows, cols)


def mlp():
    params = [weights(s, n) for n, s in enumerate([[32, 12], [32], [32, 32], [32], [5, 32], [5]])]

    def loss(step, w1, b1, w2, b2, w3, b3):
        x = batch(step, 8, 12)
        h = F.relu(F.linear(x, w1, b1))
        h = F.relu(F.linear(h, w2, b2))
        return F.cross_entropy(F.linear(h, w3, b3), labels(8, 5))

    return train(params, torch.optim.SGD(params, lr=0.0015, momentum=0.9), loss)


def gpt():
    """Trains a block of pre-norm attention and MLP with tied embeddings: 2 heads of 8, 12 tokens, 11 words."""
    shapes = [[11, 16], [12, 16], [48, 16], [16, 16], [64, 16], [16, 64]]
    params = [weights(s, n) for n, s in enumerate(shapes)]
    norm = lambda x: F.layer_norm(x, [16])

    def loss(step, tokens_table, places, qkv, out, up, down):
        tokens = torch.tensor([[(i * 3 + step % 7 + b) % 11 for i in range(13)] for b in range(2)])
        x = F.embedding(tokens[:, :-1], tokens_table) + places
        q, k, v = [h.reshape(2, 12, 2, 8).transpose(1, 2) for h in F.linear(norm(x), qkv).split(16, -1)]
        scores = q @ k.transpose(2, 3) / math.sqrt(8)
        later = torch.ones(12, 12).triu(1).bool()
        mixed = (scores.masked_fill(later, -math.inf).softmax(-1) @ v).transpose(1, 2).reshape(2, 12, 16)
        x = x + F.linear(mixed, out)
        x = x + F.linear(F.gelu(F.linear(norm(x), up)), down)
        return F.cross_entropy(F.linear(norm(x), tokens_table).reshape(-1, 11), tokens[:, 1:].reshape(-1))

    return train(params, torch.optim.AdamW(params, lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1), loss)


def cnn():
    """Trains two convolutions, the second strided, with max pooling, on images of 8 × 8."""
    params = [weights(s, n) for n, s in enumerate([[4, 1, 3, 3], [4], [8, 4, 3, 3], [8], [5, 8 * 2 * 2], [5]])]

    def loss(step, w1, b1, w2, b2, w3, b3):
        x = batch(step, 6, 64).reshape(6, 1, 8, 8)
        h = F.max_pool2d(F.relu(F.conv2d(x, w1, b1, padding=1)), 2)
        h = F.relu(F.conv2d(h, w2, b2, stride=2, padding=1))
        return F.cross_entropy(F.linear(h.flatten(1), w3, b3), labels(6, 5))

    return train(params, torch.optim.SGD(params, lr=0.0003, momentum=0.9), loss)


if __name__ == "__main__":
    torch.set_num_threads(1)
    result = {
        "torch": torch.__version__,
        "optimizers": {
            name: {
                "float32": optimizer_case(name, torch.float32, [1, 20, 100]),
                "float64": optimizer_case(name, torch.float64, [5, 20]),
            }
            for name in OPTIMIZERS
        },
        "resumed": {name: resumed_case(name) for name in OPTIMIZERS if not name.startswith("Lion")},
        "schedules": {name: schedule_rates(make) for name, make in SCHEDULES.items()},
        "averages": {name: average_case(options) for name, options in AVERAGES.items()},
        "training": {"mlp": mlp(), "cnn": cnn(), "gpt": gpt()},
    }
    json.dump(result, sys.stdout, separators=(",", ":"))
    print()
