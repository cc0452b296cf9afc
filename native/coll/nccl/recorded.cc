// Operations in graphs: how they become part of one, how a run of one is watched, and how a communicator goes that graphs still
// have something of.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "coll/nccl/group.h"
#include "coll/nccl/transfer.h"

namespace ringwise::nccl {

using cuda::driver;

namespace {

/// How long the end of a communicator may take where nothing tells that the device has passed its work.
constexpr int64_t kPatience = 200 * kMillisecond;

/// An event that is recorded into a graph once. None of `spare_`: who asks such an event how far it is spoils the graph.
cuda::Event make_event() {
  cuda::Event event = nullptr;
  cuda::check(driver().cuEventCreate(&event, cuda::kEventDisableTiming), "cuEventCreate");
  return event;
}

}  // namespace

uint64_t NcclGroup::record(coll::Op op, cuda::Stream caller) {
  const Entered entered(*this);
  Lock lock(mutex_);
  const uint64_t id = next_id_++;
  // NCCL gives what it is busy with to the device in its own time, which must not fall into the middle of this.
  wait_until(lock, [this, id] {
    return failure_ || (is_connected_ && !suspicion_ && queue_.empty() && !registrations_.is_blocking(id));
  });
  if (failure_) {
    end(id, failure_);
    return id;
  }
  if (const int refusal = registrations_.register_before(id, comm_)) suspect("ncclCommRegister: " + text_of(refusal, comm_));
  has_recorded_ = true;
  open_.push_back({id, caller, make_event()});
  const cuda::Event done = open_.back().done;
  record(done, caller);
  cuda::check(driver().cuStreamWaitEvent(recorded_, done, 0), "cuStreamWaitEvent");
  const int status = enqueue(op, comm_, rank_, size_, recorded_);
  if (status != kSuccess && status != kInProgress) {
    suspect("NCCL: " + text_of(status, comm_));
  }
  int state = kInProgress;
  wait_until(lock, [&] {
    if (!failure_) library().ncclCommGetAsyncError(comm_, &state);
    return failure_ || (state == kSuccess && !suspicion_);
  });
  if (failure_) {
    driver().cuEventDestroy_v2(drop_recorded(id));
    end(id, failure_);
  } else {
    record(done, recorded_);
  }
  return id;
}

void NcclGroup::join(uint64_t id) {
  const Entered entered(*this);
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(open_.begin(), open_.end(), [id](const Recorded& each) { return each.id == id; });
  if (found == open_.end()) return;
  const cuda::Stream caller = found->caller;
  const cuda::Event done = drop_recorded(id);
  const int status = driver().cuStreamWaitEvent(caller, done, 0);
  driver().cuEventDestroy_v2(done);
  end(id, nullptr);
  cuda::check(status, "cuStreamWaitEvent");
}

void NcclGroup::forget(uint64_t id) {
  const Entered entered(*this);
  const std::lock_guard lock(mutex_);
  if (const cuda::Event done = drop_recorded(id)) {
    driver().cuEventDestroy_v2(done);
    end(id, nullptr);
  }
}

/// Its event; null where it is not open.
cuda::Event NcclGroup::drop_recorded(uint64_t id) {
  const auto found = std::find_if(open_.begin(), open_.end(), [id](const Recorded& each) { return each.id == id; });
  if (found == open_.end()) return nullptr;
  const cuda::Event done = found->done;
  open_.erase(found);
  return done;
}

std::shared_ptr<const coll::Failure> NcclGroup::begin_run(cuda::Stream stream) {
  const Entered entered(*this);
  Lock lock(mutex_);
  wait_until(lock, [this] { return failure_ || (is_connected_ && !suspicion_ && queue_.empty()); });
  if (!failure_ && !running_.empty()) {
    cuda::check(driver().cuStreamWaitEvent(stream, running_.back().done, 0), "cuStreamWaitEvent");
  }
  return failure_;
}

uint64_t NcclGroup::end_run(coll::Op op, cuda::Stream stream) {
  const Entered entered(*this);
  uint64_t id;
  {
    const std::lock_guard lock(mutex_);
    id = op.id = next_id_++;
    op.deadline_ns = now_ns() + op.timeout_ns + kGrace;
    if (failure_) {
      end(id, failure_);
    } else {
      const cuda::Event done = take_event();
      record(done, stream);
      running_.push_back({op, stream, nullptr, done, 0});
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

/// Ends a communicator. NCCL stops its kernels at once and then, where graphs have something of it, waits until their owner has
/// destroyed them, which may be long after, and not before this thread has gone on. So another thread waits for that, and this
/// one until the device has passed what was `pending`: then nothing of it uses the memory of operations any more.
void NcclGroup::let_go(Comm comm, int (*by)(Comm), const std::vector<cuda::Event>& pending) {
  if (!has_recorded_) {
    by(comm);
    return;
  }
  const auto is_over = std::make_shared<std::atomic<bool>>(false);
  std::thread([comm, by, is_over, context = context_] {
    driver().cuCtxSetCurrent(context);
    by(comm);
    *is_over = true;
  }).detach();
  const auto is_passed = [&] {
    return !pending.empty() && std::all_of(pending.begin(), pending.end(), [](cuda::Event event) {
      return driver().cuEventQuery(event) != cuda::kNotReady;
    });
  };
  const int64_t deadline = now_ns() + kPatience;
  while (!*is_over && !is_passed() && (!pending.empty() || now_ns() < deadline)) {
    if (stop_ && now_ns() >= deadline) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace ringwise::nccl
