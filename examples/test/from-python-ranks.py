"""A rank of from-python.test.ts: every verb of ringwise.py, in both forms, and its errors.

    from-python-ranks.py RANK SIZE FOLDER [LISTEN_HOST]
"""

import pathlib
import sys

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "from-python"))
import ringwise  # noqa: E402

rank, size, folder = int(sys.argv[1]), int(sys.argv[2]), pathlib.Path(sys.argv[3])
listen_host = sys.argv[4] if len(sys.argv) > 4 else None


def group_named(name):
    own = folder / name
    own.mkdir(mode=0o700, exist_ok=True)
    exchange = ringwise.directory_exchange(own, rank, size)
    return ringwise.Group(rank, size, exchange, timeout=30, listen_host=listen_host)


def given(r, count, dtype=numpy.int64):
    return (numpy.arange(count) * 3 + r * 7).astype(dtype)


def everyone(count, dtype=numpy.int64):
    return numpy.stack([given(r, count, dtype) for r in range(size)])


def done(result):
    if isinstance(result, ringwise.Work):
        while not result.done():
            pass
        assert result.done()
        return result.wait()
    return result


def same(got, expected):
    assert numpy.array_equal(got, expected), f"expected {expected}, got {got}"


def in_place(group, wait):
    for dtype in (numpy.float32, numpy.float64, numpy.float16, numpy.int8, numpy.uint16, numpy.int64):
        x = given(rank, 5, dtype)
        done(group.all_reduce(x, wait=wait))
        same(x, everyone(5, dtype).sum(axis=0, dtype=dtype))
    x = given(rank, 100_000)
    done(group.all_reduce(x, op="max", wait=wait))
    same(x, everyone(100_000).max(axis=0))
    x = numpy.array([rank == 0, True, False])
    done(group.all_reduce(x, op="bxor", wait=wait))
    same(x, [True, size % 2 == 1, False])
    x = numpy.full((2, 3), 1.0)
    done(group.all_reduce(x, op="premul_sum", factor=rank + 0.5, wait=wait))
    same(x, numpy.full((2, 3), size * (size - 1) / 2 + size * 0.5))
    for wire in ("full", "bfloat16", "int8"):
        x = given(rank, 5, numpy.float32)  # sums below 128: no wire rounds them
        done(group.all_reduce_wire(x, wire, op="avg", wait=wait))
        same(x, everyone(5, numpy.float32).sum(axis=0) / numpy.float32(size))
    values = [numpy.sin(numpy.arange(1000) + r, dtype=numpy.float32) for r in range(size)]
    x, residual = values[rank].copy(), numpy.zeros(1000, numpy.float32)
    done(group.all_reduce_wire(x, "int8", residual, wait=wait))
    group.all_reduce(residual)
    assert numpy.abs(x + residual - sum(values)).max() < 1e-5, "results and residuals are not the values"
    for root in range(size):
        x = given(rank, 4)
        done(group.broadcast(x, root, wait=wait))
        same(x, given(root, 4))
        x = given(rank, 4)
        done(group.reduce(x, root, wait=wait))
        same(x, everyone(4).sum(axis=0) if rank == root else given(rank, 4))


def parted(group, wait):
    for counts in (None, [r + 2 for r in range(size)]):
        lengths = counts or [3] * size
        bounds = numpy.cumsum([0, *lengths])
        mine = slice(bounds[rank], bounds[rank + 1])
        parts = numpy.concatenate([given(r, n) for r, n in enumerate(lengths)])
        total = bounds[-1]

        output = numpy.zeros(total, numpy.int64)
        done(group.all_gather(given(rank, lengths[rank]), output, counts, wait=wait))
        same(output, parts)
        own = numpy.zeros(lengths[rank], numpy.int64)
        done(group.reduce_scatter(given(rank, total), own, counts=counts, wait=wait))
        same(own, everyone(total).sum(axis=0)[mine])
        for root in range(size):
            output = numpy.zeros(total, numpy.int64) if rank == root else None
            done(group.gather(given(rank, lengths[rank]), output, root, counts, wait=wait))
            if rank == root:
                same(output, parts)
            done(group.scatter(given(rank, total) if rank == root else None, own, root, counts, wait=wait))
            same(own, given(root, total)[mine])

    output = numpy.zeros(2 * size, numpy.int64)
    done(group.all_to_all(given(rank, 2 * size), output, wait=wait))
    same(output, everyone(2 * size)[:, 2 * rank : 2 * rank + 2].ravel())
    sends, receives = [rank + r for r in range(size)], [r + rank for r in range(size)]
    output = numpy.zeros(sum(receives), numpy.int64)
    done(group.all_to_all(given(rank, sum(sends)), output, sends, receives, wait=wait))
    starts = [sum(r + before for before in range(rank)) for r in range(size)]
    parts = [given(r, 2 * size * size)[starts[r] : starts[r] + receives[r]] for r in range(size)]
    same(output, numpy.concatenate(parts))


def messages(group):
    if size == 1:
        return
    theirs = numpy.zeros(10)
    work = group.recv(theirs, tag=4, wait=False)  # from any rank
    group.send(given(rank, 10, numpy.float64), (rank + 1) % size, tag=4)
    group.barrier()
    assert work.wait() == (rank - 1) % size
    same(theirs, given((rank - 1) % size, 10, numpy.float64))


def refuses(call, expected, text):
    try:
        call()
    except expected as error:
        assert text in str(error), f"expected an error with {text!r}, got {error}"
        return error
    raise AssertionError(f"expected {expected.__name__}")


def errors(group):
    refuses(lambda: group.all_reduce(numpy.zeros((4, 4))[:, 1]), TypeError, "C-contiguous")
    refuses(lambda: group.all_reduce(numpy.zeros(3, numpy.complex64)), TypeError, "there is no ringwise dtype <c8")
    refuses(lambda: group.broadcast(numpy.frombuffer(b"read only", numpy.uint8)), TypeError, "may be written")
    refuses(lambda: group.all_gather(numpy.zeros(2), numpy.zeros(3)), ValueError, f"expected {2 * size} elements")
    not_defined = lambda: group.all_reduce(numpy.zeros(3), op="bor")  # noqa: E731
    error = refuses(not_defined, ringwise.RingwiseError, "is not defined for float64")
    assert error.status == ringwise.Status.INVALID and error.ranks == []
    work = group.barrier(wait=False)  # the group goes on
    work.wait()


with group_named("verbs") as group:
    for wait in (True, False):
        in_place(group, wait)
        parted(group, wait)
    messages(group)
    errors(group)
    group.barrier()

refuses(lambda: group.barrier(), ringwise.RingwiseError, "INVALID")  # it is gone

try:
    with group_named("abort") as group:
        if rank == 0:
            raise ValueError("no such file")
        group.barrier()
except ringwise.RingwiseError as error:
    assert error.status == ringwise.Status.ABORTED and error.ranks == [0], error
    assert "rank 0 aborted the group: ValueError: no such file" in str(error), error
except ValueError:
    assert rank == 0

error = refuses(lambda: ringwise.Group(0, 2, lambda blob: [blob]), ringwise.RingwiseError, "expected 0, got 1")
assert "expected" in str(error.__cause__), error.__cause__
print(f"rank {rank} of {size} is satisfied")
