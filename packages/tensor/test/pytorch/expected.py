"""What PyTorch gives for the cases of compare.test.ts, as JSON on standard output.

    python3 expected.py > expected.json

Inputs come from a formula that both sides compute: element i of the tensor number n is sin(i * 0.7 + n) * 1.5. A case is
a list of shapes and a function of tensors; its loss is the sum of the output times cos(i). Float32 throughout.
"""
import json
import math
import sys

import torch
import torch.nn.functional as F


def wave(count, n, scale=1.5):
    return [math.sin(i * 0.7 + n) * scale for i in range(count)]


def hashed(i, n):
    """Between -1 and 1, without the regularity of a wave, whose matrices have rank 2."""
    x = math.sin(i * 12.9898 + n * 78.233) * 43758.5453
    return (x - math.floor(x)) * 2 - 1


def tensor(shape, n, grad=True):
    count = math.prod(shape)
    return torch.tensor(wave(count, n), dtype=torch.float32).reshape(shape).requires_grad_(grad)


def numbers(t):
    return [float(f"{x:.8g}") for x in t.detach().double().flatten().tolist()]


def labels(count, classes):
    return torch.tensor([(i * 5 + 1) % classes for i in range(count)])


def positive(x):
    return x.abs() + 0.3


M = [3, 4]
mask = lambda x: torch.arange(x.numel()).reshape(x.shape) % 3 == 0
weight = torch.tensor([0.5, 1.0, 2.0, 0.25])
ignoring = torch.tensor([2, -100, 0])

