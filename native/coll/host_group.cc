#include "coll/host_group.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <system_error>

#include "base/clock.h"
#include "coll/transport/tcp_link.h"

namespace ringwise::coll {

namespace {

// Without progress, the engine first spins, then yields, then sleeps in the kernel. A lane that shares its core with
// a program that computes gives up soon; where the program waits anyway, nothing is lost by staying awake, and a
// wake-up that may cost a scheduler tick is saved.
constexpr int kSpins = 200;
constexpr int kTightSpins = 20;  // without a pause, which takes as long as an answer
constexpr int kYieldsPerLook = 16;
constexpr int kBusyYields = 4;
constexpr int kWaitingYields = 2000;
// On a crowded machine a single yield takes a scheduler slice of everybody else: nobody hears of a lost rank meanwhile.
constexpr int64_t kAwakeNs = 10 * kMillisecond;
// What has not come from another host after this long will take a while, and the kernel may need the core to bring it.
constexpr int64_t kAwakeForLinksNs = 200'000;

// A yield that takes this long has let somebody else have the core; how often to move away at most.
constexpr int64_t kSharedCoreNs = 20'000;
constexpr int64_t kMoveNs = 5 * kMillisecond;

// A rank that has been waiting this long asks the others what they are doing.
constexpr int64_t kFirstQuestionNs = 20 * kMillisecond;
constexpr int64_t kNextQuestionNs = 1'000 * kMillisecond;

// Where there are not twice as many cores as ranks, a lane that nobody waits for would take the core away from a
// program that computes: it looks after what is pending at these intervals only.
constexpr int64_t kDriftNs = 1 * kMillisecond;
// While somebody else drives the engine, and sees what comes, the lane looks up at these intervals.
constexpr int kDrivenMs = 5;
constexpr int64_t kAwayNs = 1'000 * kMillisecond;

// A program that starts something smaller takes part in it at once, larger ones it only announces.
constexpr size_t kNudgeBytes = 64 * 1024;

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

/// Moves this thread to another core, if it may use one.
bool leave_core(int core) {
  cpu_set_t all, others;
  if (sched_getaffinity(0, sizeof all, &all) != 0) return false;
  others = all;
  CPU_CLR(core, &others);
  if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof others, &others) != 0) return false;
  sched_setaffinity(0, sizeof all, &all);
  return true;
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
      end(id, poison_);
    }
    lane_main();
  });
  return id;
}

uint64_t HostGroup::enqueue(Op op) {
  op.deadline_ns = now_ns() + op.timeout_ns;
  std::lock_guard lock(mutex_);
  op.id = next_id_++;
  (op.is_point_to_point() ? p2p_queue_ : queue_).push_back(op);
  has_requests_ = true;
  return op.id;
}

uint64_t HostGroup::start(Op op, Progress progress) {
  const uint64_t id = enqueue(op);
  if (progress == Progress::AtOnce || !crowded_ || !nudge()) wake_lane();
  return id;
}

/// Begins what is queued on the calling thread, and tells the others, if nobody else has the engine. The lane is to
/// look after it in a while, unless somebody waits for it before.
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
  if ((busy() || has_requests_) && !lane_timer_set_.exchange(true)) control_->set_timer(kDriftNs);
  return true;
}

void HostGroup::urge() {
  urged_ = true;
  wake_lane();
}

std::shared_ptr<const Failure> HostGroup::run(Op op, int* source) {
  // On an idle lane the operation runs here, without a change of thread. Otherwise it waits its turn like any other.
  if (!has_requests_.load(std::memory_order_relaxed)) {
    std::unique_lock engine(engine_, std::try_to_lock);
    if (engine.owns_lock() && control_ && !busy() && !look_again_ && !has_requests_.load(std::memory_order_relaxed)) {
      if (poison_) return poison_;
      inline_done_ = false;
      inline_source_ = -1;
      op.deadline_ns = 0;  // the clock starts when the operation has to wait
      if (board_ && !op.is_point_to_point() && !choices_.has(op.verb) && run_on_board(op)) return nullptr;
      if (running_.active) running_.start_clock();
      else op.deadline_ns = now_ns() + op.timeout_ns;
      drive(engine, Who::Caller, running_.active ? nullptr : &op);
      if (source != nullptr) *source = inline_source_;
      return inline_done_ ? nullptr : poison_;
    }
  }
  const uint64_t id = start(op, Progress::Later);
  wait(id);
  std::lock_guard lock(mutex_);
  const auto found = std::find_if(ended_.begin(), ended_.end(), [&](const Ended& e) { return e.id == id; });
  auto failure = std::move(found->failure);
  if (source != nullptr) *source = found->source;
  ended_.erase(found);
  return failure;
}

