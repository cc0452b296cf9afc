// The watchdog of NcclGroup, run by the lane or by a waiting thread in its place: passes operations to NCCL, finds
// those that have ended, and detects failures. lane_main() takes the group's mutex; the other functions run under it,
// except where they say otherwise.
#include <chrono>
#include <stdexcept>
#include <utility>

#include "base/time/clock.h"
#include "coll/nccl/group.h"
#include "coll/nccl/transfer.h"

namespace ringwise::nccl {

using coll::Failure;
using coll::FailureCode;
using cuda::driver;

namespace {

// Intervals at which the lane polls: when a caller waits, or NCCL has just received an operation, which it accepts
// within some 50 us unless it has to connect; when operations are pending; and when none are.
constexpr std::chrono::microseconds kUrgentLook{50}, kLook{1000}, kIdleLook{20'000};
constexpr int kUrgentLooks = 40;  // most urgent polls in a row that wait for NCCL

}  // namespace

void NcclGroup::lane_main() {
  driver().cuCtxSetCurrent(context_);
  Lock lock(mutex_);
  int busy_looks = 0;  // polls in a row at which NCCL had an operation to take
  while (!stop_) {
    bool moved = false;
    try {
      if (unique_id_ && !failure_) make_communicator(lock);
      moved = poll();
    } catch (const std::exception& error) {
      suspect(error.what());
    }
    if (failure_ && !has_ended_all_) end_all(lock);
    const bool has_left = leave(lock);
    if (std::exchange(has_news_, false)) {
      lock.unlock();
      notify_();
      lock.lock();
    }
    if (has_left) return;
    const bool is_busy = !queue_.empty() || !running_.empty() || connecting_id_ != 0;
    if (!is_busy) progress_requested_ = false;
    busy_looks = moved || launching_ == 0 ? 0 : busy_looks + 1;
    if (moved || stop_ || (failure_ && !has_ended_all_) || (closing_id_ != 0 && !is_busy)) continue;
    const bool is_urgent = progress_requested_ || (busy_looks > 0 && busy_looks <= kUrgentLooks);
    if (is_busy && is_urgent)
      wake_lane_.wait_for(lock, kUrgentLook);
    else
      wake_lane_.wait_for(lock, is_busy ? kLook : kIdleLook);
  }
}

/// Makes a communicator that does not block: while it connects it returns "in progress", so a deadline can end it.
/// Releases the mutex, because NCCL's first call in a process is slow: it examines the machine.
void NcclGroup::make_communicator(Lock& lock) {
  Config config;
  const UniqueId id = *std::exchange(unique_id_, std::nullopt);
  Comm comm = nullptr;
  lock.unlock();
  const int status = library().ncclCommInitRankConfig(&comm, size_, id, rank_, &config);
  lock.lock();
  comm_ = comm;
  if (status != kSuccess && status != kInProgress)
    throw std::runtime_error("ncclCommInitRankConfig: " + text_of(status, nullptr));
}

/// Polls once; returns true if anything changed.
bool NcclGroup::poll() {
  if (failure_) return false;
  const size_t queued = queue_.size(), ran = running_.size();
  const bool was_connected = is_connected_;
  bool moved = false;
  try {
    if (const auto cause = cause_()) throw Failure(*cause);
    if (suspicion_) {
      if (now_ns() < suspected_until_ns_) return false;
      throw Failure(*suspicion_);
    }
    watch();
    launch();
    while (!running_.empty()) {
      const int status = driver().cuEventQuery(running_.front().done);
      if (status == cuda::kNotReady) break;
      cuda::check(status, "cuEventQuery");
      const Entry entry = running_.front();
      running_.pop_front();
      spare_.insert(spare_.end(), {entry.ready, entry.done});
      end(entry.op.id, nullptr);
    }
    start_clock();
    moved = settle_deregistered();
  } catch (const Failure& failure) {
    give_up(failure);
  } catch (const std::exception& error) {
    suspect(error.what());
  }
  return moved || queued != queue_.size() || ran != running_.size() || was_connected != is_connected_ || failure_;
}

/// Throws on asynchronous errors of NCCL and on passed deadlines.
void NcclGroup::watch() {
  const int64_t now = now_ns();
  int state = kSuccess;
  if (comm_ != nullptr) {
    const int status = library().ncclCommGetAsyncError(comm_, &state);
    if (status != kSuccess) state = status;
    if (state != kSuccess && state != kInProgress) throw std::runtime_error("NCCL: " + text_of(state, comm_));
  }
  if (connecting_id_ != 0) {
    if (comm_ != nullptr && state == kSuccess) {
      is_connected_ = true;
      end(std::exchange(connecting_id_, 0), nullptr);
    } else if (now > connect_deadline_ns_) {
      throw Failure(FailureCode::Timeout, rank_, {}, "NCCL has not connected the ranks in time");
    }
  }
  const auto check_deadlines = [this, now](const auto& of) {
    for (const auto& each : of) {
      if (each.op.deadline_ns == 0 || now <= each.op.deadline_ns) continue;
      const auto within = std::to_string(each.op.timeout_ns / kMillisecond);
      throw Failure(FailureCode::Timeout, rank_, {},
                    "all ranks have called it, but NCCL has not finished it within " + within +
                        " ms of the end of the earlier work on this device");
    }
  };
  check_deadlines(running_);
  check_deadlines(queue_);
  check_deadlines(deferred_);
}

/// Starts the clock of the oldest operation once the device has completed all work before it. Operations of one NCCL
/// group run together, so they share the clock of the first, which starts when all of them are ready. An operation that
/// NCCL has not accepted yet has a clock too, because NCCL may be waiting for other ranks.
void NcclGroup::start_clock() {
  auto& entries = running_.empty() ? queue_ : running_;
  if (entries.empty() || entries.front().op.deadline_ns != 0) return;
  Entry& first = entries.front();
  for (const Entry& entry : entries) {
    const bool runs_with_first =
        entry.op.id == first.op.id || (first.together != 0 && entry.together == first.together);
    if (!runs_with_first) break;
    const int status = driver().cuEventQuery(entry.ready);
    if (status == cuda::kNotReady) return;
    cuda::check(status, "cuEventQuery");
  }
  first.op.deadline_ns = now_ns() + first.op.timeout_ns + kGrace;
}

/// Passes the queued operations to NCCL, until NCCL is busy or an operation is held.
void NcclGroup::launch() {
  if (launching_ > 0) settle_launched();
  while (is_connected_ && !suspicion_ && launching_ == 0 && !queue_.empty()) {
    const uint64_t together = queue_.front().together;
    if (together != 0 && together == holding_) return;
    if (registrations_.is_blocking(queue_.front().op.id)) return;
    if (const int refusal = registrations_.register_before(queue_.front().op.id, comm_)) {
      throw std::runtime_error("ncclCommRegister: " + text_of(refusal, comm_));
    }
    size_t count = 1;
    while (together != 0 && count < queue_.size() && queue_[count].together == together) ++count;
    for (size_t i = 0; i < count; ++i)
      cuda::check(driver().cuStreamWaitEvent(stream_, queue_[i].ready, 0), "cuStreamWaitEvent");
    const auto give = [this](int i) {
      return enqueue(queue_[static_cast<size_t>(i)].op, comm_, rank_, size_, stream_);
    };
    const int status = count == 1 ? give(0) : grouped(static_cast<int>(count), give);
    if (status != kSuccess && status != kInProgress) throw std::runtime_error("NCCL: " + text_of(status, comm_));
    launching_ = count;
    settle_launched();
  }
}

/// Moves the operations that NCCL has received to running_ once NCCL is no longer busy, which means that they are on
/// the stream.
void NcclGroup::settle_launched() {
  int state = kSuccess;
  library().ncclCommGetAsyncError(comm_, &state);
  if (state != kSuccess) return;  // watch() throws an error at the next poll
  for (; launching_ > 0; --launching_) {
    Entry& entry = queue_.front();
    if (entry.done == nullptr) entry.done = take_event();
    record_event(entry.done, stream_);
    running_.push_back(entry);
    queue_.pop_front();
  }
}

/// Undoes marked registrations of memory that no running operation uses; returns whether there were any.
bool NcclGroup::settle_deregistered() {
  const auto& pending = running_.empty() ? queue_ : running_;
  const uint64_t oldest = pending.empty() ? next_id_ : pending.front().op.id;
  bool was_any = false;
  while (const uint64_t id = registrations_.deregister_before(oldest, comm_)) {
    end(id, nullptr);
    was_any = true;
  }
  return was_any;
}

/// Notes that NCCL or the device has failed, without naming a rank. The host group may know the cause a moment later.
void NcclGroup::suspect(const std::string& what) {
  if (failure_ || suspicion_) return;
  suspicion_ = system(what);
  suspected_until_ns_ = now_ns() + kGrace;
}

/// Sets the group's failure; from now on no operation is passed to NCCL. The lane then aborts the communicator and ends
/// the operations.
void NcclGroup::give_up(Failure failure) {
  if (failure_) return;
  if (failure.origin < 0) failure.origin = rank_;
  failure_ = std::make_shared<const Failure>(std::move(failure));
  is_connected_ = false;
  wake_lane_.notify_one();
}

/// Aborts the communicator, which stops its kernels and frees the device. Then ends all operations with the failure,
/// and marks as lent those that the device may still run. Releases the mutex during the abort, which may take long.
void NcclGroup::end_all(Lock& lock) {
  bool is_passed = true;
  if (const Comm comm = std::exchange(comm_, nullptr)) {
    const std::vector<cuda::Event> pending = ends_of_running();
    lock.unlock();
    is_passed = let_go(comm, library().ncclCommAbort, pending);
    lock.lock();
  }
  has_ended_all_ = true;
  size_t given = is_passed ? 0 : running_.size() + launching_;  // operations that NCCL has, oldest first
  launching_ = 0;
  unique_id_.reset();
  if (connecting_id_ != 0) end(std::exchange(connecting_id_, 0), failure_);
  for (const uint64_t id : registrations_.forget()) end(id, nullptr);
  for (auto* entries : {&running_, &queue_}) {
    for (const Entry& entry : *entries) {
      end(entry.op.id, failure_, given > 0);
      given -= given > 0 ? 1 : 0;
      if (entry.ready != nullptr) spare_.push_back(entry.ready);
      if (entry.done != nullptr) spare_.push_back(entry.done);
    }
    entries->clear();
  }
}

/// Returns true once the owner has closed the group and all operations have ended. Leaves the communicator, without the
/// mutex.
bool NcclGroup::leave(Lock& lock) {
  if (closing_id_ == 0 || connecting_id_ != 0 || !queue_.empty() || !running_.empty()) return false;
  if (const Comm comm = std::exchange(comm_, nullptr)) {
    is_connected_ = false;
    registrations_.deregister_all(comm);
    lock.unlock();
    finalize(comm);
    lock.lock();
  }
  end(std::exchange(closing_id_, 0), nullptr);
  return true;
}

/// Finalizes the communicator, which needs all ranks. Waits at most a second, because a rank may have ended without it.
/// Called without the mutex.
void NcclGroup::finalize(Comm comm) {
  const int64_t deadline = now_ns() + 1000 * kMillisecond;
  int state = library().ncclCommFinalize(comm);
  while (state == kInProgress && now_ns() < deadline && !stop_) {
    std::this_thread::yield();
    library().ncclCommGetAsyncError(comm, &state);
  }
  let_go(comm, state == kSuccess ? library().ncclCommDestroy : library().ncclCommAbort, {});
}

}  // namespace ringwise::nccl
