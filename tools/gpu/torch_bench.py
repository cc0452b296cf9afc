"""Times the workloads of bench.mjs and bench-ddp.mjs in PyTorch, under the same names, in float32 without TF32 and in
16-bit floats. Prints one JSON array to standard output."""
import json
import os
import statistics
import sys
import time

import torch
from torch import distributed as dist
from torch import nn
from torch.nn import functional as F

from torch_block import Block

torch.manual_seed(1)
torch.backends.cudnn.allow_tf32 = False
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


def leaf(dtype, *shape):
    return torch.randn(*shape, device=device).to(dtype).requires_grad_()


def backward(out, grad, leaves):
    """Runs backward and drops the gradients, so that the next call makes new ones."""
    out.backward(grad)
    for x in leaves:
        x.grad = None


with torch.no_grad():
    n = 1 << 26
    a, b = torch.randn(n, device=device), torch.randn(n, device=device)
    timed("copy 64Mi float32", 10, "TB/s", 8 * n, a.clone)
    timed("add 64Mi float32", 10, "TB/s", 12 * n, lambda: a.add(b))
    timed("gelu 64Mi float32", 10, "TB/s", 8 * n, lambda: F.gelu(a))
    timed("sum 64Mi float32", 10, "TB/s", 4 * n, lambda: a.sum())
    timed("dropout 64Mi float32", 10, "TB/s", 8 * n, lambda: F.dropout(a, 0.1))
    timed("randn 64Mi float32", 10, "TB/s", 4 * n, lambda: torch.randn(n, device=device))
    timed("transposed copy 8Ki x 8Ki float32", 10, "TB/s", 8 * n, lambda: a.reshape(8192, 8192).t().contiguous())
    small = torch.randn(4, 4, device=device)
    timed("add 4 x 4 float32", 1000, "", 0, lambda: small.add(small))
    x = torch.randn(4096, 4096, device=device)
    timed("matmul 4096^3 float32", 3, "TFLOP/s", 2 * 4096**3, lambda: x @ x)
    for name, dtype in (("float16", torch.float16), ("bfloat16", torch.bfloat16)):
        low = x.to(dtype)
        timed(f"matmul 4096^3 {name}", 3, "TFLOP/s", 2 * 4096**3, lambda: low @ low)
    for k, n in ((768, 2304), (3072, 768)):
        p, q = torch.randn(65536, k, device=device), torch.randn(k, n, device=device)
        for name, dtype in (("float32", torch.float32), ("bfloat16", torch.bfloat16)):
            left, right = p.to(dtype), q.to(dtype)
            timed(f"matmul 64Ki x {k} x {n} {name}", 3, "TFLOP/s", 2 * 65536 * k * n, lambda: left @ right)
    logits = torch.randn(8192, 4096, device=device)
    timed("logSoftmax 8192 x 4096 float32", 10, "TB/s", 8 * 8192 * 4096, lambda: logits.log_softmax(1))

batch, seq, width, heads = 16, 1024, 768, 12


