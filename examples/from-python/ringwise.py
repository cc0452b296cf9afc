"""Collectives on numpy arrays and PyTorch CPU tensors: calls libringwise.so through ctypes. Copy this file and use it.

    with ringwise.Group(rank, size, ringwise.directory_exchange(folder, rank, size)) as group:
        group.all_reduce(gradients, op="avg")                 # in place; blocks
        work = group.all_reduce(more, wait=False)             # starts; work.wait(), work.done()

A buffer is C-contiguous: an object with numpy's __array_interface__, or a PyTorch tensor on the CPU. An operation borrows
it until the operation has ended; its Work keeps the buffer alive. ringwise.h describes each verb.
"""

import ctypes
import enum
import math
import os
import pathlib
import platform
import time

_VERSION = 0x00010002  # RINGWISE_ABI_VERSION of the header that this file follows
ANY_RANK = -1

_OPS = {name: n for n, name in enumerate("sum avg prod min max band bor bxor premul_sum".split())}
_WIRES = {"full": 0, "bfloat16": 1, "int8": 2}
_NAMES = "float32 float64 float16 bfloat16 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool float8_e4m3fn float8_e5m2"
_DTYPES = {name: n for n, name in enumerate(_NAMES.split())}
_TYPES = {"<f4": "float32", "<f8": "float64", "<f2": "float16", "|b1": "bool", "|i1": "int8", "|u1": "uint8"}
_TYPES |= {f"<{kind[0]}{bits // 8}": f"{kind}{bits}" for kind in ("int", "uint") for bits in (16, 32, 64)}


class Status(enum.IntEnum):
    OK = 0
    TIMEOUT = 1
    PEER_LOST = 2
    MISMATCH = 3
    ABORTED = 4
    CLOSED = 5
    SYSTEM = 6
    PENDING = -1
    INVALID = -2
    NO_MEMORY = -3
    EXCHANGE = -4


class RingwiseError(RuntimeError):
    """An error: `status` tells what happened, `ranks` which ranks it concerns. A positive status ends the group."""

    def __init__(self, status, text, ranks=()):
        super().__init__(text)
        self.status, self.ranks = Status(status), list(ranks)


_Exchange = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)


class _Options(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("rank", ctypes.c_int32),
        ("size", ctypes.c_int32),
        ("timeout_ms", ctypes.c_int64),
        ("listen_host", ctypes.c_char_p),
        ("exchange", _Exchange),
        ("user", ctypes.c_void_p),
    ]


def _load():
    """Loads the library that RINGWISE_LIBRARY names, or the one that was built in this checkout."""
    machine = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    checkout = pathlib.Path(__file__).resolve().parents[2]
    built = checkout / f"native/npm/capi-{platform.system().lower()}-{machine}/libringwise.so"
    path = os.environ.get("RINGWISE_LIBRARY", str(built))
    library = ctypes.CDLL(path)
    if not library.ringwise_abi_fits(ctypes.c_uint32(_VERSION)):
        raise ImportError(f"{path}: expected ABI version {_VERSION:#x}, got {library.ringwise_abi_version():#x}")
    group = memory = ctypes.c_void_p
    count, number, factor = ctypes.c_size_t, ctypes.c_int, ctypes.c_double
    operation = ctypes.POINTER(ctypes.c_uint64)
    for name, arguments in {
        "group_create": [ctypes.POINTER(_Options), ctypes.POINTER(group)],
        "group_close": [group],
        "group_abort": [group, ctypes.c_char_p],
        "error": [group, ctypes.c_char_p, count],
        "failed_ranks": [group, ctypes.POINTER(ctypes.c_int32), count],
        "test": [group, ctypes.c_uint64],
        "wait": [group, ctypes.c_uint64],
        "all_reduce": [group, memory, count, number, number, factor, operation],
        "all_reduce_wire": [group, memory, count, number, number, number, memory, operation],
        "reduce": [group, memory, count, number, number, factor, number, operation],
        "broadcast": [group, memory, count, number, number, operation],
        "all_gather": [group, memory, memory, count, memory, number, operation],
        "gather": [group, memory, memory, count, memory, number, number, operation],
        "scatter": [group, memory, memory, count, memory, number, number, operation],
        "reduce_scatter": [group, memory, memory, count, memory, number, number, factor, operation],
        "all_to_all": [group, memory, memory, count, memory, memory, number, operation],
        "barrier": [group, operation],
        "send": [group, memory, count, number, number, number, operation],
        "recv": [group, memory, count, number, number, number, ctypes.POINTER(ctypes.c_int32), operation],
    }.items():
        getattr(library, "ringwise_" + name).argtypes = arguments
    library.ringwise_error.restype = library.ringwise_failed_ranks.restype = ctypes.c_size_t
    library.ringwise_group_destroy.argtypes, library.ringwise_group_destroy.restype = [group], None
    return library


