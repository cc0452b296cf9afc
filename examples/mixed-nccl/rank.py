"""Rank 0: all-reduces with Node ranks through torch.distributed. They get NCCL's unique id from the job's store."""

import os
from datetime import timedelta

import torch
from torch import distributed as dist

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
store = dist.TCPStore(
    os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False, timeout=timedelta(seconds=60)
)
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
# Pass the store instead of env://, so that NCCL's id is under the key 0//cuda//0.
dist.init_process_group("nccl", store=store, rank=rank, world_size=size)
x = torch.full((1 << 20,), float(rank + 1), device="cuda")
dist.all_reduce(x)
expected = size * (size + 1) / 2
assert bool((x == expected).all()), x
last = torch.tensor([float(rank)], device="cuda")
dist.broadcast(last, src=size - 1)
assert last.item() == size - 1, last
print(f"rank {rank} (Python) has the sum {expected:g}")
dist.destroy_process_group()
