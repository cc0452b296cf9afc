// Tests NcclGroup with two ranks in this process, on the software driver and the software libnccl (software_gpu/):
// results, failures and their causes.
#include "coll/nccl/group.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/cuda/cuda_context.h"
#include "base/time/clock.h"
#include "test/check.h"

using namespace ringwise;
using coll::Failure;
using coll::FailureCode;
using coll::Op;
using coll::ReduceOp;
using coll::Verb;
using nccl::Ended;
using nccl::NcclGroup;

namespace {

constexpr size_t kCount = 5000;  // more than the software libnccl moves at once
constexpr int64_t kLong = 20'000 * kMillisecond;

/// Returns a function of the software library that NCCL does not have.
template <class Function>
Function* extra(const char* name) {
  return reinterpret_cast<Function*>(nccl::library().file.symbol(name));
}
int batches() { return extra<int()>("softwareNcclBatches")(); }

/// Floats on a device. The device is the CPU, so the test accesses them directly.
class Floats {
 public:
  Floats(int device, float value, size_t count = kCount) : count_(count) {
    cuda::Context context = nullptr;
    cuda::check(cuda::driver().cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    cuda::check(cuda::driver().cuCtxSetCurrent(context), "cuCtxSetCurrent");
    cuda::check(cuda::driver().cuMemAlloc_v2(&address_, count * sizeof(float)), "cuMemAlloc");
    for (size_t i = 0; i < count; ++i) data()[i] = value;
  }
  ~Floats() { cuda::driver().cuMemFree_v2(address_); }
  Floats(const Floats&) = delete;

  float* data() { return reinterpret_cast<float*>(address_); }
  bool are(float value) {
    for (size_t i = 0; i < count_; ++i) {
      if (data()[i] != value) return false;
    }
    return true;
  }
  Op all_reduce(ReduceOp reduce = ReduceOp::Sum, int64_t timeout_ns = kLong) {
    Op op;
    op.verb = Verb::AllReduce;
    op.dtype = DType::Float32;
    op.reduce = reduce;
    op.count = count_;
    op.input = op.output = reinterpret_cast<std::byte*>(data());
    op.timeout_ns = timeout_ns;
    return op;
  }

 private:
  size_t count_;
  cuda::DevicePointer address_ = 0;
};

/// A rank, and the part of its host group that explains failures.
struct Rank {
  explicit Rank(int rank, int size = 2) : group(rank, size, rank % 2, [this] { return cause(); }, [this] { ++news; }) {}

  std::shared_ptr<const Failure> cause() {
    const std::lock_guard lock(mutex);
    return explanation;
  }
  void explain(Failure failure) {
    const std::lock_guard lock(mutex);
    explanation = std::make_shared<const Failure>(std::move(failure));
  }
  /// Waits until operation `id` has ended. Returns its failure, or null if it ended well.
  std::shared_ptr<const Failure> end_of(uint64_t id) {
    group.wait(id);
    std::vector<Ended> some;
    group.take_ended(some);
    ended.insert(ended.end(), some.begin(), some.end());
    for (const Ended& one : ended) {
      if (one.id == id) return one.failure;
    }
    return std::make_shared<const Failure>(FailureCode::System, -1, std::vector<int>{}, "it has not ended");
  }