OPS = {
    **{name: ([M], getattr(torch, name)) for name in
       "neg abs exp square sin cos tanh sigmoid relu erf floor ceil round trunc sign".split()},
    **{name: ([M], lambda x, f=getattr(torch, name): f(positive(x))) for name in "log sqrt rsqrt".split()},
    "gelu": ([M], F.gelu),
    "gelu tanh": ([M], lambda x: F.gelu(x * 3, approximate="tanh")),
    "silu": ([M], F.silu),
    "clamp": ([M], lambda x: x.clamp(-0.5, 0.8)),
    "add": ([M, [4]], torch.add),
    "sub": ([M, [3, 1]], torch.sub),
    "mul": ([M, [4]], torch.mul),
    "div": ([M, [4]], lambda x, y: x / positive(y)),
    "pow": ([M, M], lambda x, y: positive(x) ** y),
    "maximum": ([M, M], torch.maximum),
    "minimum": ([M, [4]], torch.minimum),
    "where": ([M, M], lambda x, y: torch.where(mask(x), x, y)),
    "maskedFill": ([M], lambda x: x.masked_fill(mask(x), 2)),
    "matmul": ([[3, 4], [4, 2]], torch.matmul),
    "matmul batched": ([[2, 3, 4], [4, 2]], torch.matmul),
    "matmul stretched": ([[2, 1, 3, 4], [3, 4, 2]], torch.matmul),
    "matmul vector": ([[3, 4], [4]], torch.matmul),
    "linear": ([[2, 3, 4], [5, 4], [5]], F.linear),
    "sum": ([[2, 3, 4]], lambda x: x.sum((0, 2))),
    "mean": ([[2, 3, 4]], lambda x: x.mean(1)),
    "prod": ([M], lambda x: x.prod(1)),
    "max": ([M], lambda x: x.amax(1)),
    "min": ([M], lambda x: x.amin(0)),
    "variance": ([M], lambda x: x.var(1)),
    "std": ([M], lambda x: x.std(0, keepdim=True)),
    "logSumExp": ([M], lambda x: x.logsumexp(1)),
    "cumsum": ([M], lambda x: x.cumsum(1)),
    "softmax": ([[2, 3, 4]], lambda x: x.softmax(1)),
    "logSoftmax": ([M], lambda x: x.log_softmax(-1)),
    "permute": ([[2, 3, 4]], lambda x: x.permute(2, 0, 1)),
    "slice": ([[3, 5]], lambda x: x[1:, ::2]),
    "expand": ([[3, 1]], lambda x: x.expand(2, 3, 4)),
    "cat": ([[2, 3], [2, 1]], lambda x, y: torch.cat([x, y], 1)),
    "stack": ([M, M], lambda x, y: torch.stack([x, y], 1)),
    "tril": ([[4, 4]], torch.tril),
    "triu": ([[4, 4]], lambda x: x.triu(1)),
    "gather": ([M], lambda x: x.gather(1, labels(6, 4).reshape(3, 2))),
    "indexSelect": ([M], lambda x: x.index_select(0, labels(5, 3))),
    "scatterAdd": ([M, [3, 2]], lambda x, y: x.scatter_add(1, labels(6, 4).reshape(3, 2), y)),
    "embedding": ([[5, 3]], lambda x: F.embedding(labels(6, 5).reshape(2, 3), x)),
    "sort": ([M], lambda x: x.sort(1, descending=True)[0]),
    "topk": ([M], lambda x: x.topk(2)[0]),
    "conv2d": ([[2, 4, 5, 5], [6, 2, 3, 3], [6]], lambda x, w, b: F.conv2d(x, w, b, stride=2, padding=1, groups=2)),
    "conv1d": ([[2, 3, 9], [4, 3, 3], [4]], lambda x, w, b: F.conv1d(x, w, b, dilation=2)),
    "maxPool2d": ([[1, 2, 6, 6]], lambda x: F.max_pool2d(x, 3, stride=2, padding=1)),
    "avgPool2d": ([[1, 2, 6, 6]], lambda x: F.avg_pool2d(x, 3, stride=2, padding=1)),
    "adaptiveAvgPool2d": ([[1, 2, 5, 7]], lambda x: F.adaptive_avg_pool2d(x, (2, 3))),
    "batchNorm": ([[3, 2, 4], [2], [2]], lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True)),
    "layerNorm": ([[2, 3, 4], [4], [4]], lambda x, w, b: F.layer_norm(x, [4], w, b)),
    "rmsNorm": ([[3, 4], [4]], lambda x, w: x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * w),
    "attention": ([[2, 2, 3, 4]] * 3, lambda q, k, v: (q @ k.mT / 2).softmax(-1) @ v),
    "attention causal": ([[2, 2, 3, 4]] * 3, lambda q, k, v: (q @ k.mT / 2).masked_fill(
        torch.ones(3, 3).triu(1).bool(), -math.inf).softmax(-1) @ v),
    "crossEntropy": ([M], lambda x: F.cross_entropy(x, labels(3, 4))),
    "crossEntropy weighted": (
        [M], lambda x: F.cross_entropy(x, ignoring, weight=weight, label_smoothing=0.1)),
    "crossEntropy smoothed": ([M], lambda x: F.cross_entropy(x, ignoring, label_smoothing=0.2, reduction="none")),
    "crossEntropy soft": ([M, M], lambda x, y: F.cross_entropy(x, y.softmax(1), weight=weight)),
    "crossEntropy wide": ([[2, 4, 3]], lambda x: F.cross_entropy(x, labels(6, 4).reshape(2, 3), weight=weight)),
    "nllLoss": ([M], lambda x: F.nll_loss(x.log_softmax(1), ignoring, weight=weight)),
    "mseLoss": ([M, M], F.mse_loss),
    "l1Loss": ([M, M], F.l1_loss),
    "huberLoss": ([M, M], lambda x, y: F.huber_loss(x, y, delta=0.5)),
    "smoothL1Loss": ([M, M], lambda x, y: F.smooth_l1_loss(x, y, beta=0.4, reduction="sum")),
    "bce": ([M, M], lambda x, y: F.binary_cross_entropy(x.sigmoid(), y.detach().sigmoid())),
    "bceWithLogits": ([M, M], lambda x, y: F.binary_cross_entropy_with_logits(x, y.sigmoid(), pos_weight=weight)),
    "klDiv": ([M, M], lambda x, y: F.kl_div(x.log_softmax(1), y.softmax(1), reduction="batchmean")),
    "cosineSimilarity": ([M, M], lambda x, y: F.cosine_similarity(x, y, 1)),
    "cosineEmbeddingLoss": (
        [M, M], lambda x, y: F.cosine_embedding_loss(x, y, torch.tensor([1, -1, -1]), margin=0.1)),
    "crossEntropy ignoring": ([M], lambda x: F.cross_entropy(x, ignoring)),
    "flip": ([[2, 3, 4]], lambda x: x.flip(0, 2)),
    "roll": ([[2, 3, 4]], lambda x: x.roll(-3, 2)),
    "roll flat": ([[2, 3, 4]], lambda x: x.roll(5)),
    "repeat": ([M], lambda x: x.repeat(2, 1, 3)),
    "unflatten": ([[3, 8]], lambda x: x.unflatten(1, (2, -1))),
    "norm": ([M], lambda x: x.norm(dim=1)),
    "norm 3": ([M], lambda x: x.norm(3, dim=0, keepdim=True)),
    "norm inf": ([M], lambda x: x.norm(math.inf, dim=1)),
    "varMean": ([M], lambda x: sum(torch.var_mean(x, 1))),
    "einsum": ([[2, 3, 4], [2, 4, 5], [5]], lambda x, y, z: torch.einsum("bij,bjk,k->ib", x, y, z)),
    "einsum implicit": ([[4, 3], [4, 2]], lambda x, y: torch.einsum("ba,bc", x, y)),
    "leakyRelu": ([M], lambda x: F.leaky_relu(x, 0.2)),
    "elu": ([M], lambda x: F.elu(x, 0.7)),
    "softplus": ([M], F.softplus),
}


