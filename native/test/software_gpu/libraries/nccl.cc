// A libnccl for the software device, for tests: the functions of coll/nccl/library.h among processes of one machine.
// Like the real library: the calls of a group run together; operations of a communicator run in the order of their
// stream; calls of different ranks are not compared; a call returns before its work is on the stream, and until then
// the communicator accepts no other; the death of a rank is an asynchronous error, and operations that wait for it do
// so until the communicator is aborted. Registered memory is not faster here, but a communicator fails if only some
// ranks call a reduction with registered memory, or if its registered memory is freed. Registrations of memory that
// NVLink could use are counted. Calls on a stream that is being captured become part of the graph, and destroying or
// aborting a communicator waits until its last graph is destroyed. Speed does not matter here. The functions at the end
// are for tests: they count calls and simulate faults.
//
// Each pair of ranks of a communicator has a ring for each direction. The rings are in shared memory: an unnamed file
// that the process that made the unique id keeps open, and whose path in /proc is the id.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/float8.h"
#include "base/half.h"
#include "test/software_gpu/libraries/nccl_arithmetic.h"
#include "test/software_gpu/streams.h"
#include "test/software_gpu/virtual_memory.h"

#define EXPORT extern "C" __attribute__((visibility("default"))) int

namespace {

using namespace ringwise::software_gpu;
using ringwise::BFloat;
using ringwise::Float8E4M3;
using ringwise::Float8E5M2;
using ringwise::Half;

enum Result {
  kSuccess,
  kUnhandledCuda,
  kSystemError,
  kInternalError,
  kInvalidArgument,
  kInvalidUsage,
  kRemoteError,
  kInProgress
};
constexpr int kMostRanks = 8;
constexpr size_t kRing = 16384;

struct Ring {
  std::atomic<uint64_t> written, read;  // total bytes
  char bytes[kRing];
};
struct Shared {
  std::atomic<int> arrived, left;
  std::atomic<int> pids[kMostRanks];
  Ring rings[kMostRanks][kMostRanks];  // from, to
};
struct Id {
  char path[128];
};
struct Config {
  size_t size;
  unsigned magic, version;
  int blocking;
};

struct Range {
  const char* begin;
  size_t bytes;
  bool has(const void* data, size_t size) const {
    const auto* const first = static_cast<const char*>(data);
    return first >= begin && first + size <= begin + bytes;
  }
};

/// The number of state queries for which a communicator stays busy. The real NCCL has a thread that takes the calls, so
/// the first query or two find it busy.
constexpr int kAsked = 8;

/// A communicator, as its rank sees it.
struct Comm {
  Shared* shared = nullptr;
  int rank = 0, size = 0;
  std::atomic<int> state{kInProgress};
  std::atomic<bool> is_aborted{false};
  std::atomic<const char*> last_error{""};  // written before `state` becomes an error; an abort writes over it
  std::vector<double> factors;
  std::atomic<int> graphs{0};  // parts of graphs that use this communicator
  std::mutex of_called;
  std::vector<std::function<void()>> called;  // calls that are not on the stream yet
  int asked = 0;                              // state queries since the last call
  std::mutex of_registered;
  std::vector<std::unique_ptr<Range>> registered;

  bool is_registered(const void* data, size_t size) {
    const std::lock_guard lock(of_registered);
    return std::any_of(registered.begin(), registered.end(), [&](const auto& range) { return range->has(data, size); });
  }
  void fail(const char* why) {
    last_error = why;
    state = kInternalError;
  }