  std::mutex mutex;
  std::shared_ptr<const Failure> explanation;
  std::atomic<int> news{0};
  std::vector<Ended> ended;
  NcclGroup group;
};

struct Pair {
  Pair() {
    const nccl::UniqueId id = NcclGroup::make_id();
    const uint64_t first = zero.group.connect(id, kLong), second = one.group.connect(id, kLong);
    CHECK(zero.end_of(first) == nullptr);
    CHECK(one.end_of(second) == nullptr);
  }
  Rank zero{0}, one{1};
};

/// Checks that the device and the library still work after a failure.
void check_new_pair() {
  Pair pair;
  Floats a(0, 1), b(1, 2);
  const uint64_t first = pair.zero.group.start(a.all_reduce(), nullptr),
                 second = pair.one.group.start(b.all_reduce(), nullptr);
  CHECK(pair.zero.end_of(first) == nullptr);
  CHECK(pair.one.end_of(second) == nullptr);
  CHECK(a.are(3) && b.are(3));
}

int64_t since_ms(int64_t begin_ns) { return (now_ns() - begin_ns) / kMillisecond; }

TEST("two ranks reduce on their devices: in calls before they are connected, and in blocking calls of threads") {
  Rank zero(0), one(1);
  Floats a(0, 1), b(1, 2);
  const uint64_t first = zero.group.start(a.all_reduce(), nullptr), second = one.group.start(b.all_reduce(), nullptr);
  const nccl::UniqueId id = NcclGroup::make_id();
  zero.group.connect(id, kLong);
  one.group.connect(id, kLong);
  CHECK(zero.end_of(first) == nullptr);
  CHECK(one.end_of(second) == nullptr);
  CHECK(a.are(3) && b.are(3));
  std::thread other([&] {
    for (int i = 0; i < 20; ++i) CHECK(one.group.run(b.all_reduce(ReduceOp::Avg), nullptr).failure == nullptr);
  });
  for (int i = 0; i < 20; ++i) CHECK(zero.group.run(a.all_reduce(ReduceOp::Avg), nullptr).failure == nullptr);
  other.join();
  CHECK(a.are(3) && b.are(3));
}

TEST("an operation comes after earlier work of its caller's stream, and before later work once it is fenced") {
  Pair pair;
  Floats from_a(0, 1), a(0, 0), to_a(0, 0), from_b(1, 2), b(1, 0), to_b(1, 0);
  const auto enter = [](int device) {
    cuda::Context context = nullptr;
    cuda::check(cuda::driver().cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    cuda::check(cuda::driver().cuCtxSetCurrent(context), "cuCtxSetCurrent");
  };
  const auto copy = [](Floats& to, Floats& from, cuda::Stream stream) {
    const auto address = [](Floats& floats) { return reinterpret_cast<cuda::DevicePointer>(floats.data()); };
    cuda::check(cuda::driver().cuMemcpyDtoDAsync_v2(address(to), address(from), kCount * sizeof(float), stream),
                "cuMemcpyDtoDAsync");
  };
  cuda::Stream streams[2] = {};
  uint64_t ids[2] = {};
  for (const int rank : {0, 1}) {
    enter(rank);
    cuda::check(cuda::driver().cuStreamCreate(&streams[rank], cuda::kStreamNonBlocking), "cuStreamCreate");
    copy(rank == 0 ? a : b, rank == 0 ? from_a : from_b, streams[rank]);
    ids[rank] = (rank == 0 ? pair.zero : pair.one).group.start((rank == 0 ? a : b).all_reduce(), streams[rank]);
  }
  for (const int rank : {0, 1}) {
    (rank == 0 ? pair.zero : pair.one).group.fence(ids[rank]);
    enter(rank);
    copy(rank == 0 ? to_a : to_b, rank == 0 ? a : b, streams[rank]);
  }
  // The streams wait for each other's ranks, so each is waited for on a thread of its own.
  std::thread other([&] { CHECK_EQ(cuda::driver().cuStreamSynchronize(streams[1]), cuda::kSuccess); });
  CHECK_EQ(cuda::driver().cuStreamSynchronize(streams[0]), cuda::kSuccess);
  other.join();
  CHECK(to_a.are(3) && to_b.are(3));
  CHECK(pair.zero.end_of(ids[0]) == nullptr && pair.one.end_of(ids[1]) == nullptr);
  for (cuda::Stream stream : streams) cuda::driver().cuStreamDestroy_v2(stream);
}

/// Gathers, scatters and exchanges between two ranks, in even parts and in parts whose sizes are given. `calls_of_even`
/// is the expected number of calls of NCCL's own functions for even parts.
void check_exchanges(int calls_of_even) {
  const auto exchanges = extra<int()>("softwareNcclExchanges");
  Pair pair;
  Floats a(0, 1, 4), b(1, 2, 4), into_a(0, 0, 4), into_b(1, 0, 4);
  for (const Verb verb : {Verb::Gather, Verb::Scatter, Verb::AllToAll}) {
    for (const bool is_even : {true, false}) {
      const size_t counts[] = {2, 2};
      const auto op_of = [&](Floats& from, Floats& into) {
        Op op = from.all_reduce();
        op.verb = verb;
        op.root = 0;
        op.count = 2;
        op.output = reinterpret_cast<std::byte*>(into.data());
        if (!is_even) op.counts = op.recv_counts = counts;
        return op;
      };
      const int before = exchanges();
      const uint64_t first = pair.zero.group.start(op_of(a, into_a), nullptr);
      const uint64_t second = pair.one.group.start(op_of(b, into_b), nullptr);
      CHECK(pair.zero.end_of(first) == nullptr);
      CHECK(pair.one.end_of(second) == nullptr);
      CHECK(exchanges() - before == (is_even ? calls_of_even : 0));
      if (verb != Verb::Scatter)
        CHECK(into_a.data()[0] == 1 && into_a.data()[1] == 1 && into_a.data()[2] == 2 && into_a.data()[3] == 2);
      if (verb != Verb::Gather) CHECK(into_b.data()[0] == 1 && into_b.data()[1] == 1);
    }
  }
}

TEST("gather, scatter and all-to-all of even parts are NCCL's own functions, of uneven ones a group of messages") {
  check_exchanges(2);
}

TEST("without the functions of NCCL 2.28 they are groups of messages in any case") {
  auto& library = const_cast<nccl::Library&>(nccl::library());
  const auto gather = std::exchange(library.ncclGather, nullptr);
  const auto scatter = std::exchange(library.ncclScatter, nullptr);
  const auto exchange = std::exchange(library.ncclAlltoAll, nullptr);
  check_exchanges(0);
  library.ncclGather = gather;
  library.ncclScatter = scatter;
  library.ncclAlltoAll = exchange;
}

TEST("operations that no thread waits for end by themselves, and their owners are notified") {
  Pair pair;
  Floats a(0, 1), b(1, 2);
  const int zero_before = pair.zero.news, one_before = pair.one.news;
  pair.zero.group.start(a.all_reduce(), nullptr);
  pair.one.group.start(b.all_reduce(), nullptr);
  // Wait for both ranks, because the end of this test frees the memory of both.
  const auto are_told = [&] { return pair.zero.news > zero_before && pair.one.news > one_before; };
  for (const int64_t begin = now_ns(); !are_told() && since_ms(begin) < 10'000;) std::this_thread::yield();
  CHECK(are_told());
}

TEST("held operations go to NCCL as one group, in their order, without earlier and later ones") {
  Pair pair;
  Floats a(0, 1), b(1, 2), c(0, 10), d(1, 20);
  const int before = batches();
  std::vector<uint64_t> ids[2];
  int rank = 0;
  for (Rank* each : {&pair.zero, &pair.one}) {
    Floats& first = rank == 0 ? a : b;
    Floats& second = rank == 0 ? c : d;
    ids[rank].push_back(each->group.start(first.all_reduce(), nullptr));
    each->group.hold();
    for (int i = 0; i < 3; ++i) {
      ids[rank].push_back(each->group.start(first.all_reduce(ReduceOp::Avg), nullptr));
      ids[rank].push_back(each->group.start(second.all_reduce(ReduceOp::Max), nullptr));
    }
    each->group.release();
    ids[rank].push_back(each->group.start(second.all_reduce(), nullptr));
    ++rank;
  }
  for (const uint64_t id : ids[0]) CHECK(pair.zero.end_of(id) == nullptr);
  for (const uint64_t id : ids[1]) CHECK(pair.one.end_of(id) == nullptr);
  CHECK(a.are(3) && b.are(3) && c.are(40) && d.are(40));
  CHECK_EQ(batches() - before, 2 * 3);
}

TEST("memory is registered between the operations before and after, and let go when what uses it has ended") {
  const auto registrations = [] {
    int now = 0;
    const int so_far = extra<int(int*)>("softwareNcclRegistrations")(&now);
    return std::pair(so_far, now);
  };
  const auto before = registrations();
  {
    Pair pair;
    Rank &zero = pair.zero, &one = pair.one;
    Floats a(0, 1), b(1, 2);
    // Rank 0 queues all operations ahead of its stream, and rank 1 waits for each. Still both ranks must call NCCL with
    // the same memory registered.
    zero.group.hold();
    std::vector<uint64_t> of_zero{zero.group.start(a.all_reduce(), nullptr)};
    const uint64_t at_zero = zero.group.register_buffer(a.data(), kCount * sizeof(float));
    zero.group.release();
    of_zero.push_back(zero.group.start(a.all_reduce(ReduceOp::Avg), nullptr));
    of_zero.push_back(zero.group.deregister_buffer(at_zero));
    of_zero.push_back(zero.group.start(a.all_reduce(), nullptr));
    CHECK(one.end_of(one.group.start(b.all_reduce(), nullptr)) == nullptr);
    const uint64_t at_one = one.group.register_buffer(b.data(), kCount * sizeof(float));
    CHECK(one.end_of(one.group.start(b.all_reduce(ReduceOp::Avg), nullptr)) == nullptr);
    CHECK(one.end_of(one.group.deregister_buffer(at_one)) == nullptr);
    CHECK(one.end_of(one.group.deregister_buffer(at_one)) == nullptr);  // a second time
    CHECK(one.end_of(one.group.start(b.all_reduce(), nullptr)) == nullptr);
    for (const uint64_t each : of_zero) CHECK(zero.end_of(each) == nullptr);
    CHECK(a.are(6) && b.are(6));
    CHECK_EQ(registrations().first - before.first, 2);
    CHECK_EQ(registrations().second, before.second);
    // close() and an abort release the registrations that are left.
    zero.group.register_buffer(a.data(), kCount * sizeof(float));
    const uint64_t left = one.group.register_buffer(b.data(), kCount * sizeof(float));
    const uint64_t first = zero.group.start(a.all_reduce(), nullptr), second = one.group.start(b.all_reduce(), nullptr);
    CHECK(zero.end_of(first) == nullptr && one.end_of(second) == nullptr);
    CHECK_EQ(registrations().second, before.second + 2);
    CHECK(zero.end_of(zero.group.close()) == nullptr);
    CHECK_EQ(registrations().second, before.second + 1);
    const uint64_t pending = one.group.start(b.all_reduce(), nullptr);
    const uint64_t leaving = one.group.deregister_buffer(left);
    one.group.abort({FailureCode::Aborted, 0, {0}, "enough"});
    CHECK(one.end_of(pending) != nullptr);
    CHECK(one.end_of(leaving) == nullptr);
    CHECK_EQ(registrations().second, before.second);
  }
  // The software library notices memory that is freed before its registration ends, and ranks of which only one has
  // registered its memory.
  {
    Pair pair;
    Floats a(0, 1), b(1, 2);
    pair.zero.group.register_buffer(a.data(), kCount * sizeof(float));
    const uint64_t first = pair.zero.group.start(a.all_reduce(), nullptr);
    pair.one.group.start(b.all_reduce(), nullptr);
    pair.zero.end_of(first);
    const auto failure = pair.zero.end_of(pair.zero.group.start(a.all_reduce(), nullptr));
    CHECK(failure != nullptr && failure->text.find("others have not") != std::string::npos);
  }
  {
    Pair pair;
    Floats a(0, 1), b(1, 2);
    auto gone = std::make_unique<Floats>(0, 1);
    pair.zero.group.register_buffer(gone->data(), kCount * sizeof(float));
    const uint64_t first = pair.zero.group.start(a.all_reduce(), nullptr),
                   second = pair.one.group.start(b.all_reduce(), nullptr);
    CHECK(pair.zero.end_of(first) == nullptr && pair.one.end_of(second) == nullptr);
    gone.reset();
    const auto failure = pair.zero.end_of(pair.zero.group.start(a.all_reduce(), nullptr));
    CHECK(failure != nullptr && failure->text.find("registered memory has been given back") != std::string::npos);
  }
  check_new_pair();
}

TEST("an operation to which a rank does not come fails at the deadline, after the grace for the host group") {
  {
    Pair pair;
    Floats a(0, 1);
    const int64_t begin = now_ns();
    const Ended ended = pair.zero.group.run(a.all_reduce(ReduceOp::Sum, 100 * kMillisecond), nullptr);
    CHECK(ended.failure != nullptr && ended.failure->code == FailureCode::Timeout);
    CHECK(ended.failure != nullptr && ended.failure->text.find("within 100 ms") != std::string::npos);
    CHECK(since_ms(begin) >= 600);
    // All later operations fail at once with the same failure.
    CHECK(pair.zero.group.run(a.all_reduce(), nullptr).failure == ended.failure);
    CHECK(pair.zero.end_of(pair.zero.group.close()) == nullptr);
  }
  check_new_pair();
}

TEST("the clock of an operation starts when those before it have ended, whether they are on the stream or not") {
  for (const bool is_stalled : {false, true}) {
    Pair pair;
    Floats a(0, 1), b(0, 1);
    extra<int(int)>("softwareNcclStall")(is_stalled);
    const int64_t begin = now_ns();
    const uint64_t first = pair.zero.group.start(a.all_reduce(ReduceOp::Sum, 600 * kMillisecond), nullptr);
    const uint64_t second = pair.zero.group.start(b.all_reduce(ReduceOp::Sum, 50 * kMillisecond), nullptr);
    const auto failure = pair.zero.end_of(second);
    extra<int(int)>("softwareNcclStall")(0);
    CHECK(failure != nullptr && failure->code == FailureCode::Timeout &&
          failure->text.find("within 600 ms") != std::string::npos);
    CHECK(pair.zero.end_of(first) == failure);
    CHECK(since_ms(begin) >= 1100);
  }
  check_new_pair();
}

/// Makes the default streams of both devices busy for a time: their later work waits.
void keep_busy(int ms) {
  const auto sleep = [](cuda::Stream, int, void* data) {
    std::this_thread::sleep_for(std::chrono::milliseconds(reinterpret_cast<intptr_t>(data)));
  };
  for (const int device : {0, 1}) {
    cuda::Context context = nullptr;
    cuda::check(cuda::driver().cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    const cuda::Entered entered(context);
    cuda::check(
        cuda::driver().cuStreamAddCallback(nullptr, sleep, reinterpret_cast<void*>(static_cast<intptr_t>(ms)), 0),
        "cuStreamAddCallback");
  }
}

TEST("work that is queued on the device before an operation, or before a list of them, does not make it late") {
  Pair pair;
  Floats a(0, 1), b(1, 2), c(0, 5), d(1, 5);
  constexpr int64_t kShort = 100 * kMillisecond;
  const int64_t begin = now_ns();
  keep_busy(1500);  // longer than the timeout and the grace together
  std::vector<uint64_t> ids[2];
  for (const int rank : {0, 1}) {
    NcclGroup& group = (rank == 0 ? pair.zero : pair.one).group;
    Floats &first = rank == 0 ? a : b, &second = rank == 0 ? c : d;
    ids[rank].push_back(group.start(first.all_reduce(ReduceOp::Sum, kShort), nullptr));
    group.hold();
    ids[rank].push_back(group.start(first.all_reduce(ReduceOp::Avg, kShort), nullptr));
    ids[rank].push_back(group.start(second.all_reduce(ReduceOp::Sum, kShort), nullptr));
    group.release();
  }
  for (const uint64_t id : ids[0]) CHECK(pair.zero.end_of(id) == nullptr);
  for (const uint64_t id : ids[1]) CHECK(pair.one.end_of(id) == nullptr);
  CHECK(a.are(3) && b.are(3) && c.are(10) && d.are(10));
  CHECK(since_ms(begin) >= 1500);
  // A rank that is missing is late after the queued work, not before its end.
  keep_busy(1000);
  const auto failure = pair.zero.end_of(pair.zero.group.start(a.all_reduce(ReduceOp::Sum, kShort), nullptr));
  CHECK(failure != nullptr && failure->code == FailureCode::Timeout);
  CHECK(since_ms(begin) >= 1500 + 1000 + 600);
}

TEST("an error of NCCL's is the cause only where the host group does not know better within the grace") {
  for (const bool is_explained : {true, false}) {
    Pair pair;
    Floats a(0, 1);
    const uint64_t id = pair.zero.group.start(a.all_reduce(), nullptr);
    const int64_t begin = now_ns();
    extra<int()>("softwareNcclBreak")();
    std::thread host;
    if (is_explained) {
      host = std::thread([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(150));
        pair.zero.explain({FailureCode::PeerLost, 0, {1}, "rank 1 is gone"});
      });
    }
    const auto failure = pair.zero.end_of(id);
    if (host.joinable()) host.join();
    CHECK(failure != nullptr);
    if (failure == nullptr) continue;
    CHECK_EQ(static_cast<int>(failure->code),
             static_cast<int>(is_explained ? FailureCode::PeerLost : FailureCode::System));
    CHECK_EQ(failure->text.find(is_explained ? "rank 1 is gone" : "the cable is out") != std::string::npos, true);
    CHECK(since_ms(begin) >= (is_explained ? 150 : 490));
  }
  check_new_pair();
}

TEST("an operation that NCCL refuses fails with its text") {
  Pair pair;
  Floats a(0, 1);
  Op op = a.all_reduce(ReduceOp::PremulSum);
  op.dtype = DType::Int32;
  const auto failure = pair.zero.group.run(op, nullptr).failure;
  CHECK(failure != nullptr && failure->code == FailureCode::System &&
        failure->text.find("rank 0: NCCL: invalid argument") == 0);
}

TEST("the owner does not wait while NCCL aborts, and nothing ends before that is over") {
  Pair pair;
  Floats a(0, 1);
  const uint64_t pending = pair.zero.group.start(a.all_reduce(), nullptr);
  extra<int(int)>("softwareNcclAbortTakes")(300);
  const int64_t begin = now_ns();
  pair.zero.group.abort({FailureCode::Aborted, 0, {0}, "enough"});
  const uint64_t later = pair.zero.group.start(a.all_reduce(), nullptr);
  CHECK(since_ms(begin) < 200);
  const auto failure = pair.zero.end_of(pending);
  CHECK(since_ms(begin) >= 300);
  extra<int(int)>("softwareNcclAbortTakes")(0);
  CHECK(failure != nullptr && failure->code == FailureCode::Aborted && failure->text == "enough");
  CHECK(pair.zero.end_of(later) == failure);
}

TEST("ranks that do not meet give up at the deadline") {
  Rank zero(0);
  Floats a(0, 1);
  const uint64_t pending = zero.group.start(a.all_reduce(), nullptr);
  const auto failure = zero.end_of(zero.group.connect(NcclGroup::make_id(), 100 * kMillisecond));
  CHECK(failure != nullptr && failure->text == "NCCL has not connected the ranks in time");
  CHECK(zero.end_of(pending) == failure);
}

TEST("close() waits for pending operations; a group that is destroyed without it drops those that can never end") {
  Floats a(0, 1), b(1, 2);  // freed after the pair, because freeing waits for all pending work of the device
  Pair pair;
  pair.zero.group.start(a.all_reduce(), nullptr);
  const uint64_t closed = pair.zero.group.close();
  pair.one.group.run(b.all_reduce(), nullptr);
  CHECK(pair.zero.end_of(closed) == nullptr);
  CHECK(a.are(3) && b.are(3));
  CHECK_EQ(pair.zero.ended.back().id, closed);
  pair.one.group.start(b.all_reduce(), nullptr);
}

TEST("a group for a device that does not exist is refused") {
  std::string message;
  try {
    NcclGroup(0, 1, 7, [] { return nullptr; }, [] {});
  } catch (const std::exception& error) {
    message = error.what();
  }
  CHECK(message.find("cuDeviceGet: ") == 0);
}

}  // namespace

/// A stream of a device, and the graph that is captured on it. The constructor begins the capture.
class Recorder {
 public:
  explicit Recorder(int device) {
    cuda::check(cuda::driver().cuDevicePrimaryCtxRetain(&context_, device), "cuDevicePrimaryCtxRetain");
    cuda::check(cuda::driver().cuCtxSetCurrent(context_), "cuCtxSetCurrent");
    cuda::check(cuda::driver().cuStreamCreate(&stream, cuda::kStreamNonBlocking), "cuStreamCreate");
    cuda::check(cuda::driver().cuStreamBeginCapture_v2(stream, cuda::kCaptureRelaxed), "cuStreamBeginCapture");
  }
  ~Recorder() {
    drop();
    cuda::driver().cuStreamDestroy_v2(stream);
  }
  Recorder(const Recorder&) = delete;

  /// Ends the capture and instantiates the graph. Returns the driver's status.
  int end() {
    cuda::Graph graph = nullptr;
    const int status = cuda::driver().cuStreamEndCapture(stream, &graph);
    if (status != cuda::kSuccess) return status;
    cuda::check(cuda::driver().cuGraphInstantiateWithFlags(&executable_, graph, 0), "cuGraphInstantiate");
    cuda::check(cuda::driver().cuGraphDestroy(graph), "cuGraphDestroy");
    return status;
  }
  void copy(Floats& to, Floats& from) {
    const auto address = [](Floats& floats) { return reinterpret_cast<cuda::DevicePointer>(floats.data()); };
    cuda::check(cuda::driver().cuCtxSetCurrent(context_), "cuCtxSetCurrent");
    cuda::check(cuda::driver().cuMemcpyDtoDAsync_v2(address(to), address(from), kCount * sizeof(float), stream),
                "cuMemcpyDtoDAsync");
  }
  uint64_t run(NcclGroup& group, int64_t timeout_ns = kLong) {
    Op op;
    op.timeout_ns = timeout_ns;
    CHECK(group.begin_run(stream) == nullptr);
    cuda::check(cuda::driver().cuGraphLaunch(executable_, stream), "cuGraphLaunch");
    return group.end_run(op, stream);
  }
  void drop() {
    if (executable_) cuda::driver().cuGraphExecDestroy(executable_);
    executable_ = nullptr;
  }

  cuda::Stream stream = nullptr;

 private:
  cuda::Context context_ = nullptr;
  cuda::GraphExec executable_ = nullptr;
};

TEST("captured operations run with their graph, in order with other operations; joined work waits for them") {
  Pair pair;
  Floats a(0, 1), b(1, 2), after(0, 0), other(1, 0);
  Recorder first(0), second(1);
  for (Recorder* each : {&first, &second}) {
    Rank& rank = each == &first ? pair.zero : pair.one;
    Floats& own = each == &first ? a : b;
    const uint64_t sum = rank.group.capture(own.all_reduce(), each->stream);
    const uint64_t largest = rank.group.capture(own.all_reduce(ReduceOp::Max), each->stream);
    rank.group.join(sum);
    rank.group.join(largest);
    each->copy(each == &first ? after : other, own);
    CHECK_EQ(each->end(), cuda::kSuccess);
    CHECK(rank.end_of(sum) == nullptr && rank.end_of(largest) == nullptr);
  }
  CHECK(a.are(1) && b.are(2));  // nothing has run
  uint64_t ends[2] = {};
  for (int i = 0; i < 2; ++i) {
    ends[0] = first.run(pair.zero.group);
    ends[1] = second.run(pair.one.group);
  }
  const uint64_t zeros = pair.zero.group.start(a.all_reduce(), nullptr),
                 ones = pair.one.group.start(b.all_reduce(), nullptr);
  CHECK(pair.zero.end_of(ends[0]) == nullptr && pair.one.end_of(ends[1]) == nullptr);
  CHECK(after.are(6) && other.are(6));
  CHECK(pair.zero.end_of(zeros) == nullptr && pair.one.end_of(ones) == nullptr);
  CHECK(a.are(12) && b.are(12));
  // close() can end, because NCCL's communicators are destroyed once the graphs are.
  first.drop();
  second.drop();
  const uint64_t bye = pair.zero.group.close(), bye_too = pair.one.group.close();
  CHECK(pair.zero.end_of(bye) == nullptr && pair.one.end_of(bye_too) == nullptr);
}

TEST("held operations become part of a graph as one group") {
  Pair pair;
  Floats a(0, 1), b(1, 2), c(0, 10), d(1, 20);
  Recorder first(0), second(1);
  const int before = batches();
  for (Recorder* each : {&first, &second}) {
    Rank& rank = each == &first ? pair.zero : pair.one;
    Floats& own = each == &first ? a : b;
    Floats& other = each == &first ? c : d;
    rank.group.hold();
    std::vector<uint64_t> ids;
    for (const ReduceOp op : {ReduceOp::Sum, ReduceOp::Max}) {
      for (Floats* floats : {&own, &other}) ids.push_back(rank.group.capture(floats->all_reduce(op), each->stream));
    }
    rank.group.release();
    for (const uint64_t id : ids) rank.group.join(id);
    CHECK_EQ(each->end(), cuda::kSuccess);
    for (const uint64_t id : ids) CHECK(rank.end_of(id) == nullptr);
  }
  CHECK_EQ(batches() - before, 2);
  for (int i = 0; i < 2; ++i) {
    const uint64_t zeros = first.run(pair.zero.group), ones = second.run(pair.one.group);
    CHECK(pair.zero.end_of(zeros) == nullptr && pair.one.end_of(ones) == nullptr);
  }
  CHECK(a.are(6) && b.are(6) && c.are(60) && d.are(60));
}

TEST("operations that are held for a graph end with the group") {
  Pair pair;
  Floats a(0, 1);
  Recorder graph(0);
  pair.zero.group.hold();
  const uint64_t first = pair.zero.group.capture(a.all_reduce(), graph.stream),
                 second = pair.zero.group.capture(a.all_reduce(), graph.stream);
  pair.zero.group.abort({FailureCode::Aborted, 0, {0}, "enough"});
  pair.zero.group.release();
  const auto failure = pair.zero.end_of(first);
  CHECK(failure != nullptr && failure->text == "enough");
  CHECK(pair.zero.end_of(second) == failure);
}

TEST("a captured operation fails at the deadline if NCCL stays busy with it") {
  Pair pair;
  Floats a(0, 1);
  Recorder graph(0);
  extra<int(int)>("softwareNcclStall")(1);
  const int64_t begin = now_ns();
  const auto failure =
      pair.zero.end_of(pair.zero.group.capture(a.all_reduce(ReduceOp::Sum, 100 * kMillisecond), graph.stream));
  extra<int(int)>("softwareNcclStall")(0);
  CHECK(failure != nullptr && failure->code == FailureCode::Timeout &&
        failure->text.find("within 100 ms") != std::string::npos);
  CHECK(since_ms(begin) >= 600);
}

TEST("a captured operation that is not joined spoils the graph, and the group works on") {
  Pair pair;
  Floats a(0, 1), b(1, 2);
  for (const bool is_given_up : {false, true}) {
    Recorder graph(0);
    const uint64_t id = pair.zero.group.capture(a.all_reduce(), graph.stream);
    if (is_given_up) pair.zero.group.forget(id);
    CHECK_EQ(graph.end(), 904);  // CUDA_ERROR_STREAM_CAPTURE_UNJOINED
    if (!is_given_up) pair.zero.group.forget(id);
    CHECK(pair.zero.end_of(id) == nullptr);
  }
  const uint64_t first = pair.zero.group.start(a.all_reduce(), nullptr),
                 second = pair.one.group.start(b.all_reduce(), nullptr);
  CHECK(pair.zero.end_of(first) == nullptr && pair.one.end_of(second) == nullptr);
  CHECK(a.are(3) && b.are(3));
}

TEST("a run to which a rank does not come fails at the deadline, and all operations end although the graph lives on") {
  {
    Floats a(0, 1), b(0, 1);
    Recorder graph(0);
    Pair pair;
    pair.zero.group.join(pair.zero.group.capture(a.all_reduce(), graph.stream));
    CHECK_EQ(graph.end(), cuda::kSuccess);
    const int64_t begin = now_ns();
    const uint64_t late = graph.run(pair.zero.group, 100 * kMillisecond),
                   behind = pair.zero.group.start(b.all_reduce(), nullptr);
    const auto failure = pair.zero.end_of(late);
    CHECK(failure != nullptr && failure->code == FailureCode::Timeout);
    CHECK(pair.zero.end_of(behind) == failure);
    CHECK(since_ms(begin) < 5'000);
    CHECK(pair.zero.group.begin_run(graph.stream) == failure);
    CHECK(pair.zero.end_of(pair.zero.group.close()) == nullptr);
  }
  check_new_pair();
}

TEST("a run behind work that never ends fails with its group all the same, and its memory is lent") {
  static std::atomic<bool> is_blocked{true};
  {
    Floats a(0, 1), b(0, 1);
    Recorder graph(0);
    Pair pair;
    pair.zero.group.join(pair.zero.group.capture(a.all_reduce(), graph.stream));
    CHECK_EQ(graph.end(), cuda::kSuccess);
    const auto block = [](cuda::Stream, int, void*) {
      while (is_blocked) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    };
    cuda::check(cuda::driver().cuStreamAddCallback(graph.stream, block, nullptr, 0), "cuStreamAddCallback");
    const uint64_t run = graph.run(pair.zero.group), queued = pair.zero.group.start(b.all_reduce(), nullptr);
    pair.zero.explain({FailureCode::PeerLost, 0, {1}, "lost rank 1"});
    for (const uint64_t id : {run, queued}) {
      const auto failure = pair.zero.end_of(id);
      CHECK(failure != nullptr && failure->text == "lost rank 1");
    }
    for (const Ended& one : pair.zero.ended) CHECK_EQ(one.is_lent, one.id == run || one.id == queued);
    is_blocked = false;
  }
  check_new_pair();
}

TEST("a thread ends the communicator of a destroyed group, if it was part of a graph") {
  const int before = extra<int()>("softwareNcclAborts")();  // of graphs that earlier tests have never destroyed
  {
    Pair pair;
    Floats a(0, 1);
    {
      Recorder graph(0);
      pair.zero.group.join(pair.zero.group.capture(a.all_reduce(), graph.stream));
      CHECK_EQ(graph.end(), cuda::kSuccess);
    }
    extra<int(int)>("softwareNcclAbortTakes")(400);
  }
  extra<int(int)>("softwareNcclAbortTakes")(0);
  const auto aborts = [] { return extra<int()>("softwareNcclAborts")(); };
  for (int waits = 0; aborts() > before && waits < 2000; waits++)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK(aborts() <= before);
}

int main() {
  setenv("RINGWISE_LIBCUDA", RINGWISE_SOFTWARE_NCCL, 1);
  setenv("RINGWISE_LIBNCCL", RINGWISE_SOFTWARE_NCCL, 1);
  return ringwise::test::run_all();
}