def timed_attention(name, dtype, heads, **options):
    """Times attention of `heads` heads that share `width` columns, forward and both ways."""
    q, k, v = (leaf(dtype, batch, heads, seq, width // heads) for _ in range(3))
    grad = torch.randn(batch, heads, seq, width // heads, device=device).to(dtype)
    flops = (2 if "is_causal" in options else 4) * batch * seq**2 * width
    with torch.no_grad():
        timed(f"attention {name}", 3, "TFLOP/s", flops, lambda: F.scaled_dot_product_attention(q, k, v, **options))
    timed(f"attention {name}, both ways", 3, "TFLOP/s", 3.5 * flops,
          lambda: backward(F.scaled_dot_product_attention(q, k, v, **options), grad, (q, k, v)))


for name, dtype, size in (("float32", torch.float32, 4), ("bfloat16", torch.bfloat16, 2)):
    x, y = leaf(dtype, batch * seq, width), leaf(dtype, batch * seq, width)
    weight, bias = leaf(dtype, width), leaf(dtype, width)
    elements = batch * seq * width
    ones = torch.randn(batch * seq, width, device=device).to(dtype)
    with torch.no_grad():
        timed(f"layerNorm 16Ki x 768 {name}", 10, "TB/s", 2 * size * elements, lambda: F.layer_norm(x, (width,), weight, bias))
        timed(f"addLayerNorm 16Ki x 768 {name}", 10, "TB/s", 4 * size * elements, lambda: F.layer_norm(x + y, (width,), weight, bias))
    timed(f"layerNorm 16Ki x 768 {name}, both ways", 10, "TB/s", 5 * size * elements,
          lambda: backward(F.layer_norm(x, (width,), weight, bias), ones, (x, weight, bias)))
    timed_attention(f"16 x 12 x 1024 x 64 causal {name}", dtype, heads, is_causal=True)
timed_attention("16 x 12 x 1024 x 64 causal bfloat16, dropout 0.1", torch.bfloat16, heads, is_causal=True, dropout_p=0.1)
timed_attention("16 x 12 x 1024 x 64 bfloat16, an added mask", torch.bfloat16, heads,
                attn_mask=torch.randn(seq, seq, device=device).to(torch.bfloat16))
timed_attention("16 x 3 x 1024 x 256 causal bfloat16, dropout 0.1", torch.bfloat16, 3, is_causal=True, dropout_p=0.1)

for name, dtype in (("float32", torch.float32), ("bfloat16", torch.bfloat16)):
    x, w, b = leaf(dtype, 128, 64, 28, 28), leaf(dtype, 64, 64, 3, 3), leaf(dtype, 64)
    grad = torch.randn(128, 64, 28, 28, device=device).to(dtype)
    timed(f"conv2d 128 x 64 x 28 x 28, 64 of 3 x 3, {name}, both ways", 3, "TFLOP/s", 6 * 128 * 64 * 28 * 28 * 64 * 9,
          lambda: backward(F.conv2d(x, w, b, padding=1), grad, (x, w, b)))

layer = nn.BatchNorm2d(64).to(device)
x, grad = leaf(torch.float32, 128, 64, 28, 28), torch.randn(128, 64, 28, 28, device=device)
timed("batchNorm 128 x 64 x 28 x 28, both ways", 10, "TB/s", 4 * 8 * x.numel(),
      lambda: backward(layer(x), grad, (x, *layer.parameters())))
labels = torch.randint(0, 50304, (8192,), device=device)
for name, dtype, size in (("float32", torch.float32, 4), ("bfloat16", torch.bfloat16, 2)):
    logits = leaf(dtype, 8192, 50304)
    timed(f"crossEntropy 8192 x 50304 {name}, both ways", 3, "TB/s", 3 * size * 8192 * 50304,
          lambda: backward(F.cross_entropy(logits, labels), None, (logits,)))
table, row_grads = leaf(torch.float32, 50304, 768), torch.randn(8192, 768, device=device)
timed("embedding 8192 of 50304 x 768 float32, both ways", 3, "", 0,
      lambda: backward(F.embedding(labels, table), row_grads, (table,)))
with torch.no_grad():
    scores, long = torch.randn(64, 50304, device=device), torch.randn(10_000_000, device=device)
    timed("cumsum 64 x 50304 float32", 10, "TB/s", 8 * scores.numel(), lambda: scores.cumsum(1))
    timed("topk 50 of 64 x 50304 float32", 10, "", 0, lambda: scores.topk(50))
    timed("cumsum 10M float32", 10, "TB/s", 8 * long.numel(), lambda: long.cumsum(0))
    timed("sort 10M float32", 3, "", 0, lambda: long.sort(stable=True))


block, hidden, ones = Block(width, heads).to(device), leaf(torch.float32, 8, seq, width), torch.randn(8, seq, width, device=device)
timed("transformer block 8 x 1024 x 768 float32, both ways", 3, "", 0,
      lambda: backward(block(hidden), ones, (hidden, *block.parameters())))
parameters = [leaf(torch.float32, 1 << 20) for _ in range(100)]
for parameter in parameters:
    parameter.grad = torch.randn_like(parameter)
adamw = torch.optim.AdamW(parameters, lr=1e-4, fused=True)
timed("AdamW 100Mi float32", 10, "TB/s", 28 * 100 * (1 << 20), adamw.step)


def mlp(wrap=lambda net: net):
    """Makes a training step, as mlp() in bench-common.mjs does."""
    net = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)).to(device)
    model = wrap(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    x = torch.randn(32, 784, device=device)
    y = torch.arange(32, device=device) % 10

    def step():
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def captured(make, warmup):
    """Returns a function that runs the step from `make` as a CUDA graph."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        step = make()
        for _ in range(warmup):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()

    def replay(_keeps_parameters_alive=step):
        graph.replay()

    return replay


timed("MLP 784-512-512-10 step, batch 32, eager", 50, "", 0, mlp())
timed("MLP 784-512-512-10 step, batch 32, captured", 50, "", 0, captured(mlp, 3))


def ddp(net):
    return nn.parallel.DistributedDataParallel(net, device_ids=[0], gradient_as_bucket_view=True)


def compare(name, bare, with_ddp):
    """Measures both steps in turns, as compare() in bench-ddp.mjs does."""

    def batch(step):
        start = time.perf_counter()
        for _ in range(50):
            step()
        torch.cuda.synchronize()
        return (time.perf_counter() - start) * 1e6 / 50

    pairs = [(batch(bare), batch(with_ddp)) for _ in range(21)]
    alone, us = (statistics.median(times) for times in zip(*pairs))
    rows.append({"name": name, "us": us, "unit": "× the bare step", "rate": us / alone})


def enqueue(name, count):
    x, times = torch.zeros(count, device=device), []
    for _ in range(21):
        start = time.perf_counter()
        for _ in range(100):
            dist.all_reduce(x)
        times.append((time.perf_counter() - start) * 1e6 / 100)
        torch.cuda.synchronize()
    rows.append({"name": name, "us": statistics.median(times), "unit": "", "rate": None})


try:
    os.environ["TORCH_NCCL_ASYNC_ERROR_HANDLING"] = "0"  # PyTorch's guide asks for this to capture DDP
    dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)
    enqueue("allReduce of 16 float32 by one rank, until it is on the stream", 16)
    enqueue("allReduce of 16Mi float32 by one rank, until it is on the stream", 1 << 24)
    compare("MLP 784-512-512-10 step, batch 32, DDP of one rank, eager", mlp(), mlp(ddp))
    # DDP needs eleven warm-up steps before its step can be captured.
    compare("MLP 784-512-512-10 step, batch 32, DDP of one rank, captured", captured(mlp, 3), captured(lambda: mlp(ddp), 11))
except Exception as error:  # noqa: BLE001: print what has been measured so far
    print(f"torch_bench.py: {error}", file=sys.stderr)
print(json.dumps(rows))
