"""Rank 0: sends a number to each Node rank through the job's store, and checks the answers."""

import os
from datetime import timedelta

from torch.distributed import TCPStore

size = int(os.environ["WORLD_SIZE"])
store = TCPStore(
    os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False, timeout=timedelta(seconds=60)
)
for rank in range(1, size):
    store.set(f"task/{rank}", str(10 * rank))
answers = [int(store.get(f"answer/{rank}")) for rank in range(1, size)]
assert answers == [(10 * rank) ** 2 for rank in range(1, size)], answers
print(f"rank 0 (Python) got {answers}")
store.set("thanks", "")