def op_case(shapes, fn):
    inputs = [tensor(shape, n) for n, shape in enumerate(shapes)]
    out = fn(*inputs)
    factors = torch.tensor([math.cos(i) for i in range(out.numel())], dtype=torch.float32).reshape(out.shape)
    (out * factors).sum().backward()
    return [numbers(out), *[numbers(x.grad) if x.grad is not None else [0.0] * x.numel() for x in inputs]]


class Lion(torch.optim.Optimizer):
    """Chen et al. 2023, algorithm 2; PyTorch has none."""

    def __init__(self, params, lr, betas, weight_decay):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
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
    "AdamW": lambda p: O.AdamW(p, lr=0.02, weight_decay=0.1),
    "RMSprop": lambda p: O.RMSprop(p, lr=0.01),
    "RMSprop centered": lambda p: O.RMSprop(p, lr=0.005, alpha=0.9, momentum=0.5, centered=True, weight_decay=0.01),
    "Lion": lambda p: Lion(p, lr=0.01, betas=(0.9, 0.99), weight_decay=0.1),
}


def optimizer_case(make):
    """100 steps; the gradient of element i of parameter n in step s is p + sin(s * 0.3 + i + n)."""
    params = [tensor([7], 1), tensor([2, 3], 2)]
    optimizer = make(params)
    seen = []
    for step in range(100):
        optimizer.zero_grad()
        for n, p in enumerate(params):
            push = torch.tensor([math.sin(step * 0.3 + i + n) for i in range(p.numel())], dtype=torch.float32)
            ((p * p).sum() * 0.5 + (p.flatten() * push).sum()).backward()
        optimizer.step()
        if step in (0, 9, 99):
            seen.append([x for p in params for x in numbers(p)])
    return seen


def schedule_rates(make):
    optimizer = torch.optim.SGD([tensor([1], 0)], lr=0.4, momentum=0.9)
    schedule = make(optimizer)
    rates = []
    for _ in range(24):
        rates.append(float(f"{optimizer.param_groups[0]['lr']:.10g}"))
        optimizer.step()
        schedule.step()
    return rates


S = torch.optim.lr_scheduler
SCHEDULES = {
    "StepLR": lambda o: S.StepLR(o, 5, 0.5),
    "MultiStepLR": lambda o: S.MultiStepLR(o, [3, 9], 0.3),
    "ExponentialLR": lambda o: S.ExponentialLR(o, 0.9),
    "CosineAnnealingLR": lambda o: S.CosineAnnealingLR(o, 10, 0.01),
    "LinearLR": lambda o: S.LinearLR(o, 0.25, 0.75, 6),
    "OneCycleLR": lambda o: S.OneCycleLR(o, 1.0, 24),
    "OneCycleLR in three phases": lambda o: S.OneCycleLR(o, 1.0, 24, pct_start=0.4, three_phase=True, anneal_strategy="linear"),
    "SequentialLR": lambda o: S.SequentialLR(o, [S.LinearLR(o, 0.1, 1, 4), S.CosineAnnealingLR(o, 20)], [4]),
}


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
    """One block of pre-norm attention and MLP, with tied embeddings; 2 heads of 8, 12 tokens of a vocabulary of 11."""
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
    """Two convolutions, one strided, with max pooling, on 8 × 8."""
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
        "ops": {name: op_case(*case) for name, case in OPS.items()},
        "optimizers": {name: optimizer_case(make) for name, make in OPTIMIZERS.items()},
        "schedules": {name: schedule_rates(make) for name, make in SCHEDULES.items()},
        "training": {"mlp": mlp(), "cnn": cnn(), "gpt": gpt()},
    }
    json.dump(result, sys.stdout, separators=(",", ":"))
    print()
