#include "coll/host_group.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/clock.h"
#include "coll/transport/tcp_link.h"

namespace ringwise::coll {

namespace {

// Without progress, the engine first spins, then yields, then sleeps in the kernel. A lane that shares its core with
// a program that computes gives up soon; where the program waits anyway, nothing is lost by staying awake, and a
// wake-up that may cost a scheduler tick is saved.
constexpr int kSpins = 200;
constexpr int kBusyYields = 4;
constexpr int kWaitingYields = 2000;
// On a crowded machine a single yield takes a scheduler slice of everybody else: nobody hears of a lost rank meanwhile.
constexpr int64_t kAwakeNs = 10 * kMillisecond;

// A rank that has been waiting this long asks the others what they are doing.
constexpr int64_t kFirstQuestionNs = 20 * kMillisecond;
constexpr int64_t kNextQuestionNs = 1'000 * kMillisecond;

// How long the lowest rank may take to say which failure was the first.
constexpr int64_t kVerdictNs = 250 * kMillisecond;

constexpr size_t kHistory = 256;

void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

std::string rank_list(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  return text;
}

}  // namespace

HostGroup::HostGroup(int rank, int size, const std::string& host, std::function<void()> notify)
    : rank_(rank), size_(size), listener_(host), notify_(std::move(notify)), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!wake_) throw std::system_error(errno, std::generic_category(), "eventfd");
  peer_states_.resize(size);
  history_.resize(kHistory);
}

HostGroup::~HostGroup() {
  stop_ = true;
  const uint64_t one = 1;
  if (::write(wake_.get(), &one, sizeof one) < 0) { /* the counter is full: the lane is awake anyway */ }
  if (lane_.joinable()) lane_.join();
}

// ------------------------------------------------------------------------------------------------ owner's thread

uint64_t HostGroup::connect(std::vector<PeerAddress> peers, int64_t timeout_ns) {
  uint64_t id;
  {
    std::lock_guard lock(mutex_);
    id = next_id_++;
  }
  // The lane holds the engine until it has met everybody; nobody else can use it before that.
  lane_ = std::thread([this, id, peers = std::move(peers), deadline = now_ns() + timeout_ns] {
    pthread_setname_np(pthread_self(), "ringwise-lane");
    {
      std::lock_guard engine(engine_);
      meet(peers, deadline);
    }
    end(id, poison_);
    lane_main();
  });
  return id;
}

uint64_t HostGroup::enqueue(Op op) {
  op.deadline_ns = now_ns() + op.timeout_ns;
  std::lock_guard lock(mutex_);
  op.id = next_id_++;
  queue_.push_back(op);
  has_requests_ = true;
  return op.id;
}

uint64_t HostGroup::start(Op op) {
  const uint64_t id = enqueue(op);
  wake_lane();
  return id;
}

std::shared_ptr<const Failure> HostGroup::run(Op op) {
  // On an idle lane the operation runs here, without a change of thread. Otherwise it waits its turn like any other.
  if (!has_requests_.load(std::memory_order_relaxed)) {
    std::unique_lock engine(engine_, std::try_to_lock);
    if (engine.owns_lock() && control_ && running_.empty() && !has_work()) {
      if (poison_) return poison_;
      op.deadline_ns = now_ns() + op.timeout_ns;
      inline_done_ = false;
      pump(&op);
      return inline_done_ ? nullptr : poison_;
    }
  }
  const uint64_t id = start(op);
  wait(id);
  std::lock_guard lock(mutex_);
  const auto found = std::find_if(ended_.begin(), ended_.end(), [&](const Ended& e) { return e.id == id; });
  auto failure = std::move(found->failure);
  ended_.erase(found);
  return failure;
}

void HostGroup::wait(uint64_t id) {
  std::unique_lock lock(mutex_);
  ++waiters_;
  ended_condition_.wait(lock, [&] {
    return std::any_of(ended_.begin(), ended_.end(), [&](const Ended& e) { return e.id == id; });
  });
  --waiters_;
}

void HostGroup::take_ended(std::vector<Ended>& ended) {
  ended.clear();
  std::lock_guard lock(mutex_);
  ended.swap(ended_);
}

void HostGroup::abort(const std::string& text) {
  {
    std::lock_guard lock(mutex_);
    abort_text_ = text;
    has_requests_ = true;
  }
  wake_lane();
}

uint64_t HostGroup::close() {
  uint64_t id;
  {
    std::lock_guard lock(mutex_);
    id = closing_id_ = next_id_++;
    has_requests_ = true;
  }
  wake_lane();
  return id;
}

// ------------------------------------------------------------------------------------------------ any thread

void HostGroup::end(uint64_t id, std::shared_ptr<const Failure> failure) {
  bool waiters;
  {
    std::lock_guard lock(mutex_);
    ended_.push_back({id, std::move(failure)});
    waiters = waiters_ > 0;
  }
  if (waiters) ended_condition_.notify_all();
  notify_();
}

