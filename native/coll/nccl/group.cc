#include "coll/nccl/group.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/cuda/cuda_context.h"
#include "base/time/clock.h"
#include "coll/nccl/transfer.h"

namespace ringwise::nccl {

using coll::Failure;
using coll::FailureCode;
using cuda::driver;

namespace {

constexpr auto kPause = std::chrono::microseconds(50);  // between two polls of a waiting thread
// Number of polls that is_taken() waits for NCCL. A thread of NCCL accepts an operation within some 50 us if it needs
// no new connection. Polls are counted instead of time, because time also passes while neither thread runs.
constexpr int kLooks = 250;

}  // namespace

NcclGroup::NcclGroup(int rank, int size, std::function<std::shared_ptr<const Failure>()> cause,
                     std::function<void()> notify)
    : rank_(rank), size_(size), cause_(std::move(cause)), notify_(std::move(notify)) {}

NcclGroup::NcclGroup(int rank, int size, int device, std::function<std::shared_ptr<const Failure>()> cause,
                     std::function<void()> notify)
    : NcclGroup(rank, size, std::move(cause), std::move(notify)) {
  const cuda::Driver& d = driver();
  if (!d.reason.empty()) throw system(d.reason);
  if (!library().reason.empty()) throw system(library().reason);
  int handle = 0;
  cuda::check(d.cuDeviceGet(&handle, device), "cuDeviceGet");
  cuda::check(d.cuDevicePrimaryCtxRetain(&context_, handle), "cuDevicePrimaryCtxRetain");
  const cuda::Entered entered(context_);
  cuda::check(d.cuStreamCreate(&stream_, cuda::kStreamNonBlocking), "cuStreamCreate");
  cuda::check(d.cuStreamCreate(&capture_stream_, cuda::kStreamNonBlocking), "cuStreamCreate");
  lane_ = std::thread([this] { lane_main(); });
}

NcclGroup::~NcclGroup() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_lane_.notify_one();
  if (lane_.joinable()) lane_.join();
  if (context_ == nullptr) return;
  try {
    const cuda::Entered entered(context_);
    free_all();
  } catch (const std::exception&) {  // the driver is unloaded already, which has freed everything
  }
}

void NcclGroup::free_all() {
  if (comm_ != nullptr) let_go(comm_, library().ncclCommAbort, ends_of_running());
  for (const auto* captured : {&deferred_, &open_}) {
    for (const Captured& each : *captured) spare_.push_back(each.done);
  }
  for (auto* entries : {&queue_, &running_}) {
    for (const Entry& entry : *entries) spare_.insert(spare_.end(), {entry.ready, entry.done});
  }
  spare_.push_back(run_ready_);
  for (const cuda::Event event : spare_) {
    if (event != nullptr) driver().cuEventDestroy_v2(event);
  }
  for (const cuda::Stream stream : {stream_, capture_stream_}) {
    if (stream != nullptr) driver().cuStreamDestroy_v2(stream);
  }
}

UniqueId NcclGroup::make_id() {
  if (!library().reason.empty()) throw Failure(FailureCode::System, -1, {}, library().reason);
  UniqueId id{};
  const int status = library().ncclGetUniqueId(&id);
  if (status != kSuccess) throw Failure(FailureCode::System, -1, {}, "ncclGetUniqueId: " + text_of(status, nullptr));
  return id;
}

uint64_t NcclGroup::connect(const UniqueId& id, int64_t timeout_ns) {
  const std::lock_guard lock(mutex_);
  const uint64_t connecting = next_id_++;
  if (failure_) {  // the host group may have failed after it had broadcast the id
    end(connecting, failure_);
  } else {
    unique_id_ = id;
    connect_deadline_ns_ = now_ns() + timeout_ns;
    connecting_id_ = connecting;
  }
  wake_lane_.notify_one();
  return connecting;
}

uint64_t NcclGroup::start(coll::Op op, cuda::Stream caller) {
  const cuda::Entered entered(context_);
  uint64_t id;
  bool has_news;
  {
    const std::lock_guard lock(mutex_);
    id = op.id = next_id_++;
    if (failure_) {
      end(id, failure_);
    } else {
      Entry entry{op, caller, take_event(), nullptr, holding_};
      record_event(entry.ready, caller);
      queue_.push_back(entry);
      try {
        launch();
      } catch (const std::exception& error) {
        suspect(error.what());
      }
    }
    has_news = std::exchange(has_news_, false);
  }
  wake_lane_.notify_one();
  if (has_news) notify_();
  return id;
}

void NcclGroup::hold() {
  const std::lock_guard lock(mutex_);
  holding_ = ++holds_;
}