  bool has_lost_a_rank() const {
    for (int peer = 0; peer < size; ++peer) {
      const int pid = shared->pids[peer];
      if (pid != 0 && kill(pid, 0) != 0) return true;
    }
    return false;
  }
};
// Callers get a communicator as a pointer to a Handle, which is never freed, because work may still refer to it.
using Handle = std::shared_ptr<Comm>;

std::mutex of_all;
std::vector<Handle*>& all_handles() {
  static auto& all = *new std::vector<Handle*>;
  return all;
}
std::atomic<int> batches_so_far{0}, exchanges_so_far{0}, abort_takes_ms{0}, registered_so_far{0}, registered_now{0},
    aborts_now{0}, shareable_so_far{0};
std::atomic<bool> is_stalled{false};

/// A transfer between this rank and another.
struct Piece {
  bool sends;
  int peer;
  char* data;
  size_t bytes, done = 0;
};

/// The calls of one group on one communicator and stream.
struct Batch {
  Handle comm;
  SoftwareStream* stream;
  std::vector<Piece> pieces;                // in the order of the calls for each pair of ranks
  std::vector<std::function<void()>> ends;  // called when all pieces have moved
};

void move(Shared& shared, Piece& piece, int rank) {
  const bool sends = piece.sends;
  Ring& ring = sends ? shared.rings[rank][piece.peer] : shared.rings[piece.peer][rank];
  const uint64_t written = ring.written, read = ring.read;
  const uint64_t place = sends ? read + kRing - written : written - read;
  const size_t part = std::min<uint64_t>(piece.bytes - piece.done, place);
  for (size_t i = 0; i < part; ++i) {
    if (sends)
      ring.bytes[(written + i) % kRing] = piece.data[piece.done + i];
    else
      piece.data[piece.done + i] = ring.bytes[(read + i) % kRing];
  }
  piece.done += part;
  if (sends)
    ring.written = written + part;
  else
    ring.read = read + part;
}

/// Moves the data that can move; returns true when all have moved. For each pair and direction, moves one piece after
/// another.
bool advance(Batch& batch) {
  Comm& comm = *batch.comm;
  bool is_done = true, is_busy[2][kMostRanks] = {};
  for (Piece& piece : batch.pieces) {
    bool& busy = is_busy[piece.sends][piece.peer];
    if (busy) continue;
    if (piece.done < piece.bytes) move(*comm.shared, piece, comm.rank);
    if (piece.done < piece.bytes) busy = true, is_done = false;
  }
  return is_done;
}

/// Advances a batch once; called by the stream whose turn it is.
int turn(Batch& batch, int& asked) {
  Comm& comm = *batch.comm;
  if (comm.is_aborted) return 0;
  if (!advance(batch)) {
    if (++asked % 64 == 0 && comm.state == kSuccess && comm.has_lost_a_rank()) {
      comm.last_error = "a process of the communicator has ended";
      comm.state = kRemoteError;
    }
    return kAgain;
  }
  for (const auto& end : batch.ends) end();
  return 0;
}

/// Counts a use of a communicator by a graph, or by a run of it that has not ended, and keeps the communicator alive.
struct Held {
  explicit Held(Handle of) : comm(std::move(of)) { comm->graphs++; }
  ~Held() { comm->graphs--; }
  Held(const Held&) = delete;
  Handle comm;
};

/// Puts a batch on its stream, or into the graph that the stream captures.
int start(const std::shared_ptr<Batch>& batch) {
  if (!is_captured(batch->stream)) {
    return submit(batch->stream, [batch, asked = 0]() mutable { return turn(*batch, asked); });
  }
  // Each run of the graph gets a copy of this function, and makes its own batch, which keeps how far it has come.
  return submit(batch->stream, [batch, held = std::make_shared<Held>(batch->comm), own = std::shared_ptr<Batch>(),
                                asked = 0]() mutable {
    if (!own) own = std::make_shared<Batch>(*batch);
    return turn(*own, asked);
  });
}

/// Ends the pending operations, then waits until no graph uses the communicator.
void end(Comm& comm) {
  comm.is_aborted = true;
  {
    const std::lock_guard lock(comm.of_called);
    comm.called.clear();
  }
  for (; comm.graphs > 0; std::this_thread::sleep_for(std::chrono::milliseconds(1))) advance_all();
}

thread_local int depth = 0;
thread_local std::vector<std::shared_ptr<Batch>> batches;  // batches of the open group

std::shared_ptr<Batch> batch_of(const Handle& comm, SoftwareStream* stream) {
  for (const auto& batch : batches) {
    if (batch->comm == comm && batch->stream == stream) return batch;
  }
  return batches.emplace_back(std::make_shared<Batch>(Batch{comm, stream, {}, {}}));
}

/// Takes over the calls of the group that has just ended; a call outside of a group is a group of its own. The calls of
/// a communicator of one rank go on the stream at once. Other communicators become busy, and hand_over() puts their
/// calls on the stream once the state has been queried a few times. Returns the status of the last communicator.
int close_batches() {
  int status = kSuccess;
  for (const auto& batch : std::exchange(batches, {})) {
    batches_so_far++;
    Comm& comm = *batch->comm;
    if (comm.size == 1) {
      start(batch);
      status = comm.state;
      continue;
    }
    const std::lock_guard lock(comm.of_called);
    comm.called.push_back([batch] { start(batch); });
    comm.asked = 0;
    int ready = kSuccess;
    comm.state.compare_exchange_strong(ready, kInProgress);
    status = comm.state;
  }
  return status;
}

/// Counts a query of the state. Puts the collected calls on the stream at the last query of kAsked.
void hand_over(Comm& comm) {
  const std::lock_guard lock(comm.of_called);
  if (comm.called.empty() || ++comm.asked < kAsked) return;
  for (const auto& start_one : std::exchange(comm.called, {})) start_one();
  if (is_stalled) return;
  int busy = kInProgress;
  comm.state.compare_exchange_strong(busy, kSuccess);
}

/// Adds a call to the open group, or makes a group for it.
template <class Add>
int call(void* comm, SoftwareStream* stream, const Add& add) {
  const Handle& handle = *static_cast<Handle*>(comm);
  if (handle->state != kSuccess) return handle->state == kInProgress ? kInvalidUsage : handle->state.load();
  add(*batch_of(handle, stream), *handle);
  return depth > 0 ? kSuccess : close_batches();
}

char* bytes(const void* data) { return static_cast<char*>(const_cast<void*>(data)); }

/// Reduces the inputs of all ranks, in rank order, to the output of `root`.
void add_reduction(Batch& batch, Comm& comm, const void* input, void* output, size_t count, int type, int op,
                   int root) {
  if (comm.size == 1 && op > 4) count = multiplied_alone(count, kBytes[type]);
  const size_t size = count * kBytes[type];
  // Data are read only when their turn on the stream comes, so the receiver applies the factor, which is sent with the
  // data.
  struct Words {
    double factor;
    bool is_registered;
  };
  const Words words{op > 4 ? comm.factors[static_cast<size_t>(op - 5)] : 1, comm.is_registered(input, size)};
  if (comm.rank != root) {
    auto told = std::make_shared<Words>(words);
    batch.pieces.push_back({true, root, reinterpret_cast<char*>(told.get()), sizeof words});
    batch.pieces.push_back({true, root, bytes(input), size});
    batch.ends.push_back([told] {});
    return;
  }
  struct Inputs {
    std::vector<std::vector<char>> data;
    std::vector<Words> words;
  };
  const auto inputs = std::make_shared<Inputs>();
  inputs->data.resize(static_cast<size_t>(comm.size));
  inputs->words.assign(static_cast<size_t>(comm.size), words);
  for (int peer = 0; peer < comm.size; ++peer) {
    const auto p = static_cast<size_t>(peer);
    inputs->data[p].resize(size);
    if (peer == root) continue;
    batch.pieces.push_back({false, peer, reinterpret_cast<char*>(&inputs->words[p]), sizeof words});
    batch.pieces.push_back({false, peer, inputs->data[p].data(), size});
  }
  batch.ends.push_back(
      [inputs, handle = batch.comm, input, output, count, type, op, size, own = static_cast<size_t>(root)] {
        if (size == 0) return;
        for (const Words& one : inputs->words) {
          if (one.is_registered != inputs->words[own].is_registered)
            handle->fail("some ranks have registered their memory, and others have not");
        }
        std::memcpy(inputs->data[own].data(), input, size);
        const auto ranks = inputs->data.size();
        for (size_t p = 0; p < ranks; ++p) {
          if (op > 4) scale(inputs->data[p].data(), count, type, inputs->words[p].factor);
          if (p > 0) fold(inputs->data[0].data(), inputs->data[p].data(), count, type, op);
        }
        if (op == 4) scale(inputs->data[0].data(), count, type, 1.0 / static_cast<double>(ranks));
        std::memcpy(output, inputs->data[0].data(), size);
      });
}

void send_to_all(Batch& batch, Comm& comm, const void* data, size_t size) {
  for (int peer = 0; peer < comm.size; ++peer) {
    if (peer != comm.rank) batch.pieces.push_back({true, peer, bytes(data), size});
  }
}

}  // namespace