void HostGroup::wake_lane() {
  if (!lane_sleeps_.exchange(false)) return;
  const uint64_t one = 1;
  if (::write(wake_.get(), &one, sizeof one) < 0) { /* full means that a wake-up is already on its way */ }
}

bool HostGroup::has_work() {
  std::lock_guard lock(mutex_);
  return !queue_.empty() || closing_id_ != 0 || abort_text_.has_value();
}

// ------------------------------------------------------------------------------------------------ lane

void HostGroup::meet(const std::vector<PeerAddress>& peers, int64_t deadline_ns) {
  try {
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
  links_.resize(size_);
  std::vector<int> data;
  for (int rank = 0; rank < size_; ++rank) {
    if (!connections.data[rank]) continue;
    data.push_back(connections.data[rank].get());
    links_[rank] = std::make_unique<TcpLink>(std::move(connections.data[rank]), rank_, rank);
  }
  control_ = std::make_unique<Control>(std::move(connections.control), data, wake_.get());
  const auto& locals = connections.local_ranks;
  if (locals.size() < 2) return;
  const auto index_of = [&](int rank) {
    return static_cast<int>(std::find(locals.begin(), locals.end(), rank) - locals.begin());
  };
  const int me = index_of(rank_);
  my_sleeping_ = segment_.sleeping(me);
  alarm_ = segment_.alarm();
  for (const int rank : locals) {
    if (rank == rank_) continue;
    const int peer = index_of(rank);
    links_[rank] = std::make_unique<ShmLink>(segment_.ring(me, peer), segment_.ring(peer, me), segment_.ring_capacity(),
                                             segment_.sleeping(peer), rank, control_.get());
  }
}

void HostGroup::lane_main() {
  while (!stop_) {
    {
      std::lock_guard engine(engine_);
      if (control_) control_->poll(*this);
      pump(nullptr);
      std::unique_lock lock(mutex_);
      if (closing_id_ != 0 && queue_.empty() && !abort_text_) {
        const uint64_t id = std::exchange(closing_id_, 0);
        lock.unlock();
        if (control_) control_->say_goodbye();
        links_.clear();
        control_.reset();
        end(id, nullptr);
        return;
      }
    }
    lane_sleeps_ = true;
    if (!has_requests_ && !stop_) {
      if (control_) {
        control_->wait_idle();
      } else {  // never connected: only requests and the end can come
        pollfd wake{wake_.get(), POLLIN, 0};
        ::poll(&wake, 1, -1);
      }
    }
    lane_sleeps_ = false;
    uint64_t count;
    (void)!::read(wake_.get(), &count, sizeof count);  // nothing to read is fine
  }
}

// ------------------------------------------------------------------------------------------------ engine

/// Runs until nothing is running any more: what the queue admits, or `inline_op` alone.
void HostGroup::pump(const Op* inline_op) {
  const bool inline_run = inline_op != nullptr;
  Idle idle_state;
  while (!stop_) {
    try {
      if (report_) await_verdict();
      if (inline_op != nullptr) begin(*std::exchange(inline_op, nullptr), true);
      const bool admitted = !inline_run && admit();
      if (running_.empty()) return;
      if (advance_all() || admitted) {
        idle_state = {};
        continue;
      }
      idle(idle_state, inline_run);
    } catch (const Failure& failure) {
      report(failure);
    } catch (const std::exception& error) {
      report({FailureCode::System, rank_, {rank_}, error.what()});
    }
  }
}

/// Moves operations from the queue into the running set, as far as their order allows; true if any moved.
bool HostGroup::admit() {
  if (!has_requests_.load(std::memory_order_relaxed) && !look_again_) return false;
  bool moved = false;
  std::unique_lock lock(mutex_);
  has_requests_ = look_again_ = false;
  if (abort_text_) {
    const std::string text = *std::exchange(abort_text_, std::nullopt);
    lock.unlock();
    throw Failure(FailureCode::Aborted, rank_, {rank_}, text);
  }
  for (size_t i = 0; i < queue_.size();) {
    const Op op = queue_[i];
    if (must_wait(op, i)) {
      if (!op.is_point_to_point()) break;
      ++i;  // those behind it may be what its peer waits for
      continue;
    }
    queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(i));
    lock.unlock();
    moved = true;
    begin(op, false);
    lock.lock();
  }
  return moved;
}

/// A collective runs alone; sends and receives run side by side, but one at a time in a pair's direction. `before` is
/// how many of the queue stay in front of the operation. Called with mutex_.
bool HostGroup::must_wait(const Op& op, size_t before) const {
  const auto clashes = [&](const Op& other) {
    return !op.is_point_to_point() || !other.is_point_to_point() || (other.verb == op.verb && other.root == op.root);
  };
  return std::any_of(running_.begin(), running_.end(), [&](const auto& one) { return clashes(one->execution.op()); }) ||
         std::any_of(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(before), clashes);
}

