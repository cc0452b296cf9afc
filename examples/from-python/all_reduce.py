"""Every rank contributes a numpy array and gets the sum of all arrays. If all ranks have PyTorch, also with tensors.

    python3 examples/from-python/all_reduce.py                       two ranks, started by this program itself
    python3 examples/from-python/all_reduce.py RANK SIZE FOLDER      one rank; FOLDER is empty and private to the job

Claim: the sum of all ranks' arrays arrives on every rank, and the operation runs while the program computes.
"""

import importlib.util
import subprocess
import sys
import tempfile

import numpy

import ringwise

COUNT = 1 << 20


def with_torch(group):
    import torch

    x = torch.full((1000,), group.rank + 1, dtype=torch.bfloat16)
    group.all_reduce(x, op="avg")
    assert x.dtype == torch.bfloat16 and torch.all(x == (group.size + 1) / 2), x
    return " and PyTorch tensors"


def rank_main(rank, size, folder):
    with ringwise.Group(rank, size, ringwise.directory_exchange(folder, rank, size)) as group:
        x = (numpy.arange(COUNT) % 1000 + rank).astype(numpy.float32)
        work = group.all_reduce(x, wait=False)
        expected = (numpy.arange(COUNT) % 1000 * size + size * (size - 1) // 2).astype(numpy.float32)  # runs meanwhile
        work.wait()
        assert numpy.array_equal(x, expected), f"expected {expected[:4]}…, got {x[:4]}…"

        all_have_torch = numpy.array([importlib.util.find_spec("torch") is not None], dtype=numpy.int32)
        group.all_reduce(all_have_torch, op="min")
        more = with_torch(group) if all_have_torch[0] else ""
    sys.stdout.write(f"rank {rank} of {size} has the sum of {size} numpy arrays{more}\n")  # one write: lines do not mix


def main():
    if len(sys.argv) == 4:
        return rank_main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
    with tempfile.TemporaryDirectory() as folder:  # only this user can enter it
        ranks = [subprocess.Popen([sys.executable, __file__, str(rank), "2", folder]) for rank in range(2)]
        failed = [rank for rank, process in enumerate(ranks) if process.wait() != 0]
    sys.exit(f"failed: {failed}" if failed else 0)


main()
