#include "mpi/group.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/pause.h"
#include "base/time/clock.h"
#include "mpi/channel/communicator.h"
#include "mpi/library.h"

namespace ringwise::mpi {

using coll::Failure;
using coll::FailureCode;
using coll::Verb;

namespace {

constexpr int kSpins = 100;    // polls of a waiting thread before it yields
constexpr int kYields = 2000;  // polls before it sleeps
constexpr auto kBackoff = std::chrono::microseconds(50);
// Intervals at which an idle lane polls for notices: the first one for kSoon polls after activity, then the second one,
// which is long because a program may have many groups.
constexpr auto kListening = std::chrono::milliseconds(2);
constexpr auto kListeningLater = std::chrono::milliseconds(20);
constexpr int kSoon = 100;

// A yield that takes this long gave the core to a computing thread for a scheduler slice. On an oversubscribed core
// every yield would take that long; a thread that sleeps instead is scheduled again soon.
constexpr int64_t kSlice = 1 * kMillisecond;
constexpr int64_t kOversubscribedFor = 100 * kMillisecond;  // time for which the machine then counts as oversubscribed

std::atomic<int64_t> oversubscribed_until{0};  // for all groups

/// Waits before the next poll: spins at first, then yields, then sleeps.
void back_off(int& idle_rounds) {
  ++idle_rounds;
  if (idle_rounds < kSpins) return pause_cpu();
  const int64_t before = now_ns();
  if (idle_rounds >= kYields || before < oversubscribed_until) return std::this_thread::sleep_for(kBackoff);
  std::this_thread::yield();
  const int64_t after = now_ns();
  if (after - before > kSlice) oversubscribed_until = after + kOversubscribedFor;
}

}  // namespace

MpiGroup::Running::Running(const coll::Op& op, MPI_Comm comm, int rank, int size, Outbox& outbox)
    : op(op), agreement(coll::signature_of(op, rank, size), comm, rank, size, outbox) {}

MpiGroup::MpiGroup(int rank, int size, std::function<void()> notify)
    : rank_(rank), size_(size), requests_(std::move(notify)) {}

MpiGroup::~MpiGroup() {
  stop_ = true;
  requests_.wake();
  if (lane_.joinable()) lane_.join();
  if (channel_ && !has_left_ && !poison_) leave_at_last();
  let_go_of_running();
  if (has_left_) retire(std::move(channel_));
}

uint64_t MpiGroup::connect(std::vector<int> members, int tag, int64_t timeout_ns) {
  const uint64_t id = requests_.reserve();
  lane_ = std::thread([this, id, members = std::move(members), tag, timeout_ns] {
    try {
      const MPI_Comm comm = make_communicator(members, tag, rank_, timeout_ns, stop_);
      const std::lock_guard engine(engine_);
      channel_ = std::make_unique<Channel>(comm, rank_, size_,
                                           [this](const coll::Op& op, int source) { end(op.id, nullptr, source); });
    } catch (const Failure& failure) {
      end(id, std::make_shared<const Failure>(failure));
      return;
    }
    end(id, nullptr);
    lane_main();
  });
  return id;
}

void MpiGroup::lane_main() {
  int idle_rounds = 0;
  int looks = 0;  // idle polls in a row
  for (;;) {
    bool is_idle = false;
    if (drivers_ == 0) {
      const std::lock_guard engine(engine_);
      if (poll()) idle_rounds = looks = 0;
      is_idle = !is_busy() && !reported_ && !participation_;
      if (is_idle && leave()) return;
    } else {
      is_idle = true;
      looks = 0;
    }
    // Another rank that has left an earlier group may wait until this rank has received its last messages.
    if (is_idle || idle_rounds % kSpins == kSpins - 1) tend_retired();
    if (stop_) return;
    if (!is_idle)
      back_off(idle_rounds);
    else if (!requests_.has_news())
      requests_.wait_for_news(++looks < kSoon ? kListening : kListeningLater);
  }
}

/// Leaves a group that is destroyed without close(), mostly because its process ends. If operations are pending, tells
/// the other ranks that this rank is lost.
void MpiGroup::leave_at_last() {
  const bool is_interrupted = is_busy() || requests_.has_operations();
  try {
    if (is_interrupted) {
      const Failure lost{FailureCode::PeerLost,
                         rank_,
                         {rank_},
                         "lost rank " + std::to_string(rank_) + " (it ended in the middle of an operation)"};
      channel_->control->tell_others(Notice::RootCause, 0, &lost);
    }
    channel_->say_goodbye(called_);
    has_left_ = !is_interrupted;
  } catch (const Failure&) {
    // MPI itself has failed, so the other ranks cannot be told.
  }
  if (!has_left_) forbid_finalize();
}

/// Says goodbye if the owner has closed the group and no operation is pending; returns true if it did.
bool MpiGroup::leave() {
  if (!requests_.may_leave()) return false;
  const uint64_t id = requests_.take_closing();
  std::shared_ptr<const Failure> failure;
  try {
    if (!poison_) channel_->say_goodbye(called_);
    has_left_ = !poison_;
  } catch (const Failure& of_mpi) {
    failure = std::make_shared<const Failure>(of_mpi);
  }
  end(id, std::move(failure));
  return true;
}

uint64_t MpiGroup::enqueue(coll::Op& op) {
  op.deadline_ns = now_ns() + op.timeout_ns;
  requests_.push(op);
  return op.id;
}

uint64_t MpiGroup::start(coll::Op op) { return enqueue(op); }

Ended MpiGroup::run(coll::Op op) {
  const uint64_t id = enqueue(op);
  wait(id);
  return requests_.take(id);
}

void MpiGroup::wait(uint64_t id) {
  ++drivers_;
  int idle_rounds = 0;
  while (!requests_.has_ended(id)) {
    bool moved;
    {
      const std::lock_guard engine(engine_);
      moved = poll();
    }
    if (moved)
      idle_rounds = 0;
    else
      back_off(idle_rounds);
  }
  --drivers_;
}

void MpiGroup::end(uint64_t id, std::shared_ptr<const Failure> failure, int source, bool is_lent) {
  requests_.end({id, std::move(failure), source, is_lent});
}

}  // namespace ringwise::mpi
