#include "coll/engine/host_group.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>
#include <utility>

#include "base/os/thread.h"
#include "base/pause.h"
#include "base/time/clock.h"
#include "coll/engine/waiting.h"

namespace ringwise::coll {

namespace {

// Intervals at which the lane wakes: while another thread drives the engine, and while it has nothing to do.
constexpr int kDrivenMs = 5;
constexpr int64_t kAwayNs = 1'000 * kMillisecond;

// Longest time that the destructor of a group waits, after an abort, until the ranks have agreed on the root cause.
constexpr int64_t kTellingNs = 500 * kMillisecond;

// Looking up the source locations of calls takes at most 1/kSiteShare of the time, averaged over kSiteAverageNs, so
// that all calls of a short burst are located. A lookup takes 30 to 300 µs. It counts for at most kMaxSiteNs, so that a
// slow one, which had to read files, does not delay the next ones for long.
constexpr int64_t kSiteShare = 400;
constexpr int64_t kSiteAverageNs = 2'000 * kMillisecond;
constexpr int64_t kMaxSiteNs = 500'000;

// Nanoseconds that attempt() waits for the other ranks. After kMostMissed consecutive attempts that ended before the
// operation, only every kSkipped-th call makes an attempt, because attempts waste time if the ranks call at different
// times.
constexpr int64_t kAttemptNs = 35'000;
constexpr int kMostMissed = 4;
constexpr int kSkipped = 8;

}  // namespace

HostGroup::HostGroup(int rank, int size, const std::string& host, std::function<void()> notify)
    : rank_(rank),
      listener_(host),
      flight_(size),
      last_calls_(flight_, size),
      next_site_(std::numeric_limits<int64_t>::max()),
      requests_(std::move(notify)),
      failures_(rank, size, flight_, signals_.stop,
                {.decided =
                     [this](const Failure& cause) {
                       if (dump_) dump_->write(cause.text);  // before the program learns of it and may exit
                     },
                 .end_all = [this] { engine_.end_all(); },
                 .work = [this] { return engine_.work(); }}),
      engine_(rank, size, requests_, flight_, failures_, signals_, [this] {
        locate(blocking_);
        return !must_end_ || !must_end_();
      }) {}

HostGroup::~HostGroup() {
  // A program may abort and exit at once. Wait until the other ranks know the reason; otherwise they would report the
  // end of this process as the root cause.
  const int64_t told_by_ns = has_aborted_ && lane_.joinable() ? now_ns() + kTellingNs : 0;
  while (now_ns() < told_by_ns && !failures_.known()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  signals_.stop = true;
  signals_.wake.ring();
  if (lane_.joinable()) lane_.join();
  engine_.note_exposed();
  isolate();
}

// ------------------------------------------------------------------------------------------------ owner's thread

uint64_t HostGroup::connect(std::vector<PeerAddress> peers, int64_t timeout_ns) {
  const uint64_t id = requests_.reserve();
  // The lane holds the engine until it has connected to all peers, so that no other thread uses it before that.
  lane_ = std::thread([this, id, peers = std::move(peers), deadline = now_ns() + timeout_ns] {
    os::name_this_thread("ringwise-lane");
    {
      std::lock_guard owner(owner_);
      meet(peers, deadline);
      engine_.end(id, failures_.cause());
    }
    lane_main();
  });
  return id;
}

void HostGroup::locate_calls_by(std::function<std::string()> where) {
  where_ = std::move(where);
  next_site_ = 0;
}

void HostGroup::locate(uint32_t record) {
  if (!where_ || flight_.is_located(record)) return;
  const int64_t before = now_ns();
  flight_.locate(record, where_());
  const int64_t after = now_ns();
  const int64_t paid_ns =
      std::max(next_site_ns_ + kSiteAverageNs, after) + kSiteShare * std::min(after - before, kMaxSiteNs);
  next_site_ns_ = paid_ns - kSiteAverageNs;
  next_site_ = flight_.clock().scale().ticks_of(next_site_ns_);
}

void HostGroup::enqueue(Op& op) {
  op.deadline_ns = now_ns() + op.timeout_ns;
  op.record = flight_.enter(op);
  requests_.push(op);
}

uint64_t HostGroup::start(Op op, Progress progress) {
  enqueue(op);
  if (progress == Progress::AtOnce || !engine_.is_oversubscribed() || !nudge()) signals_.wake_lane();
  locate_if_due(op.record, flight_.clock().now());
  return op.id;
}

/// Begins the queued operations on the calling thread. Returns false if another thread owns the engine, the group is
/// not connected, or an operation failed.
bool HostGroup::nudge() {
  const std::unique_lock owner(owner_, std::try_to_lock);
  return owner.owns_lock() && engine_.is_connected() && engine_.nudge();
}

void HostGroup::request_progress() {
  signals_.progress_requested = true;
  signals_.wake_lane();
}

bool HostGroup::attempt(uint64_t id) {
  if (requests_.has_ended(id)) return true;
  if (missed_attempts_ < kMostMissed || ++skipped_attempts_ >= kSkipped) {
    skipped_attempts_ = 0;
    const int64_t until_ns = now_ns() + kAttemptNs;
    if (std::unique_lock owner(owner_, std::try_to_lock); owner.owns_lock()) {
      if (engine_.is_connected()) engine_.attempt(id, until_ns);
    } else if (!engine_.is_oversubscribed()) {  // the lane works on it on a core of its own
      while (!requests_.has_ended(id) && now_ns() < until_ns) pause_cpu();
    }
    if (requests_.has_ended(id)) {
      missed_attempts_ = 0;
      return true;
    }
    ++missed_attempts_;
  }
  request_progress();
  return false;
}

std::shared_ptr<const Failure> HostGroup::run(Op op, int* source) {
  // If nothing is queued or running, the operation runs on this thread, without a thread switch. Otherwise it is
  // queued.
  if (!requests_.has_news()) {
    std::unique_lock owner(owner_, std::try_to_lock);
    if (owner.owns_lock() && engine_.is_connected() && !engine_.has_work()) {
      if (failures_.cause()) return reported();
      engine_.expect_inline();
      op.deadline_ns = 0;  // the clock starts when the operation has to wait
      int64_t ended = 0;
      if (!op.is_point_to_point() && engine_.run_on_board(op, ended)) {
        locate_if_due(op.record, ended);
        return nullptr;
      }
      const bool has_begun = engine_.start_clock();
      if (!has_begun && op.record == 0) {
        op.deadline_ns = now_ns() + op.timeout_ns;
        op.record = flight_.enter(op);
      }
      blocking_ = op.record;
      drive(owner, Driver::Caller, has_begun ? nullptr : &op);
      blocking_ = 0;
      locate_if_due(op.record, flight_.clock().now());
      const auto [is_done, sender] = engine_.inline_result();
      if (source != nullptr) *source = sender;
      return is_done ? nullptr : reported();
    }
  }
  enqueue(op);
  const uint64_t id = op.id;
  if (!engine_.is_oversubscribed() || !nudge()) signals_.wake_lane();
  blocking_ = op.record;
  wait(id);
  blocking_ = 0;
  locate_if_due(op.record, flight_.clock().now());
  Ended ended = requests_.take(id);
  if (ended.failure) isolate();
  if (source != nullptr) *source = ended.source;
  return std::move(ended.failure);
}

/// Returns the root cause, with which an operation has ended.
std::shared_ptr<const Failure> HostGroup::reported() {
  isolate();
  failures_.note_reported();
  return failures_.cause();
}

void HostGroup::wait(uint64_t id) {
  // The waiting thread drives the engine itself, which saves waking the lane and being woken by it.
  while (!requests_.has_ended(id)) {
    ++signals_.drivers;
    std::unique_lock owner(owner_, std::try_to_lock);
    if (!owner.owns_lock()) {
      signals_.wake_lane();  // it may sleep while it owns the engine
      owner.lock();
    }
    --signals_.drivers;
    if (requests_.has_ended(id)) return;
    engine_.wait_for(id);
    drive(owner, Driver::Waiter);
    if (requests_.has_ended(id)) return;
    // Only connecting and closing can be pending here, and the lane does both.
    requests_.wait_until_ended(id);
  }
}

/// Pumps in place of the lane, then releases the engine and wakes the lane if work is left.
void HostGroup::drive(std::unique_lock<std::mutex>& owner, Driver driver, const Op* op) {
  ++signals_.drivers;
  if (engine_.is_connected()) engine_.pump(driver, op);
  engine_.wait_for(0);
  const bool left_over = engine_.has_work();
  --signals_.drivers;
  owner.unlock();
  if (left_over) signals_.wake_lane();
}

void HostGroup::abort(Failure failure) {
  failure.origin = rank_;
  has_aborted_ = true;
  requests_.abort(std::move(failure));
  signals_.wake_lane();
}

uint64_t HostGroup::close() {
  const uint64_t id = requests_.close();
  signals_.wake_lane();
  return id;
}

// ------------------------------------------------------------------------------------------------ lane

void HostGroup::meet(const std::vector<PeerAddress>& peers, int64_t deadline_ns) {
  try {
    Choices choices = Choices::from_environment();
    engine_.connect(connect_all(listener_, rank_, peers, deadline_ns, signals_.wake.descriptor()), std::move(choices));
  } catch (const Failure& failure) {
    failures_.fail(failure);
  } catch (const std::exception& error) {
    failures_.fail({FailureCode::System, rank_, {rank_}, std::string("connecting: ") + error.what()});
  }
  listener_.close();
}

void HostGroup::lane_main() {
  while (!signals_.stop) {
    bool left_over = false;
    if (signals_.drivers == 0) {
      const std::lock_guard owner(owner_);
      if (engine_.is_connected()) failures_.poll();
      engine_.pump(Driver::Lane);
      left_over = engine_.send_deferred() || engine_.is_busy();
      if (!left_over) signals_.progress_requested = false;
      if (leave()) return;
    }
    signals_.sleeps = true;
    if (signals_.drivers > 0) {
      wait_for_wake(kDrivenMs);
    } else if (!requests_.has_news() && !signals_.stop) {
      if (!engine_.is_connected()) {  // never connected: only requests and the end can come
        wait_for_wake(-1);
      } else {
        signals_.timer_set = left_over;
        engine_.wait_idle(left_over ? kDriftNs : kAwayNs);
        signals_.timer_set = false;
      }
    }
    signals_.sleeps = false;
    signals_.wake.silence();
  }
}

void HostGroup::wait_for_wake(int timeout_ms) {
  pollfd wake{signals_.wake.descriptor(), POLLIN, 0};
  ::poll(&wake, 1, timeout_ms);
}

/// Says goodbye to the peers if `close` was called and no operation is left. Returns true if the lane must end.
bool HostGroup::leave() {
  const auto may_leave = [&] { return !engine_.is_busy() && requests_.may_leave(); };
  if (!may_leave()) return false;
  engine_.settle();
  if (!may_leave()) return false;
  const uint64_t id = requests_.take_closing();
  engine_.leave();
  // Closing reports only a mismatch that no operation has reported yet: this rank's own operations have succeeded.
  engine_.end(id, failures_.unreported_mismatch());
  return true;
}

}  // namespace ringwise::coll
