// Two ranks of an NcclGroup in this process, on the software driver and the software libnccl (software_gpu/), for the
// tests of this folder.
#pragma once

#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/cuda/cuda_context.h"
#include "base/time/clock.h"
#include "coll/nccl/group.h"
#include "test/check.h"

namespace ringwise::test {

using coll::Failure;
using coll::FailureCode;
using coll::Op;
using coll::ReduceOp;
using coll::Verb;
using nccl::Ended;
using nccl::NcclGroup;

constexpr size_t kCount = 5000;  // more than the software libnccl moves at once
constexpr int64_t kLong = 20'000 * kMillisecond;

/// Returns a function of the software library that NCCL does not have.
template <class Function>
Function* extra(const char* name) {
  return reinterpret_cast<Function*>(nccl::library().file.symbol(name));
}
inline int batches() { return extra<int()>("softwareNcclBatches")(); }

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

/// Two ranks of one group, connected.
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
inline void check_new_pair() {
  Pair pair;
  Floats a(0, 1), b(1, 2);
  const uint64_t first = pair.zero.group.start(a.all_reduce(), nullptr),
                 second = pair.one.group.start(b.all_reduce(), nullptr);
  CHECK(pair.zero.end_of(first) == nullptr);
  CHECK(pair.one.end_of(second) == nullptr);
  CHECK(a.are(3) && b.are(3));
}

inline int64_t since_ms(int64_t begin_ns) { return (now_ns() - begin_ns) / kMillisecond; }

/// Runs all tests of the program on the software driver and the software libnccl; returns the exit code.
inline int run_on_software_nccl() {
  setenv("RINGWISE_LIBCUDA", RINGWISE_SOFTWARE_NCCL, 1);
  setenv("RINGWISE_LIBNCCL", RINGWISE_SOFTWARE_NCCL, 1);
  return run_all();
}

}  // namespace ringwise::test