void ringwise::software_gpu::given_back(const void* data, size_t bytes) {
  const std::lock_guard lock(of_all);
  for (Handle* const handle : all_handles()) {
    if ((*handle)->is_aborted) continue;
    const auto* const begin = static_cast<const char*>(data);
    bool is_used = false;
    {
      const std::lock_guard lock_of_registered((*handle)->of_registered);
      for (const auto& range : (*handle)->registered)
        is_used |= range->begin < begin + bytes && begin < range->begin + range->bytes;
    }
    if (is_used) (*handle)->fail("registered memory has been given back");
  }
}

/// Returns the version of this library, or SOFTWARE_NCCL_VERSION if a test sets it.
EXPORT ncclGetVersion(int* version) {
  const char* const other = std::getenv("SOFTWARE_NCCL_VERSION");
  return *version = other != nullptr ? std::atoi(other) : 22809, kSuccess;
}
extern "C" __attribute__((visibility("default"))) const char* ncclGetErrorString(int result) {
  static const char* const texts[] = {"no error",
                                      "unhandled cuda error",
                                      "unhandled system error",
                                      "internal error",
                                      "invalid argument",
                                      "invalid usage",
                                      "remote process exited or there was a network error",
                                      "NCCL operation in progress"};
  return texts[result];
}
extern "C" __attribute__((visibility("default"))) const char* ncclGetLastError(void* comm) {
  return comm == nullptr ? "" : (*static_cast<Handle*>(comm))->last_error.load();
}

