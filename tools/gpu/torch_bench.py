"""The workloads of bench.mjs in PyTorch, eager, float32 without TF32; one JSON array on standard output."""
import json
import statistics
import time

import torch
from torch import nn

torch.manual_seed(1)
device = "cuda"
rows = []


def timed(name, calls, unit, work, fn):
    def batch():
        start = time.perf_counter()
        for _ in range(calls):
            fn()
        torch.cuda.synchronize()
        return (time.perf_counter() - start) * 1e6 / calls

    batch()
    us = statistics.median(batch() for _ in range(20))
    rows.append({"name": name, "us": us, "unit": unit, "rate": work / us / 1e6 if unit else None})


with torch.no_grad():
    n = 1 << 26
    a, b = torch.randn(n, device=device), torch.randn(n, device=device)
    timed("add 64Mi float32", 10, "TB/s", 12 * n, lambda: a.add(b))
    timed("gelu 64Mi float32", 10, "TB/s", 8 * n, lambda: nn.functional.gelu(a))
    timed("sum 64Mi float32", 10, "TB/s", 4 * n, lambda: a.sum())
    timed("transposed copy 8Ki x 8Ki float32", 10, "TB/s", 8 * n, lambda: a.reshape(8192, 8192).t().contiguous())
    small = torch.randn(4, 4, device=device)
    timed("add 4 x 4 float32", 1000, "", 0, lambda: small.add(small))
    x = torch.randn(4096, 4096, device=device)
    timed("matmul 4096^3 float32", 3, "TFLOP/s", 2 * 4096**3, lambda: x @ x)
    logits = torch.randn(8192, 4096, device=device)
    timed("logSoftmax 8192 x 4096 float32", 10, "TB/s", 8 * 8192 * 4096, lambda: logits.log_softmax(1))

model = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.randn(32, 784, device=device)
y = torch.arange(32, device=device) % 10


def step():
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


timed("MLP 784-512-512-10 step, batch 32, eager", 50, "", 0, step)
print(json.dumps(rows))
