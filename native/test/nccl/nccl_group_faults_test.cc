// Tests the failures of an NcclGroup: deadlines, missing ranks, errors of NCCL, aborts, and their causes.
#include "two_ranks.h"

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace ringwise;
using namespace ringwise::test;

namespace {

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

}  // namespace

int main() { return run_on_software_nccl(); }