void NcclGroup::release() {
  const cuda::Entered entered(context_);
  {
    Lock lock(mutex_);
    holding_ = 0;
    if (!deferred_.empty()) capture_deferred(lock);
    try {
      launch();
    } catch (const std::exception& error) {
      suspect(error.what());
    }
  }
  wake_lane_.notify_one();
}

uint64_t NcclGroup::register_buffer(void* data, size_t bytes) {
  const std::lock_guard lock(mutex_);
  const uint64_t id = next_id_++;
  if (!failure_ && bytes > 0) registrations_.add(id, data, bytes);
  return id;
}

uint64_t NcclGroup::deregister_buffer(uint64_t id) {
  const std::lock_guard lock(mutex_);
  const uint64_t leaving = next_id_++;
  if (!registrations_.remove(id, leaving)) end(leaving, nullptr);
  wake_lane_.notify_one();
  return leaving;
}

Ended NcclGroup::run(coll::Op op, cuda::Stream caller) {
  const uint64_t id = start(op, caller);
  wait(id);
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(ended_.begin(), ended_.end(), [id](const Ended& one) { return one.id == id; });
  Ended ended = std::move(*found);
  ended_.erase(found);
  return ended;
}

bool NcclGroup::is_taken(uint64_t id) {
  const cuda::Entered entered(context_);
  Lock lock(mutex_);
  const auto is_taken = [this, id] { return has_ended(id) || is_launched(id); };
  int looks = 0;
  wait_until(lock, [&] { return is_taken() || ++looks > kLooks; });
  return is_taken();
}

void NcclGroup::fence(uint64_t id) {
  const cuda::Entered entered(context_);
  Lock lock(mutex_);
  wait_until(lock, [this, id] { return has_ended(id) || (!failure_ && is_launched(id)); });
  for (const Entry& entry : running_) {
    if (entry.op.id == id) cuda::check(driver().cuStreamWaitEvent(entry.caller, entry.done, 0), "cuStreamWaitEvent");
  }
}

void NcclGroup::wait(uint64_t id) {
  const cuda::Entered entered(context_);
  Lock lock(mutex_);
  wait_until(lock, [this, id] { return has_ended(id); });
}

/// Polls in the lane's place until `is_reached` returns true. Only the lane aborts the communicator.
void NcclGroup::wait_until(Lock& lock, const std::function<bool()>& is_reached) {
  for (int rounds = 0; !is_reached(); ++rounds) {
    if (poll()) continue;
    lock.unlock();
    if (rounds < 200)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(kPause);
    lock.lock();
  }
}

void NcclGroup::request_progress() {
  {
    const std::lock_guard lock(mutex_);
    progress_requested_ = true;
  }
  wake_lane_.notify_one();
}

void NcclGroup::take_ended(std::vector<Ended>& ended) {
  ended.clear();
  const std::lock_guard lock(mutex_);
  std::swap(ended, ended_);
}

void NcclGroup::abort(Failure failure) {
  const std::lock_guard lock(mutex_);
  give_up(std::move(failure));
}

uint64_t NcclGroup::close() {
  const std::lock_guard lock(mutex_);
  closing_id_ = next_id_++;
  wake_lane_.notify_one();
  return closing_id_;
}

cuda::Event NcclGroup::take_event() {
  if (!spare_.empty()) {
    const cuda::Event event = spare_.back();
    spare_.pop_back();
    return event;
  }
  cuda::Event event = nullptr;
  cuda::check(driver().cuEventCreate(&event, cuda::kEventDisableTiming), "cuEventCreate");
  return event;
}

void NcclGroup::record_event(cuda::Event event, cuda::Stream stream) {
  cuda::check(driver().cuEventRecord(event, stream), "cuEventRecord");
}

void NcclGroup::end(uint64_t id, std::shared_ptr<const Failure> failure, bool is_lent) {
  ended_.push_back({id, std::move(failure), -1, is_lent});
  has_news_ = true;
}

bool NcclGroup::has_ended(uint64_t id) const {
  if (id == connecting_id_ || id == closing_id_ || registrations_.is_leaving(id)) return false;
  if (std::any_of(ended_.begin(), ended_.end(), [id](const Ended& one) { return one.id == id; })) return true;
  const auto is_it = [id](const Entry& entry) { return entry.op.id == id; };
  return std::none_of(queue_.begin(), queue_.end(), is_it) && std::none_of(running_.begin(), running_.end(), is_it);
}

bool NcclGroup::is_launched(uint64_t id) const {
  return std::any_of(running_.begin(), running_.end(), [id](const Entry& entry) { return entry.op.id == id; });
}

}  // namespace ringwise::nccl