/// The short way of a collective among ranks that call it at the same time: no clock, no queue. True if it has ended;
/// otherwise it goes on in `pump`, if it has begun at all.
bool HostGroup::run_on_board(const Op& op) {
  if (alarm_->load(std::memory_order_relaxed) != 0) return false;
  try {
    begin_collective(op, true);
    for (int i = 0; i < (has_core_each_ ? kSpins : 1); ++i) {
      running_.on_board->advance();
      if (running_.done()) {
        running_.active = false;
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
  // The thread that waits drives the engine itself, so that nobody has to be woken for it.
  while (!has_ended(id)) {
    ++drivers_;
    std::unique_lock engine(engine_, std::try_to_lock);
    if (!engine.owns_lock()) {
      wake_lane();  // it may sleep with the engine in its hands
      engine.lock();
    }
    --drivers_;
    if (has_ended(id)) return;
    driven_id_ = id;
    drive(engine, Who::Waiter);
    if (has_ended(id)) return;
    // What is left is the lane's: connecting and closing.
    std::unique_lock lock(mutex_);
    ++waiters_;
    const auto ended = [&] { return std::any_of(ended_.begin(), ended_.end(), [&](const Ended& e) { return e.id == id; }); };
    ended_condition_.wait(lock, ended);
    --waiters_;
  }
}

bool HostGroup::has_ended(uint64_t id) {
  std::lock_guard lock(mutex_);
  return std::any_of(ended_.begin(), ended_.end(), [&](const Ended& e) { return e.id == id; });
}

/// Pumps in the lane's place, then leaves the engine to the lane.
void HostGroup::drive(std::unique_lock<std::mutex>& engine, Who who, const Op* op) {
  ++drivers_;
  if (control_) pump(who, op);
  driven_id_ = 0;
  const bool left_over = busy() || look_again_ || has_requests_;
  --drivers_;
  engine.unlock();
  if (left_over) wake_lane();
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

void HostGroup::end(uint64_t id, std::shared_ptr<const Failure> failure, int source) {
  bool waiters;
  if (id == driven_id_) driven_id_ = 0;
  {
    std::lock_guard lock(mutex_);
    ended_.push_back({id, std::move(failure), source});
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
  place_.sleeping.resize(size_);
  for (const int rank : locals) {
    if (rank == rank_) continue;
    const int peer = index_of(rank);
    place_.sleeping[rank] = segment_.sleeping(peer);
    const auto link = [&](Channel channel) {
      return std::make_unique<ShmLink>(segment_.ring(channel, me, peer), segment_.ring(channel, peer, me),
                                       segment_.capacity(channel), segment_.sleeping(peer), rank, control_.get());
    };
    links_[rank] = link(Channel::Collectives);
    p2p[rank] = link(Channel::PointToPoint);
  }
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof cores, &cores) == 0) {
    crowded_ = 2 * locals.size() > static_cast<size_t>(CPU_COUNT(&cores));
    has_core_each_ = locals.size() <= static_cast<size_t>(CPU_COUNT(&cores));
  }
  p2p_ = std::make_unique<PointToPoint>(rank_, std::move(p2p), [this](const auto& pending) { finish_p2p(pending); });
  if (!connections.board) return;
  place_.board = std::move(connections.board);
  place_.arena = std::move(connections.arena);
  place_.arenas = std::move(connections.arenas);
  place_.doorbell = control_.get();
  board_ = std::make_unique<BoardExecution>(place_, rank_);
}

void HostGroup::lane_main() {
  while (!stop_) {
    bool left_over = false;
    if (drivers_ == 0) {
      std::lock_guard engine(engine_);
      if (control_) control_->poll(*this);
      pump(Who::Lane);
      left_over = busy();
      if (!left_over) urged_ = false;
      if (leave()) return;
    }
    lane_sleeps_ = true;
    if (drivers_ > 0) {
      wait_for_wake(kDrivenMs);
    } else if (!has_requests_ && !stop_) {
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

/// Says goodbye, if the group is to be closed and nothing is left to do. True if the lane has ended.
bool HostGroup::leave() {
  uint64_t id;
  {
    std::lock_guard lock(mutex_);
    if (closing_id_ == 0 || busy() || !queue_.empty() || !p2p_queue_.empty() || abort_text_) return false;
    id = std::exchange(closing_id_, 0);
  }
  if (control_) control_->say_goodbye();
  board_.reset();
  links_.clear();
  if (p2p_) p2p_->drain();
  p2p_.reset();
  control_.reset();
  end(id, nullptr);
  return true;
}

// ------------------------------------------------------------------------------------------------ engine

/// Moves what is under way. A caller of `run` stays until its operation has ended, `wait` until the one that it waits
/// for has. The lane stays until nothing is left, or somebody else comes to do it, or, on a crowded host where nobody
/// waits, until nothing moves.
void HostGroup::pump(Who who, const Op* op) {
  Idle idle_state;
  while (!stop_) {
    try {
      if (report_) await_verdict();
      if (op != nullptr) begin(*std::exchange(op, nullptr), true);
      const bool admitted = who != Who::Caller && admit();
      if (!busy()) return;
      const bool moved = advance_all() || admitted;
      if (who == Who::Waiter && driven_id_ == 0) {
        admit();  // so that nobody overtakes what the operation has kept waiting
        return;
      }
      if (who == Who::Lane && drivers_ > 0) return;
      if (moved) {
        idle_state = {};
      } else if (who == Who::Lane && crowded_ && !urged_) {
        idle_state.next_question_ns = std::numeric_limits<int64_t>::max();
        return check_waiting(idle_state, now_ns(), earliest_deadline());
      } else {
        idle(idle_state, who);
      }
    } catch (const Failure& failure) {
      report(failure);
    } catch (const std::exception& error) {
      report({FailureCode::System, rank_, {rank_}, error.what()});
    }
  }
}

/// Begins what may begin: all sends and receives, and a collective where none is active. True if there was anything.
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
  while (!p2p_queue_.empty() || (!running_.active && !queue_.empty())) {
    auto& queue = p2p_queue_.empty() ? queue_ : p2p_queue_;
    const Op op = queue.front();
    queue.pop_front();
    lock.unlock();
    moved = true;
    begin(op, false);
    lock.lock();
  }
  return moved;
}

void HostGroup::begin(const Op& op, bool inline_run) {
  if (alarm_ != nullptr && alarm_->load(std::memory_order_relaxed) != 0) control_->poll(*this);
  if (poison_) {
    if (!inline_run) end(op.id, poison_);
    return;
  }
  if (!op.is_point_to_point()) return begin_collective(op, inline_run);
  last_ = {true, true, signature_of(op, rank_, size_)};
  last_on_board_ = false;
  p2p_->post(op, inline_run);
  // A message to a rank that is gone would be lost without a word. Whoever waits for such a rank finds out itself.
  if (op.verb == Verb::Send && peer_states_[op.root].liveness != Liveness::Alive) throw gone(op.root, last_.signature);
}

void HostGroup::begin_collective(const Op& op, bool inline_run) {
  running_.active = true;
  running_.inline_run = inline_run;
  running_.on_board = choices_.has(op.verb) ? nullptr : board_.get();
  const Topology topology{rank_, hosts_.get()};
  if (running_.on_board != nullptr) board_->begin(op);
  else running_.over_links.begin(op, topology, choices_.choose(op, topology));
  last_on_board_ = running_.on_board != nullptr;
  if (last_on_board_) return;  // which has the signature, and shows it to the others
  last_ = {true, true, running_.signature()};
  remember(running_.signature());
}

bool HostGroup::advance_all() {
  bool moved = false;
  if (running_.active) {
    moved = running_.advance(links_);
    if (running_.done()) {
      finish_collective();
      moved = true;
    }
  }
  if (p2p_ && !p2p_->pending().empty()) moved |= p2p_->advance();
  return moved;
}

void HostGroup::finish_collective() {
  running_.active = false;
  look_again_ = true;
  if (running_.inline_run) {
    inline_done_ = true;
  } else {
    end(running_.op().id, nullptr);
  }
}

void HostGroup::finish_p2p(const PointToPoint::Pending& pending) {
  const int source = pending.op.verb == Verb::Recv ? pending.peer : -1;
  if (pending.inline_run) {
    inline_done_ = true;
    inline_source_ = source;
  } else {
    end(pending.op.id, nullptr, source);
  }
}

void HostGroup::idle(Idle& idle, Who who) {
  ++idle.rounds;
  const int spins = has_core_each_ ? kSpins : 0;  // where ranks share a core, the others cannot answer meanwhile
  if (idle.rounds <= spins) return pause_cpu();
  const int64_t now = now_ns();
  if (idle.since_ns == 0) {
    idle.since_ns = now;
    const Op& op = running_.active ? running_.op() : p2p_->pending().front().op;
    idle.next_question_ns = now + std::min(kFirstQuestionNs, op.timeout_ns / 4);
  }
  const int yields = who == Who::Lane ? kBusyYields : kWaitingYields;
  if (idle.rounds <= spins + yields && now - idle.since_ns < (board_ ? kAwakeNs : kAwakeForLinksNs)) {
    if (++yields_ % kYieldsPerLook == 0) spread_out();
    sched_yield();
    if (!board_) spread_from_others(now);
    return;
  }
  control_->poll(*this);
  // What a rank sent before it left or died still counts, so look once more after the news.
  if (advance_all() || !busy()) return;
  const int64_t deadline_ns = earliest_deadline();
  check_waiting(idle, now, deadline_ns);
  sleep(std::min(idle.next_question_ns, deadline_ns), who);
}

/// Ranks that meet wake each other, and so may find themselves on one core. Where they take turns by yielding, the
/// scheduler sees two busy threads and an idle core, and takes a long time to part them. The higher rank moves.
void HostGroup::spread_out() {
  if (!board_ || !has_core_each_) return;
  const int core = sched_getcpu() + 1;
  place_.board.member(rank_).core = core;
  for (int rank = 0; rank < rank_; ++rank) {
    if (place_.board.member(rank).core != core) continue;
    if (!leave_core(core - 1)) return;
    place_.board.member(rank_).core = sched_getcpu() + 1;
    return;
  }
}

/// The same for ranks that do not share memory, as in containers of one machine: all they see of each other is that a
/// yield takes long.
void HostGroup::spread_from_others(int64_t yielded_ns) {
  const int64_t now = now_ns();
  if (now - yielded_ns < kSharedCoreNs) {
    long_yields_ = 0;
    return;
  }
  if (++long_yields_ < 4 || now < next_move_ns_) return;
  next_move_ns_ = now + kMoveNs;
  leave_core(sched_getcpu());
}

/// Of everything pending: an operation in the queue is not to be late because of one that runs.
int64_t HostGroup::earliest_deadline() {
  int64_t earliest = std::numeric_limits<int64_t>::max();
  if (running_.active) earliest = running_.op().deadline_ns;
  for (const auto& pending : p2p_->pending()) earliest = std::min(earliest, pending.op.deadline_ns);
  std::lock_guard lock(mutex_);
  for (const Op& op : queue_) earliest = std::min(earliest, op.deadline_ns);
  return earliest;
}

/// Announces the sleep, looks once more, sleeps. Returns at once when there was something to do.
void HostGroup::sleep(int64_t until_ns, Who who) {
  if (who == Who::Lane) lane_sleeps_ = true;
  if (my_sleeping_ != nullptr) my_sleeping_->store(1);
  const bool moved = advance_all();
  const bool called = has_requests_ || (who == Who::Lane && drivers_ > 0);
  if (!moved && !called && !stop_) {
    control_->wait(std::max<int64_t>(until_ns - now_ns(), 0));
  }
  if (my_sleeping_ != nullptr) my_sleeping_->store(0);
  if (who != Who::Lane || lane_sleeps_.exchange(false)) return;
  uint64_t count;
  (void)!::read(wake_.get(), &count, sizeof count);
}

/// Looks for reasons why the ranks that are waited for will not come: dead, gone, somewhere else, too late.
void HostGroup::check_waiting(Idle& idle, int64_t now, int64_t deadline_ns) {
  const bool ask = now >= idle.next_question_ns;
  if (ask) idle.next_question_ns = now + kNextQuestionNs;
  std::vector<int> waiting;
  for (const auto& pending : p2p_->pending()) {
    p2p_->waiting_for(pending, waiting);
    check(pending.op, pending.signature, waiting, ask, now);
  }
  if (!running_.active) return;
  running_.waiting_for(waiting);
  check(running_.op(), running_.signature(), waiting, ask, now);
  // A collective in the queue is late, and the one that runs is what it waits for.
  if (now >= deadline_ns) throw timeout_failure(running_.op(), running_.signature(), waiting, now);
}

void HostGroup::check(const Op& op, const Signature& signature, const std::vector<int>& waiting, bool ask, int64_t now) const {
  const auto lost = [&](int peer) {
    if (peer_states_[peer].liveness == Liveness::Alive) return false;
    if (!peer_states_[peer].is_trusted) return true;
    if (op.is_point_to_point()) return op.verb == Verb::Send || p2p_->ended(peer);
    return links_[peer]->ended();
  };
  // A receive from any rank waits for all others, and it is enough that one is left.
  if (op.verb != Verb::Recv || waiting.size() == 1) {
    const auto first = std::find_if(waiting.begin(), waiting.end(), lost);
    if (first != waiting.end()) throw gone(*first, signature);
  } else if (std::all_of(waiting.begin(), waiting.end(), lost)) {
    throw Failure(FailureCode::PeerLost, rank_, waiting,
                  "no other rank is left, but rank " + std::to_string(rank_) + " still waits in " + describe(signature, rank_));
  }
  if (ask) {
    for (const int peer : waiting) control_->ask(peer, signature);
  }
  if (now >= op.deadline_ns) throw timeout_failure(op, signature, waiting, now);
}

Failure HostGroup::gone(int peer, const Signature& signature) const {
  const PeerState& state = peer_states_[peer];
  const std::string name = "rank " + std::to_string(peer);
  return {FailureCode::PeerLost, rank_, {peer},
          state.liveness == Liveness::Dead
              ? "lost " + name + " (" + state.reason + ")"
              : name + " has closed the group, but rank " + std::to_string(rank_) + " still needs it for " + describe(signature, rank_)};
}

Failure HostGroup::timeout_failure(const Op& op, const Signature& signature, const std::vector<int>& waiting, int64_t now) const {
  const int64_t waited = std::min(now - op.deadline_ns, int64_t{0}) + op.timeout_ns;  // at most what was asked for
  std::string text = "no answer from " + rank_list(waiting) + " within " + std::to_string(waited / kMillisecond) +
                     " ms in " + describe(signature, rank_);
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
  if (running_.active && !running_.inline_run) ids.push_back(running_.op().id);
  running_.active = false;
  if (p2p_) {
    for (const auto& pending : p2p_->pending()) {
      if (!pending.inline_run) ids.push_back(pending.op.id);
    }
    p2p_->clear();
  }
  {
    std::lock_guard lock(mutex_);
    for (auto* queue : {&p2p_queue_, &queue_}) {
      for (const Op& op : *queue) ids.push_back(op.id);
      queue->clear();
    }
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

void HostGroup::on_garbage(int peer) {
  peer_states_[peer].is_trusted = false;
  on_dead(peer, "it sent something that is no ringwise frame");
}

/// What this rank is in, a collective first; otherwise what it began last.
Activity HostGroup::activity() const {
  if (running_.active) return {true, true, running_.signature()};
  if (p2p_ && !p2p_->pending().empty()) return {true, true, p2p_->pending().front().signature};
  if (last_on_board_) return {false, true, board_->signature()};
  return {false, last_.any, last_.signature};
}

/// A late rank's question: it names the operation that it is in. If this rank ran another one at that place of the
/// sequence, the two will never meet.
void HostGroup::on_question(int peer, const Signature& signature) {
  const Signature& mine = history_[signature.seq % kHistory];
  const bool collective = signature.verb != static_cast<uint8_t>(Verb::Send);
  if (collective && mine.magic == signature.magic && mine.seq == signature.seq && !same(mine, signature)) {
    return report(disagreement(rank_, mine, peer, signature));
  }
  control_->answer(peer, activity());
}

void HostGroup::on_activity(int peer, const Activity& activity) { peer_states_[peer].activity = activity; }

}  // namespace ringwise::coll
