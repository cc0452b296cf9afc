// Tests operations of an NcclGroup that are captured into a CUDA graph, and runs of the graph.
#include "two_ranks.h"

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace ringwise;
using namespace ringwise::test;

namespace {

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

}  // namespace

int main() { return run_on_software_nccl(); }