EXPORT ncclGetUniqueId(Id* id) {
  const int file = memfd_create("software-nccl", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, sizeof(Shared)) != 0) return kSystemError;
  std::memset(id, 0, sizeof *id);
  std::snprintf(id->path, sizeof id->path, "/proc/%d/fd/%d", getpid(), file);
  return kSuccess;
}

EXPORT ncclCommInitRankConfig(void** comm, int size, Id id, int rank, const Config* config) {
  if (size > kMostRanks || config->magic != 0xcafebeef || config->blocking != 0) return kInvalidArgument;
  const int file = open(id.path, O_RDWR | O_CLOEXEC);
  if (file < 0) return kSystemError;
  void* const mapped = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (mapped == MAP_FAILED) return kSystemError;
  auto* const handle = new Handle(std::make_shared<Comm>());
  {
    const std::lock_guard lock(of_all);
    all_handles().push_back(handle);
  }
  Comm& made = **handle;
  made.shared = static_cast<Shared*>(mapped);
  made.rank = rank;
  made.size = size;
  made.shared->pids[rank] = getpid();
  made.shared->arrived++;
  std::thread([comm = *handle] {
    while (comm->shared->arrived < comm->size && !comm->is_aborted)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (!comm->is_aborted) comm->state = kSuccess;
  }).detach();
  return *comm = handle, kInProgress;
}

EXPORT ncclCommGetAsyncError(void* comm, int* error) {
  Comm& here = **static_cast<Handle*>(comm);
  *error = here.state;
  return hand_over(here), kSuccess;
}
EXPORT ncclCommFinalize(void* comm) {
  Comm& here = **static_cast<Handle*>(comm);
  here.shared->pids[here.rank] = 0;  // a process that ends from now on does not count as dead
  return kSuccess;
}
EXPORT ncclCommAbort(void* comm) {
  aborts_now++;
  std::this_thread::sleep_for(std::chrono::milliseconds(abort_takes_ms));
  {
    Comm& here = **static_cast<Handle*>(comm);
    here.last_error = "aborted";
    const std::lock_guard lock(here.of_registered);
    registered_now -= static_cast<int>(std::exchange(here.registered, {}).size());
  }
  end(**static_cast<Handle*>(comm));
  return aborts_now--, kSuccess;
}
EXPORT ncclCommRegister(void* comm, void* data, size_t size, void** registration) {
  Comm& here = **static_cast<Handle*>(comm);
  if (here.state != kSuccess) return kInvalidUsage;
  const std::lock_guard lock(here.of_registered);
  here.registered.push_back(std::make_unique<Range>(Range{static_cast<char*>(data), size}));
  registered_so_far++;
  if (is_shareable(data, size)) shareable_so_far++;
  registered_now++;
  return *registration = here.registered.back().get(), kSuccess;
}
EXPORT ncclCommDeregister(void* comm, void* registration) {
  Comm& here = **static_cast<Handle*>(comm);
  const std::lock_guard lock(here.of_registered);
  const auto is_it = [registration](const auto& range) { return range.get() == registration; };
  const auto found = std::find_if(here.registered.begin(), here.registered.end(), is_it);
  if (found == here.registered.end() || here.is_aborted) return kInvalidArgument;
  here.registered.erase(found);
  registered_now--;
  return kSuccess;
}
EXPORT ncclCommDestroy(void* comm) { return end(**static_cast<Handle*>(comm)), kSuccess; }

