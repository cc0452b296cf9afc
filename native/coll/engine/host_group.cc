#include "coll/engine/host_group.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <system_error>

#include "base/pause.h"
#include "base/time/clock.h"
#include "coll/transport/tcp_link.h"

namespace ringwise::coll {

namespace {

constexpr int kTightSpins = 20;  // rounds without a pause instruction, which takes as long as a peer's answer

// On an oversubscribed host (fewer than two cores per rank), a lane for which no thread waits would take the core from
// the program's computation. It advances pending operations only at these intervals.
constexpr int64_t kDriftNs = 1 * kMillisecond;
// While another thread drives the engine, the lane wakes at these intervals.
constexpr int kDrivenMs = 5;
constexpr int64_t kAwayNs = 1'000 * kMillisecond;
// Delay before failure() reports a lost rank: operations that need nothing more from that rank may still end well.
constexpr int64_t kLossNs = 100 * kMillisecond;

// The thread that starts an operation of at most this size also advances it; it only announces larger ones.
constexpr size_t kNudgeBytes = 64 * 1024;

// Looking up the source locations of calls takes 1/kSiteShare of the time, averaged over kSiteAverageNs, so that all
// calls of a short burst are located. A lookup counts for at most kMaxSiteNs: a slow one, which had to read files,
// does not delay the next ones.
constexpr int64_t kSiteShare = 100;
constexpr int64_t kSiteAverageNs = 250 * kMillisecond;
constexpr int64_t kMaxSiteNs = 100'000;

}  // namespace

HostGroup::HostGroup(int rank, int size, const std::string& host, std::function<void()> notify)
    : rank_(rank),
      size_(size),
      listener_(host),
      requests_(std::move(notify)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      flight_(size),
      next_site_(std::numeric_limits<int64_t>::max()),
      diagnosis_(rank, size, flight_) {
  if (!wake_) throw std::system_error(errno, std::generic_category(), "eventfd");
}

HostGroup::~HostGroup() {
  stop_ = true;
  const uint64_t one = 1;
  if (::write(wake_.get(), &one, sizeof one) < 0) { /* the counter is full: the lane is awake anyway */
  }
  if (lane_.joinable()) lane_.join();
}

// ------------------------------------------------------------------------------------------------ owner's thread

uint64_t HostGroup::connect(std::vector<PeerAddress> peers, int64_t timeout_ns) {
  const uint64_t id = requests_.reserve();
  // The lane holds the engine until it has connected to all peers, so that no other thread uses it before that.
  lane_ = std::thread([this, id, peers = std::move(peers), deadline = now_ns() + timeout_ns] {
    pthread_setname_np(pthread_self(), "ringwise-lane");
    {
      std::lock_guard engine(engine_);
      meet(peers, deadline);
      end(id, poison_);
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
  if (progress == Progress::AtOnce || !oversubscribed_ || !nudge()) wake_lane();
  locate_if_due(op.record, flight_.clock().now());
  return op.id;
}

/// Begins the queued operations on the calling thread and announces them to the other ranks. Returns false if another
/// thread holds the engine or the group is not connected. Sets the lane's timer, so that the lane advances the
/// operations later if no thread waits for them before.
bool HostGroup::nudge() {
  std::unique_lock engine(engine_, std::try_to_lock);
  if (!engine.owns_lock() || !control_) return false;
  try {
    admit();
    if (running_.active && running_.op().count * byte_size(running_.op().dtype) > kNudgeBytes) {
      running_.announce(links_);
    } else {
      advance_all();
      admit();
    }
  } catch (const Failure& failure) {
    report(failure);
    return false;
  } catch (const std::exception& error) {
    report({FailureCode::System, rank_, {rank_}, error.what()});
    return false;
  }
  if ((busy() || requests_.has_news()) && !lane_timer_set_.exchange(true)) control_->set_timer(kDriftNs);
  return true;
}

void HostGroup::request_progress() {
  progress_requested_ = true;
  wake_lane();
}

std::shared_ptr<const Failure> HostGroup::run(Op op, int* source) {
  // If nothing is queued or running, the operation runs on this thread, without a thread switch. Otherwise it is
  // queued.
  if (!requests_.has_news()) {
    std::unique_lock engine(engine_, std::try_to_lock);
    if (engine.owns_lock() && control_ && !busy() && !look_again_ && !requests_.has_news()) {
      if (poison_) return told();
      inline_done_ = false;
      inline_source_ = -1;
      op.deadline_ns = 0;  // the clock starts when the operation has to wait
      if (board_ && !op.is_point_to_point() && !choices_.has(op.verb) && run_on_board(op)) return nullptr;
      if (running_.active) {
        running_.start_clock();
      } else if (op.record == 0) {
        op.deadline_ns = now_ns() + op.timeout_ns;
        op.record = flight_.enter(op);
      }
      blocking_ = op.record;
      drive(engine, Who::Caller, running_.active ? nullptr : &op);
      blocking_ = 0;
      locate_if_due(op.record, flight_.clock().now());
      if (source != nullptr) *source = inline_source_;
      return inline_done_ ? nullptr : told();
    }
  }
  enqueue(op);
  const uint64_t id = op.id;
  if (!oversubscribed_ || !nudge()) wake_lane();
  blocking_ = op.record;
  wait(id);
  blocking_ = 0;
  locate_if_due(op.record, flight_.clock().now());
  Ended ended = requests_.take(id);
  if (source != nullptr) *source = ended.source;
  return std::move(ended.failure);
}

std::shared_ptr<const Failure> HostGroup::told() {
  is_told_ = true;
  return poison_;
}

/// Runs a collective on the board without clock or queue, for ranks that call it at about the same time. Returns true
/// if it has ended; otherwise `pump` continues the operation if it is active, or begins it.
bool HostGroup::run_on_board(Op& op) {
  if (alarm_->load(std::memory_order_relaxed) != 0) return false;
  try {
    begin_collective(op, true);
    board_->announce();  // before the work below, so that the other ranks need not wait for it
    op.record = running_.op().record = flight_.enter(op, board_->algorithm());
    for (int i = 0; i < (has_core_each_ ? kSpins : 1); ++i) {
      board_->advance();
      if (running_.done()) {
        running_.active = false;
        locate_if_due(op.record, flight_.end(op.record, true));
        return true;
      }
      if (i > kTightSpins) pause_cpu();
    }
  } catch (const Failure& failure) {
    report(failure);
  }
  return false;
}

void HostGroup::wait(uint64_t id) {
  // The waiting thread drives the engine itself, which saves waking the lane and being woken by it.
  while (!requests_.has_ended(id)) {
    ++drivers_;
    std::unique_lock engine(engine_, std::try_to_lock);
    if (!engine.owns_lock()) {
      wake_lane();  // it may sleep while it holds the engine
      engine.lock();
    }
    --drivers_;
    if (requests_.has_ended(id)) return;
    driven_id_ = id;
    drive(engine, Who::Waiter);
    if (requests_.has_ended(id)) return;
    // Only connecting and closing are left, which the lane does.
    requests_.wait_until_ended(id);
  }
}

/// Pumps in place of the lane, then releases the engine and wakes the lane if work is left.
void HostGroup::drive(std::unique_lock<std::mutex>& engine, Who who, const Op* op) {
  ++drivers_;
  if (control_) pump(who, op);
  driven_id_ = 0;
  const bool left_over = busy() || look_again_ || requests_.has_news();
  --drivers_;
  engine.unlock();
  if (left_over) wake_lane();
}

void HostGroup::abort(const std::string& text) {
  requests_.abort(text);
  wake_lane();
}

std::shared_ptr<const Failure> HostGroup::failure() {
  std::lock_guard lock(loss_mutex_);
  if (poison_ || !loss_ || now_ns() < lost_ns_ + kLossNs) return poison_;
  return loss_;
}

uint64_t HostGroup::close() {
  const uint64_t id = requests_.close();
  wake_lane();
  return id;
}

// ------------------------------------------------------------------------------------------------ any thread

void HostGroup::end(uint64_t id, std::shared_ptr<const Failure> failure, int source) {
  if (failure) is_told_ = true;
  if (id == driven_id_) driven_id_ = 0;
  requests_.end({id, std::move(failure), source});
}

void HostGroup::wake_lane() {
  if (!lane_sleeps_.exchange(false)) return;
  const uint64_t one = 1;
  if (::write(wake_.get(), &one, sizeof one) < 0) { /* full means that a wake-up is already on its way */
  }
}

// ------------------------------------------------------------------------------------------------ lane

void HostGroup::meet(const std::vector<PeerAddress>& peers, int64_t deadline_ns) {
  try {
    choices_ = Choices::from_environment();
    build_links(connect_all(listener_, rank_, peers, deadline_ns, wake_.get()));
  } catch (const Failure& failure) {
    poison(failure);
  } catch (const std::exception& error) {
    poison({FailureCode::System, rank_, {rank_}, std::string("connecting: ") + error.what()});
  }
  listener_.close();
}

void HostGroup::build_links(Connections connections) {
  segment_ = std::move(connections.segment);
  hosts_ = std::make_unique<Hosts>(connections.hosts);
  links_.resize(size_);
  Links p2p(size_);
  std::vector<int> sockets;
  for (int rank = 0; rank < size_; ++rank) {
    if (!connections.data[rank]) continue;
    sockets.push_back(connections.data[rank].get());
    sockets.push_back(connections.p2p[rank].get());
    links_[rank] = std::make_unique<TcpLink>(std::move(connections.data[rank]), rank_, rank);
    p2p[rank] = std::make_unique<TcpLink>(std::move(connections.p2p[rank]), rank_, rank);
  }
  control_ = std::make_unique<Control>(std::move(connections.control), sockets, wake_.get());
  const auto& locals = connections.local_ranks;
  const auto index_of = [&](int rank) {
    return static_cast<int>(std::find(locals.begin(), locals.end(), rank) - locals.begin());
  };
  const int me = index_of(rank_);
  if (locals.size() > 1) {
    my_sleeping_ = segment_.sleeping(me);
    alarm_ = segment_.alarm();
  }
  board_context_.sleeping.resize(size_);
  for (const int rank : locals) {
    if (rank == rank_) continue;
    const int peer = index_of(rank);
    board_context_.sleeping[rank] = segment_.sleeping(peer);
    const auto link = [&](Channel channel) {
      return std::make_unique<ShmLink>(segment_.ring(channel, me, peer), segment_.ring(channel, peer, me),
                                       segment_.capacity(channel), segment_.sleeping(peer), rank, control_.get());
    };
    links_[rank] = link(Channel::Collectives);
    p2p[rank] = link(Channel::PointToPoint);
  }
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof cores, &cores) == 0) {
    oversubscribed_ = 2 * locals.size() > static_cast<size_t>(CPU_COUNT(&cores));
    has_core_each_ = locals.size() <= static_cast<size_t>(CPU_COUNT(&cores));
  }
  p2p_ = std::make_unique<PointToPoint>(rank_, std::move(p2p), [this](const auto& pending) { finish_p2p(pending); });
  if (!connections.board) return;
  board_context_.board = std::move(connections.board);
  board_context_.arena = std::move(connections.arena);
  board_context_.arenas = std::move(connections.arenas);
  board_context_.doorbell = control_.get();
  board_ = std::make_unique<BoardExecution>(board_context_, rank_);
}

void HostGroup::lane_main() {
  while (!stop_) {
    bool left_over = false;
    if (drivers_ == 0) {
      std::lock_guard engine(engine_);
      if (control_) control_->poll(*this);
      pump(Who::Lane);
      left_over = speak_up() || busy();
      if (!left_over) progress_requested_ = false;
      if (leave()) return;
    }
    lane_sleeps_ = true;
    if (drivers_ > 0) {
      wait_for_wake(kDrivenMs);
    } else if (!requests_.has_news() && !stop_) {
      if (!control_) {  // never connected: only requests and the end can come
        wait_for_wake(-1);
      } else {
        lane_timer_set_ = left_over;
        control_->wait_idle(left_over ? kDriftNs : kAwayNs);
        lane_timer_set_ = false;
      }
    }
    lane_sleeps_ = false;
    uint64_t count;
    (void)!::read(wake_.get(), &count, sizeof count);  // nothing to read is fine
  }
}

void HostGroup::wait_for_wake(int timeout_ms) {
  pollfd wake{wake_.get(), POLLIN, 0};
  ::poll(&wake, 1, timeout_ms);
}

/// Says goodbye to the peers if `close` was called and no operation is left. Returns true if the lane must end.
bool HostGroup::leave() {
  const auto may_leave = [&] { return !busy() && requests_.may_leave(); };
  if (!may_leave()) return false;
  settle();
  if (!may_leave()) return false;
  const uint64_t id = requests_.take_closing();
  if (control_) control_->say_goodbye();
  board_.reset();
  links_.clear();
  if (p2p_) p2p_->drain();
  p2p_.reset();
  control_.reset();
  // Closing reports only a mismatch that no operation has reported yet: this rank's own operations have ended well.
  end(id, poison_ && !is_told_ && poison_->code == FailureCode::Mismatch ? poison_ : nullptr);
  return true;
}

}  // namespace ringwise::coll