void HostGroup::begin(const Op& op, bool inline_run) {
  if (spare_.empty()) spare_.push_back(std::make_unique<Running>());
  running_.push_back(std::move(spare_.back()));
  spare_.pop_back();
  Running& running = *running_.back();
  running.inline_run = inline_run;
  running.execution.begin(op, rank_, size_);
  if (alarm_ != nullptr && alarm_->load(std::memory_order_relaxed) != 0) control_->poll(*this);
  if (poison_) return end_everything();
  // A message to a rank that is gone would be lost without a word. Whoever waits for such a rank finds out itself.
  if (op.verb == Verb::Send && peer_states_[op.root].liveness != Liveness::Alive) throw gone(op.root, running.execution);
  last_ = {true, true, running.execution.signature()};
  if (!op.is_point_to_point()) remember(running.execution.signature());
}

bool HostGroup::advance_all() {
  bool moved = false;
  for (size_t i = 0; i < running_.size();) {
    moved |= running_[i]->execution.advance(links_);
    if (running_[i]->execution.done()) {
      finish(i);
      moved = true;
    } else {
      ++i;
    }
  }
  return moved;
}

void HostGroup::finish(size_t index) {
  auto running = std::move(running_[index]);
  running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(index));
  last_.running = !running_.empty();
  look_again_ = true;
  if (running->inline_run) {
    inline_done_ = true;
  } else {
    end(running->execution.op().id, nullptr);
  }
  spare_.push_back(std::move(running));
}

void HostGroup::idle(Idle& idle, bool inline_run) {
  ++idle.rounds;
  if (idle.rounds <= kSpins) return pause_cpu();
  const int64_t now = now_ns();
  if (idle.since_ns == 0) {
    idle.since_ns = now;
    idle.next_question_ns = now + std::min(kFirstQuestionNs, running_.front()->execution.op().timeout_ns / 4);
  }
  const bool program_waits = inline_run || waiters_.load(std::memory_order_relaxed) > 0;
  const int yields = program_waits ? kWaitingYields : kBusyYields;
  if (idle.rounds <= kSpins + yields && now - idle.since_ns < kAwakeNs) {
    sched_yield();
    return;
  }
  control_->poll(*this);
  // What a rank sent before it left or died still counts, so look once more after the news.
  if (advance_all() || running_.empty()) return;
  const int64_t deadline_ns = earliest_deadline();
  check_waiting(idle, now, deadline_ns);
  sleep(std::min(idle.next_question_ns, deadline_ns), inline_run);
}

/// Of everything pending: an operation in the queue is not to be late because of one that runs.
int64_t HostGroup::earliest_deadline() {
  int64_t earliest = running_.front()->execution.op().deadline_ns;
  for (const auto& running : running_) earliest = std::min(earliest, running->execution.op().deadline_ns);
  std::lock_guard lock(mutex_);
  for (const Op& op : queue_) earliest = std::min(earliest, op.deadline_ns);
  return earliest;
}

/// Announces the sleep, looks once more, sleeps. Returns at once when there was something to do.
void HostGroup::sleep(int64_t until_ns, bool inline_run) {
  if (!inline_run) lane_sleeps_ = true;
  if (my_sleeping_ != nullptr) my_sleeping_->store(1);
  const bool moved = advance_all();
  if (!moved && !has_requests_ && !stop_) {
    control_->wait(std::max<int64_t>(until_ns - now_ns(), 0));
  }
  if (my_sleeping_ != nullptr) my_sleeping_->store(0);
  if (inline_run || lane_sleeps_.exchange(false)) return;
  uint64_t count;
  (void)!::read(wake_.get(), &count, sizeof count);
}

/// Looks for reasons why the ranks that are waited for will not come: dead, gone, somewhere else, too late.
void HostGroup::check_waiting(Idle& idle, int64_t now, int64_t deadline_ns) {
  const bool ask = now >= idle.next_question_ns;
  if (ask) idle.next_question_ns = now + kNextQuestionNs;
  std::vector<int> waiting;
  for (const auto& running : running_) {
    const Execution& execution = running->execution;
    execution.waiting_for(waiting);
    for (const int peer : waiting) {
      if (peer_states_[peer].liveness != Liveness::Alive && links_[peer]->ended()) throw gone(peer, execution);
      if (ask) control_->ask(peer, execution.signature());
    }
    if (now >= execution.op().deadline_ns) throw timeout_failure(execution, waiting, now);
  }
  if (now < deadline_ns) return;
  // An operation in the queue is late, and the first that runs is what it waits for.
  const Execution& first = running_.front()->execution;
  first.waiting_for(waiting);
  throw timeout_failure(first, waiting, now);
}

