// Tests what the ranks of an NcclGroup compute, in which order, with which registered memory, and how they close.
#include "two_ranks.h"

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace ringwise;
using namespace ringwise::test;

namespace {

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

int main() { return run_on_software_nccl(); }