_library = _load()


def _dtype(name):
    if name not in _DTYPES:
        raise TypeError(f"there is no ringwise dtype {name}; expected one of {_NAMES}")
    return _DTYPES[name]


class _Buffer:
    """Holds the address, the number of elements and the dtype of a buffer, and keeps the buffer alive."""

    def __init__(self, buffer, written=False):
        self.keep = buffer
        if buffer is None:  # not used on this rank
            self.address, self.count, self.dtype = None, 0, None
        elif hasattr(buffer, "data_ptr"):  # PyTorch
            if buffer.device.type != "cpu" or not buffer.is_contiguous():
                raise TypeError("expected a contiguous tensor on the CPU")
            self.address, self.count = buffer.data_ptr(), buffer.numel()
            self.dtype = _dtype(str(buffer.dtype).split(".")[-1])
        else:
            array = buffer.__array_interface__
            self.address, read_only = array["data"]
            if array.get("strides") is not None or (written and read_only):
                raise TypeError("expected a C-contiguous array that may be written")
            self.count, self.dtype = math.prod(array["shape"]), _dtype(_TYPES.get(array["typestr"], array["typestr"]))


class Work:
    """A started operation."""

    def __init__(self, group, operation, keep, source=None):
        self._group, self._operation, self._keep, self._source = group, operation, keep, source
        group._running[operation] = self  # keeps the buffers alive if the caller drops them

    def done(self):
        """Tells whether the operation has ended; raises its error. Does not block."""
        return self._operation is None or self._report(_library.ringwise_test(self._group._handle, self._operation))

    def wait(self):
        """Blocks until the operation has ended; raises its error. Returns the sender for a receive, otherwise None."""
        if self._operation is not None:
            self._report(_library.ringwise_wait(self._group._handle, self._operation))
        return self._source.value if self._source is not None else None

    def _report(self, status):
        if status == Status.PENDING:
            return False
        self._group._running.pop(self._operation, None)
        self._operation = self._keep = None
        self._group._check(status)
        return True