Failure HostGroup::gone(int peer, const Execution& execution) const {
  const PeerState& state = peer_states_[peer];
  const std::string name = "rank " + std::to_string(peer);
  return {FailureCode::PeerLost, rank_, {peer},
          state.liveness == Liveness::Dead
              ? "lost " + name + " (" + state.reason + ")"
              : name + " has closed the group, but rank " + std::to_string(rank_) + " still needs it for " + describe(execution.signature(), rank_)};
}

Failure HostGroup::timeout_failure(const Execution& execution, const std::vector<int>& waiting, int64_t now) const {
  const Op& op = execution.op();
  const int64_t waited = std::min(now - op.deadline_ns, int64_t{0}) + op.timeout_ns;  // at most what was asked for
  std::string text = "no answer from " + rank_list(waiting) + " within " + std::to_string(waited / kMillisecond) +
                     " ms in " + describe(execution.signature(), rank_);
  for (const int peer : waiting) {
    const auto& activity = peer_states_[peer].activity;
    text += "; rank " + std::to_string(peer);
    if (!activity) {
      text += " does not react at all (stopped, or its host is out of reach)";
    } else if (!activity->any) {
      text += " has not started any operation";
    } else {
      text += (activity->running ? " is in " : " is idle since ") + describe(activity->signature, peer);
    }
  }
  return {FailureCode::Timeout, rank_, waiting, text};
}

/// Several ranks may notice a failure at once, each in its own way, but all are to report the same root cause. So a
/// failure is reported to the lowest rank that is there; that one takes the first report and tells everybody.
void HostGroup::report(Failure failure) {
  if (poison_) return end_everything();
  const auto is_here = [&](const PeerState& peer) { return peer.liveness == Liveness::Alive; };
  const auto lowest = std::find_if(peer_states_.begin(), peer_states_.begin() + rank_, is_here) - peer_states_.begin();
  if (lowest == rank_) return decide(std::move(failure));
  control_->report(static_cast<int>(lowest), failure);
  report_ = std::move(failure);
  verdict_deadline_ns_ = now_ns() + kVerdictNs;
}

/// Nothing moves until the group knows what has happened to it.
void HostGroup::await_verdict() {
  while (!poison_ && !stop_) {
    control_->poll(*this);
    const int64_t left = verdict_deadline_ns_ - now_ns();
    if (left <= 0) decide(*report_);  // the other rank is stuck: do without it
    if (!poison_) control_->wait(left);
  }
  report_.reset();
}

void HostGroup::decide(Failure failure) {
  control_->poison(failure);
  if (alarm_ != nullptr) alarm_->store(1);
  poison(std::move(failure));
}

/// The group's root cause, for good.
void HostGroup::poison(Failure failure) {
  if (!poison_) {
    auto cause = std::make_shared<const Failure>(std::move(failure));
    std::lock_guard lock(mutex_);
    poison_ = std::move(cause);
  }
  end_everything();
}

void HostGroup::end_everything() {
  std::vector<uint64_t> ids;
  for (auto& running : running_) {
    if (!running->inline_run) ids.push_back(running->execution.op().id);
    spare_.push_back(std::move(running));
  }
  running_.clear();
  {
    std::lock_guard lock(mutex_);
    for (const Op& op : queue_) ids.push_back(op.id);
    queue_.clear();
  }
  for (const uint64_t id : ids) end(id, poison_);
}

void HostGroup::remember(const Signature& signature) { history_[signature.seq % kHistory] = signature; }

void HostGroup::on_report(int, Failure failure) {
  if (!poison_) decide(std::move(failure));
}

void HostGroup::on_poison(int, Failure failure) { poison(std::move(failure)); }

void HostGroup::on_left(int peer) { peer_states_[peer].liveness = Liveness::Left; }

void HostGroup::on_dead(int peer, const char* reason) {
  PeerState& state = peer_states_[peer];
  if (state.liveness != Liveness::Alive) return;
  state.liveness = Liveness::Dead;
  state.reason = reason;
  if (report_) report(*report_);  // it may have been the one to decide
}

/// A late rank's question: it names the operation that it is in. If this rank ran another one at that place of the
/// sequence, the two will never meet.
void HostGroup::on_question(int peer, const Signature& signature) {
  const Signature& mine = history_[signature.seq % kHistory];
  const bool collective = signature.verb != static_cast<uint8_t>(Verb::Send);
  if (collective && mine.magic == signature.magic && mine.seq == signature.seq && !same(mine, signature)) {
    return report(disagreement(rank_, mine, peer, signature));
  }
  control_->answer(peer, last_);
}

void HostGroup::on_activity(int peer, const Activity& activity) { peer_states_[peer].activity = activity; }

}  // namespace ringwise::coll