EXPORT ncclGroupStart() { return depth++, kSuccess; }
EXPORT ncclGroupEnd() { return --depth > 0 ? static_cast<int>(kSuccess) : close_batches(); }

EXPORT ncclRedOpCreatePreMulSum(int* op, const void* scalar, int type, int, void* comm) {
  if ((*static_cast<Handle*>(comm))->state == kInProgress) return kInvalidUsage;
  auto& factors = (*static_cast<Handle*>(comm))->factors;
  double factor = 0;
  if (type == 6)
    factor = to_float(*static_cast<const Half*>(scalar));
  else if (type == 7)
    factor = *static_cast<const float*>(scalar);
  else if (type == 8)
    factor = *static_cast<const double*>(scalar);
  else if (type == 9)
    factor = to_float(*static_cast<const BFloat*>(scalar));
  else if (type == 10)
    factor = to_float(*static_cast<const Float8E4M3*>(scalar));
  else if (type == 11)
    factor = to_float(*static_cast<const Float8E5M2*>(scalar));
  else
    return kInvalidArgument;
  factors.push_back(factor);
  return *op = static_cast<int>(factors.size()) + 4, kSuccess;
}
EXPORT ncclRedOpDestroy(int, void*) { return kSuccess; }

/// NCCL 2.28 multiplies elements of a single rank by a kernel that it lacks for 8-bit floats.
static bool lacks_kernel(void* comm, int type, int op) {
  constexpr int kAverage = 4, kFirstFloat8 = 10;
  return (*static_cast<Handle*>(comm))->size == 1 && type >= kFirstFloat8 && op >= kAverage;
}
EXPORT ncclReduce(const void* input, void* output, size_t count, int type, int op, int root, void* comm,
                  SoftwareStream* stream) {
  if (lacks_kernel(comm, type, op)) return kInvalidArgument;
  return call(comm, stream,
              [&](Batch& batch, Comm& here) { add_reduction(batch, here, input, output, count, type, op, root); });
}
EXPORT ncclAllReduce(const void* input, void* output, size_t count, int type, int op, void* comm,
                     SoftwareStream* stream) {
  if (lacks_kernel(comm, type, op)) return kInvalidArgument;
  return call(comm, stream, [&](Batch& batch, Comm& here) {
    for (int root = 0; root < here.size; ++root) add_reduction(batch, here, input, output, count, type, op, root);
  });
}
EXPORT ncclReduceScatter(const void* input, void* output, size_t count, int type, int op, void* comm,
                         SoftwareStream* stream) {
  if (lacks_kernel(comm, type, op)) return kInvalidArgument;
  return call(comm, stream, [&](Batch& batch, Comm& here) {
    for (int root = 0; root < here.size; ++root) {
      add_reduction(batch, here, bytes(input) + static_cast<size_t>(root) * count * kBytes[type], output, count, type,
                    op, root);
    }
  });
}
EXPORT ncclBroadcast(const void* input, void* output, size_t count, int type, int root, void* comm,
                     SoftwareStream* stream) {
  const size_t size = count * kBytes[type];
  return call(comm, stream, [&](Batch& batch, Comm& here) {
    if (here.rank != root) return batch.pieces.push_back({false, root, bytes(output), size});
    send_to_all(batch, here, input, size);
    if (input != output && size > 0) batch.ends.push_back([=] { std::memmove(output, input, size); });
  });
}
EXPORT ncclAllGather(const void* input, void* output, size_t count, int type, void* comm, SoftwareStream* stream) {
  const size_t size = count * kBytes[type];
  return call(comm, stream, [&](Batch& batch, Comm& here) {
    send_to_all(batch, here, input, size);
    for (int peer = 0; peer < here.size; ++peer) {
      char* const place = bytes(output) + static_cast<size_t>(peer) * size;
      if (peer != here.rank)
        batch.pieces.push_back({false, peer, place, size});
      else if (size > 0)
        batch.ends.push_back([=] { std::memmove(place, input, size); });
    }
  });
}
EXPORT ncclSend(const void* data, size_t count, int type, int peer, void* comm, SoftwareStream* stream) {
  const size_t size = count * kBytes[type];
  return call(comm, stream, [&](Batch& batch, Comm&) { batch.pieces.push_back({true, peer, bytes(data), size}); });
}
EXPORT ncclRecv(void* data, size_t count, int type, int peer, void* comm, SoftwareStream* stream) {
  const size_t size = count * kBytes[type];
  return call(comm, stream, [&](Batch& batch, Comm&) { batch.pieces.push_back({false, peer, bytes(data), size}); });
}

