"""Measures torch.distributed with Gloo, which PyTorch users have on CPUs, by the rule of harness.h, except that it
times every call alone, also below 10 us.

  torch_gloo.py --ranks 2 --rank 0 --store DIR --iface lo --verb all-reduce --min 4 --max 67108864      on every rank

DIR is an empty folder that all ranks can read and write.
"""
import argparse
import json
import os
import time

parser = argparse.ArgumentParser()
for name, default in (("ranks", 2), ("rank", 0), ("min", 4), ("max", 64 << 20), ("factor", 4)):
    parser.add_argument(f"--{name}", type=int, default=default)
for name, default in (("store", ""), ("iface", "lo"), ("verb", "all-reduce")):
    parser.add_argument(f"--{name}", default=default)
parser.add_argument("--seconds", type=float, default=0.3)
options = parser.parse_args()
os.environ["GLOO_SOCKET_IFNAME"] = options.iface
os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch  # noqa: E402  (reads the environment)
import torch.distributed as dist  # noqa: E402

rank, ranks = options.rank, options.ranks
IN_PLACE = ("all-reduce", "reduce", "broadcast")
PARTS = {"all-gather": ranks, "gather": ranks, "scatter": ranks, "all-to-all": ranks, "barrier": 0}


def term(r, i):
    return ((i * 5 + r * 3) % 7).float()


def message(number, i):
    return ((i * 5 + number * 37) % 101).float()


class Case:
    """The buffers of one size, as lists of parts."""

    def __init__(self, verb, count):
        self.verb, self.count = verb, count
        i = torch.arange(count)
        gathers, root = verb in ("all-gather", "gather"), rank == 0
        if verb in ("all-reduce", "reduce"):
            self.given = [term(rank, i)]
            self.expected = [sum(term(r, i) for r in range(ranks))] if verb == "all-reduce" or root else []
        elif verb == "broadcast":
            self.given, self.expected = [message(rank, i)], [message(0, i)]
        elif verb == "scatter":
            self.given = [message(p, i) for p in range(ranks)] if root else []
            self.expected = [message(rank, i)]
        elif verb == "all-to-all":
            self.given = [message(rank * ranks + p, i) for p in range(ranks)]
            self.expected = [message(p * ranks + rank, i) for p in range(ranks)]
        else:
            self.given = [message(rank, i)] if gathers else []
            self.expected = [message(p, i) for p in range(ranks)] if verb == "all-gather" or (gathers and root) else []
        self.input = [torch.zeros(count) for _ in self.given]
        self.output = self.input if verb in IN_PLACE else [torch.zeros(count) for _ in self.expected]
        if verb == "all-to-all":
            self.input, self.output = [torch.zeros(ranks * count)], [torch.zeros(ranks * count)]
            self.given, self.expected = [torch.cat(self.given)], [torch.cat(self.expected)]

    def call(self):
        verb, source, target = self.verb, self.input, self.output
        if verb == "all-reduce":
            dist.all_reduce(target[0])
        elif verb == "reduce":
            dist.reduce(target[0], 0)
        elif verb == "broadcast":
            dist.broadcast(target[0], 0)
        elif verb == "all-gather":
            dist.all_gather(target, source[0])
        elif verb == "gather":
            dist.gather(source[0], target if rank == 0 else None)
        elif verb == "scatter":
            dist.scatter(target[0], source if rank == 0 else None)
        elif verb == "all-to-all":
            dist.all_to_all_single(target[0], source[0])
        else:
            dist.barrier()

    def wrong(self):
        for buffer, given in zip(self.input, self.given):
            buffer.copy_(given)
        self.call()
        return float(sum((buffer != right).sum() for buffer, right in zip(self.output, self.expected)))

    def clear(self):
        for buffer in self.input:
            buffer.zero_()


def slowest(values):
    values = torch.tensor(values, dtype=torch.float64)
    dist.all_reduce(values, op=dist.ReduceOp.MAX)
    return values


def measure(case):
    call_us, round_us, calls = 0.0, 0.0, 3
    while round_us < options.seconds * 1e5 and calls < 1_000_000:
        start = time.perf_counter()
        for _ in range(calls):
            case.call()
        call_us = max(float(slowest([(time.perf_counter() - start) * 1e6 / calls])[0]), 1e-3)
        round_us = call_us * calls
        calls *= 4
    samples = int(min(max(options.seconds * 1e6 / call_us, 7), 20_000))
    times = [0.0] * samples
    slowest([0.0])
    start = before = time.perf_counter()
    for i in range(samples):
        case.call()
        now = time.perf_counter()
        times[i] = (now - before) * 1e6
        before = now
    mean_us = float(slowest([(before - start) * 1e6 / samples])[0])
    return samples, float(slowest(times).sort().values[samples // 2]), mean_us


torch.set_num_threads(1)
dist.init_process_group("gloo", init_method=f"file://{options.store}/meeting", rank=rank, world_size=ranks)
parts, size, last = PARTS.get(options.verb, 1), options.min, 0
while size <= options.max:
    count = max(1, size // (4 * max(parts, 1)))
    if count * parts * 4 != last or parts == 0:
        last = count * parts * 4
        case = Case(options.verb, count)
        wrong = case.wrong()
        case.clear()
        iters, p50_us, mean_us = measure(case)
        wrong = float(slowest([wrong + case.wrong()])[0])
        if rank == 0:
            line = {"peer": "torch", "verb": options.verb, "ranks": ranks, "bytes": last, "iters": iters}
            print(json.dumps({**line, "p50_us": p50_us, "mean_us": mean_us, "wrong": wrong}), flush=True)
    if parts == 0:
        break
    size *= options.factor
dist.barrier()
dist.destroy_process_group()
