// Captured operations of NcclGroup: adds them to a CUDA graph, watches each run of the graph, and ends a communicator
// that graphs still use.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "base/cuda/cuda_context.h"
#include "base/time/clock.h"
#include "coll/nccl/apart.h"
#include "coll/nccl/group.h"
#include "coll/nccl/transfer.h"

namespace ringwise::nccl {

using cuda::driver;

namespace {

/// Longest wait for the end of a communicator if there is no event that shows that the device has completed its work.
constexpr int64_t kPatience = 200 * kMillisecond;
/// Longest wait until the device has completed the work of an aborted communicator. Other work before it may never end.
constexpr int64_t kPassing = 5000 * kMillisecond;

/// Makes an event that is captured into a graph once. Events of `spare_` are queried, and a query of a captured event
/// invalidates the graph, so it is not taken from there.
cuda::Event make_event() {
  cuda::Event event = nullptr;
  cuda::check(driver().cuEventCreate(&event, cuda::kEventDisableTiming), "cuEventCreate");
  return event;
}

}  // namespace

uint64_t NcclGroup::capture(coll::Op op, cuda::Stream caller) {
  const cuda::Entered entered(context_);
  Lock lock(mutex_);
  op.id = next_id_++;
  op.deadline_ns = now_ns() + op.timeout_ns + kGrace;
  deferred_.push_back({op, caller, make_event()});
  if (holding_ == 0) capture_deferred(lock);
  return op.id;
}

/// Adds the held operations to the graph, as one NCCL group. They stay in deferred_ until NCCL has accepted them, so
/// that the watchdog checks their deadlines.
void NcclGroup::capture_deferred(Lock& lock) {
  const uint64_t first = deferred_.front().op.id;
  // NCCL launches earlier operations from a thread of its own, which must not happen during the capture.
  wait_until(lock, [this, first] {
    return failure_ || (is_connected_ && !suspicion_ && queue_.empty() && !registrations_.is_blocking(first));
  });
  try {
    if (!failure_) give_captured();
  } catch (const std::exception& error) {
    suspect(error.what());
  }
  int state = kInProgress;
  wait_until(lock, [this, &state] {
    if (!failure_) library().ncclCommGetAsyncError(comm_, &state);
    return failure_ || (state == kSuccess && !suspicion_);
  });
  try {
    for (const Captured& each : deferred_) {
      if (!failure_) record_event(each.done, capture_stream_);
    }
  } catch (const std::exception& error) {
    give_up(system(error.what()));
  }
  for (const Captured& each : std::exchange(deferred_, {})) {
    if (!failure_) {
      open_.push_back(each);
      continue;
    }
    driver().cuEventDestroy_v2(each.done);
    end(each.op.id, failure_);
  }
}

void NcclGroup::give_captured() {
  if (const int refusal = registrations_.register_before(deferred_.front().op.id, comm_)) {
    throw std::runtime_error("ncclCommRegister: " + text_of(refusal, comm_));
  }
  has_captured_ = true;
  for (const Captured& each : deferred_) {
    record_event(each.done, each.caller);
    cuda::check(driver().cuStreamWaitEvent(capture_stream_, each.done, 0), "cuStreamWaitEvent");
  }
  const auto give = [this](int i) {
    return enqueue(deferred_[static_cast<size_t>(i)].op, comm_, rank_, size_, capture_stream_);
  };
  const int status = deferred_.size() == 1 ? give(0) : grouped(static_cast<int>(deferred_.size()), give);
  if (status != kSuccess && status != kInProgress) throw std::runtime_error("NCCL: " + text_of(status, comm_));
}

void NcclGroup::join(uint64_t id) {
  const cuda::Entered entered(context_);
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(open_.begin(), open_.end(), [id](const Captured& each) { return each.op.id == id; });
  if (found == open_.end()) return;
  const cuda::Stream caller = found->caller;
  const cuda::Event done = drop_captured(id);
  const int status = driver().cuStreamWaitEvent(caller, done, 0);
  driver().cuEventDestroy_v2(done);
  end(id, nullptr);
  cuda::check(status, "cuStreamWaitEvent");
}

void NcclGroup::forget(uint64_t id) {
  const cuda::Entered entered(context_);
  const std::lock_guard lock(mutex_);
  if (const cuda::Event done = drop_captured(id)) {
    driver().cuEventDestroy_v2(done);
    end(id, nullptr);
  }
}

/// Removes the operation from open_ and returns its event; null if it is not open.
cuda::Event NcclGroup::drop_captured(uint64_t id) {
  const auto found = std::find_if(open_.begin(), open_.end(), [id](const Captured& each) { return each.op.id == id; });
  if (found == open_.end()) return nullptr;
  const cuda::Event done = found->done;
  open_.erase(found);
  return done;
}

std::shared_ptr<const coll::Failure> NcclGroup::begin_run(cuda::Stream stream) {
  const cuda::Entered entered(context_);
  Lock lock(mutex_);
  wait_until(lock, [this] { return failure_ || (is_connected_ && !suspicion_ && queue_.empty()); });
  if (failure_) return failure_;
  if (!running_.empty()) {
    cuda::check(driver().cuStreamWaitEvent(stream, running_.back().done, 0), "cuStreamWaitEvent");
  }
  if (run_ready_ == nullptr) run_ready_ = take_event();
  record_event(run_ready_, stream);
  return nullptr;
}

uint64_t NcclGroup::end_run(coll::Op op, cuda::Stream stream) {
  const cuda::Entered entered(context_);
  uint64_t id;
  {
    const std::lock_guard lock(mutex_);
    id = op.id = next_id_++;
    if (failure_) {
      end(id, failure_);
    } else {
      const cuda::Event done = take_event();
      record_event(done, stream);
      running_.push_back({op, stream, std::exchange(run_ready_, nullptr), done, 0});
      cuda::check(driver().cuStreamWaitEvent(stream_, done, 0), "cuStreamWaitEvent");
    }
  }
  wake_lane_.notify_one();
  return id;
}

std::vector<cuda::Event> NcclGroup::ends_of_running() const {
  std::vector<cuda::Event> ends;
  for (const Entry& entry : running_) ends.push_back(entry.done);
  return ends;
}

/// Ends a communicator with the NCCL function `by`. NCCL stops its kernels at once. If graphs contain operations of the
/// communicator, `by` then waits until their owner has destroyed the graphs, which may take long and may need this
/// thread. So a separate thread calls `by`, and this thread waits only until the device has completed the `pending`
/// events: after that, no kernel uses the memory of operations. Returns false if the device has not completed them
/// within kPassing, or before the destructor stops waiting.
bool NcclGroup::let_go(Comm comm, int (*by)(Comm), const std::vector<cuda::Event>& pending) {
  if (!has_captured_) {
    by(comm);
    return true;
  }
  const auto is_over = std::make_shared<std::atomic<bool>>(false);
  end_apart([comm, by, is_over, context = context_] {
    driver().cuCtxSetCurrent(context);
    by(comm);
    *is_over = true;
  });
  const auto is_passed = [&] {
    return !pending.empty() && std::all_of(pending.begin(), pending.end(), [](cuda::Event event) {
      return driver().cuEventQuery(event) != cuda::kNotReady;
    });
  };
  const int64_t begin = now_ns();
  while (!*is_over && !is_passed()) {
    const int64_t patience = pending.empty() || stop_ ? kPatience : kPassing;
    if (now_ns() >= begin + patience) return pending.empty();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace ringwise::nccl