EXPORT ncclAlltoAll(const void* input, void* output, size_t count, int type, void* comm, SoftwareStream* stream) {
  const size_t size = count * kBytes[type];
  exchanges_so_far++;
  return call(comm, stream, [&](Batch& batch, Comm& here) {
    for (int peer = 0; peer < here.size; ++peer) {
      const size_t place = static_cast<size_t>(peer) * size;
      batch.pieces.push_back({true, peer, bytes(input) + place, size});
      batch.pieces.push_back({false, peer, bytes(output) + place, size});
    }
  });
}
EXPORT ncclGather(const void* input, void* output, size_t count, int type, int root, void* comm,
                  SoftwareStream* stream) {
  const size_t size = count * kBytes[type];
  exchanges_so_far++;
  return call(comm, stream, [&](Batch& batch, Comm& here) {
    batch.pieces.push_back({true, root, bytes(input), size});
    for (int peer = 0; peer < here.size && here.rank == root; ++peer) {
      batch.pieces.push_back({false, peer, bytes(output) + static_cast<size_t>(peer) * size, size});
    }
  });
}
EXPORT ncclScatter(const void* input, void* output, size_t count, int type, int root, void* comm,
                   SoftwareStream* stream) {
  const size_t size = count * kBytes[type];
  exchanges_so_far++;
  return call(comm, stream, [&](Batch& batch, Comm& here) {
    for (int peer = 0; peer < here.size && here.rank == root; ++peer) {
      batch.pieces.push_back({true, peer, bytes(input) + static_cast<size_t>(peer) * size, size});
    }
    batch.pieces.push_back({false, root, bytes(output), size});
  });
}

/// Returns the number of calls of the three functions above, which older libraries lack, in this process.
EXPORT softwareNcclExchanges() { return exchanges_so_far; }
/// Returns the number of groups of calls in this process; a call outside of a group counts as one.
EXPORT softwareNcclBatches() { return batches_so_far; }
/// Sets how long an abort takes, in milliseconds.
EXPORT softwareNcclAbortTakes(int milliseconds) { return abort_takes_ms = milliseconds; }
/// Returns the number of aborts that have not returned.
EXPORT softwareNcclAborts() { return aborts_now; }
/// Sets whether communicators stay busy with all later calls.
EXPORT softwareNcclStall(int stalls) { return is_stalled = stalls != 0; }
/// Returns the number of registrations in this process so far, and sets `now` to the number of those that still exist.
EXPORT softwareNcclRegistrations(int* now) { return *now = registered_now, registered_so_far; }
/// Returns the number of registrations in this process so far whose memory NVLink can use.
EXPORT softwareNcclShareable() { return shareable_so_far; }
/// Makes the network of all communicators of this process fail.
EXPORT softwareNcclBreak() {
  const std::lock_guard lock(of_all);
  for (Handle* const handle : all_handles()) {
    (*handle)->last_error = "the cable is out";
    (*handle)->state = kRemoteError;
  }
  return kSuccess;
}