class Group:
    """One rank's handle to a group. `exchange(blob: bytes)` returns the blobs of all ranks in order, as mpi4py's
    comm.allgather does. Leaving the `with` block closes the group; an exception aborts it on all ranks."""

    def __init__(self, rank, size, exchange, timeout=300.0, listen_host=None):
        self.rank, self.size = rank, size
        self._running, self._handle = {}, ctypes.c_void_p()
        raised = []

        def carry(_, mine, length, everything):
            try:
                blobs = b"".join(exchange(ctypes.string_at(mine, length)))
                if len(blobs) != size * length:
                    raise ValueError(f"exchange returned {len(blobs)} bytes; expected {size} blobs of {length}")
                ctypes.memmove(everything, blobs, len(blobs))
                return 0
            except BaseException as error:  # an exception must not pass through the C caller
                raised.append(error)
                return 1

        host = listen_host and listen_host.encode()
        options = _Options(ctypes.sizeof(_Options), rank, size, round(timeout * 1000), host, _Exchange(carry))
        status = _library.ringwise_group_create(ctypes.byref(options), ctypes.byref(self._handle))
        try:
            self._check(status)
        except RingwiseError as error:
            self.destroy()
            raise error from (raised[0] if raised else None)

    def _check(self, status):
        if status == Status.OK:
            return
        text, ranks = ctypes.create_string_buffer(4096), []
        _library.ringwise_error(self._handle, text, len(text))
        if status > 0:
            ranks = (ctypes.c_int32 * self.size)()
            ranks = ranks[: _library.ringwise_failed_ranks(self._handle, ranks, self.size)]
        raise RingwiseError(status, text.value.decode(errors="replace") or Status(status).name, ranks)

    def _call(self, wait, verb, keep, *arguments, source=None):
        function = getattr(_library, "ringwise_" + verb)
        if wait:
            self._check(function(self._handle, *arguments, None))
            return source.value if source is not None else None
        operation = ctypes.c_uint64()
        self._check(function(self._handle, *arguments, ctypes.byref(operation)))
        return Work(self, operation.value, keep, source)

    def _counts(self, counts):
        return None if counts is None else (ctypes.c_size_t * self.size)(*counts)

    def _in_place(self, wait, verb, buffer, *rest, source=None):
        b = _Buffer(buffer, written=True)
        return self._call(wait, verb, b, b.address, b.count, b.dtype, *rest, source=source)

    def _parted(self, wait, verb, input, output, part, counts, *rest):
        """Calls a verb that moves data between a rank's own part and all ranks' parts. `part` is the own part: the
        input or the output."""
        i, o = _Buffer(input), _Buffer(output, written=True)
        own, all = (i, o) if part is input else (o, i)
        total = own.count * self.size if counts is None else sum(counts)
        if all.keep is not None and (all.count, all.dtype) != (total, own.dtype):
            raise ValueError(f"{verb}: expected {total} elements of one dtype for all ranks' parts, got {all.count}")
        return self._call(wait, verb, (i, o), i.address, o.address, own.count, self._counts(counts), own.dtype, *rest)

    def all_reduce(self, buffer, op="sum", factor=1.0, wait=True):
        return self._in_place(wait, "all_reduce", buffer, _OPS[op], factor)

    def all_reduce_wire(self, buffer, wire, residual=None, op="sum", wait=True):
        """Sums with values rounded to `wire` on the way. `residual` carries the rounding errors of wire int8 from call
        to call: as many float32 as the buffer has, zeros before the first call."""
        b, r = _Buffer(buffer, written=True), _Buffer(residual, written=True)
        if residual is not None and (r.count, r.dtype) != (b.count, _DTYPES["float32"]):
            raise ValueError(f"all_reduce_wire: expected a residual of {b.count} × float32, got {r.count} elements")
        rest = b.address, b.count, b.dtype, _OPS[op], _WIRES[wire], r.address
        return self._call(wait, "all_reduce_wire", (b, r), *rest)

    def reduce(self, buffer, root=0, op="sum", factor=1.0, wait=True):
        return self._in_place(wait, "reduce", buffer, _OPS[op], factor, root)

    def broadcast(self, buffer, root=0, wait=True):
        return self._in_place(wait, "broadcast", buffer, root)

    def all_gather(self, input, output, counts=None, wait=True):
        return self._parted(wait, "all_gather", input, output, input, counts)

    def gather(self, input, output=None, root=0, counts=None, wait=True):
        return self._parted(wait, "gather", input, output if self.rank == root else None, input, counts, root)

    def scatter(self, input, output, root=0, counts=None, wait=True):
        return self._parted(wait, "scatter", input if self.rank == root else None, output, output, counts, root)

    def reduce_scatter(self, input, output, op="sum", factor=1.0, counts=None, wait=True):
        return self._parted(wait, "reduce_scatter", input, output, output, counts, _OPS[op], factor)

    def all_to_all(self, input, output, send_counts=None, recv_counts=None, wait=True):
        i, o = _Buffer(input), _Buffer(output, written=True)
        uneven = send_counts is not None
        expected = (sum(send_counts), sum(recv_counts)) if uneven else (i.count // self.size * self.size,) * 2
        if (i.count, o.count) != expected or i.dtype != o.dtype:
            raise ValueError(f"all_to_all: expected {expected} elements of one dtype, got {(i.count, o.count)}")
        count, counts = 0 if uneven else i.count // self.size, (self._counts(send_counts), self._counts(recv_counts))
        return self._call(wait, "all_to_all", (i, o), i.address, o.address, count, *counts, i.dtype)

    def barrier(self, wait=True):
        return self._call(wait, "barrier", None)

    def send(self, buffer, peer, tag=0, wait=True):
        b = _Buffer(buffer)
        return self._call(wait, "send", b, b.address, b.count, b.dtype, peer, tag)

    def recv(self, buffer, peer=ANY_RANK, tag=0, wait=True):
        """Receives into `buffer`. Returns the sender, or with wait=False a Work whose wait() returns it."""
        source = ctypes.c_int32()
        return self._in_place(wait, "recv", buffer, peer, tag, ctypes.byref(source), source=source)

    def abort(self, reason):
        """Ends the group on all ranks."""
        self._check(_library.ringwise_group_abort(self._handle, str(reason).encode()))

    def close(self):
        """Waits for pending operations, and tells the other ranks that this rank leaves."""
        self._check(_library.ringwise_group_close(self._handle))

    def destroy(self):
        _library.ringwise_group_destroy(self._handle)
        self._handle = ctypes.c_void_p()
        self._running.clear()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, _):
        try:
            self.close() if kind is None else self.abort(f"{kind.__name__}: {error}")
        finally:
            self.destroy()


def directory_exchange(folder, rank, size, timeout=60.0):
    """Returns an exchange for Group that passes blobs as files of `folder`, which must be empty at the start and
    private to the job. The exchange raises TimeoutError if a rank's file is missing after `timeout` seconds."""

    def exchange(blob):
        folder_path = pathlib.Path(folder)
        new = folder_path / f"{rank}.new"
        new.touch(mode=0o600)
        new.write_bytes(blob)
        new.rename(folder_path / str(rank))  # atomic: other ranks never see a partial file
        deadline = time.monotonic() + timeout
        blobs = []
        for other in range(size):
            while not (folder_path / str(other)).exists():
                if time.monotonic() > deadline:
                    raise TimeoutError(f"rank {other} did not come to {folder} within {timeout} s")
                time.sleep(0.005)
            blobs.append((folder_path / str(other)).read_bytes())
        return blobs

    return exchange
