#include "coll/engine/progress_engine.h"

#include <sched.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "base/os/barrier.h"
#include "base/os/cores.h"
#include "base/pause.h"
#include "base/time/clock.h"
#include "coll/engine/waiting.h"
#include "coll/transport/tcp_link.h"

namespace ringwise::coll {

namespace {

constexpr int kTightSpins = 20;  // rounds without a pause instruction, which takes as long as a peer's answer

// The thread that starts an operation of at most this many bytes also advances it; it only announces larger ones.
constexpr size_t kNudgeBytes = 64 * 1024;

// An attempt leaves collectives of more bytes, over all ranks, to the lane: they may take longer than an attempt may.
constexpr size_t kAttemptBytes = 512 * 1024;
// Rounds between two readings of the clock, and the number of yields of an attempt if ranks share cores.
constexpr int kRoundsPerLook = 16;
constexpr int kAttemptYields = 2;

// kPollNs: how often a rank that only sends polls its control connections. kDeferNs: how long a rank that only
// receives defers its handshakes.
constexpr int64_t kPollNs = 1 * kMillisecond;
constexpr int64_t kDeferNs = 1 * kMillisecond;

}  // namespace

ProgressEngine::ProgressEngine(int rank, int size, RequestQueue& requests, FlightRecorder& flight,
                               FailureProtocol& failures, LaneSignals& signals, std::function<bool()> on_long_wait)
    : rank_(rank),
      size_(size),
      requests_(requests),
      flight_(flight),
      failures_(failures),
      signals_(signals),
      on_long_wait_(std::move(on_long_wait)) {}

void ProgressEngine::connect(Connections connections, Choices choices) {
  choices_ = std::move(choices);
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
  control_ = std::make_unique<Control>(std::move(connections.control), sockets, signals_.wake.descriptor());
  const auto& locals = connections.local_ranks;
  const auto index_of = [&](int rank) {
    return static_cast<int>(std::find(locals.begin(), locals.end(), rank) - locals.begin());
  };
  const int me = index_of(rank_);
  if (locals.size() > 1) {
    my_sleeping_ = segment_.sleeping(me);
    alarm_ = segment_.alarm();
  }
  failures_.connect(*control_, alarm_);
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
  if (const auto cores = static_cast<size_t>(os::usable_cores()); cores > 0) {
    oversubscribed_ = 2 * locals.size() > cores;
    has_core_each_ = locals.size() <= cores;
  }
  p2p_ = std::make_unique<PointToPoint>(rank_, std::move(p2p), [this](const auto& pending) { finish_p2p(pending); });
  if (!connections.board) return;
  board_context_.board = std::move(connections.board);
  board_context_.arena = std::move(connections.arena);
  board_context_.arenas = std::move(connections.arenas);
  board_context_.doorbell = control_.get();
  board_context_.fences = os::join_barriers();
  board_ = std::make_unique<BoardExecution>(board_context_, rank_);
}

void ProgressEngine::leave() {
  if (control_) control_->say_goodbye();
  board_.reset();
  links_.clear();
  if (p2p_) p2p_->drain();
  p2p_.reset();
  failures_.disconnect();
  control_.reset();
}

bool ProgressEngine::start_clock() {
  if (running_.active) running_.start_clock();
  return running_.active;
}

Work ProgressEngine::work() const {
  uint32_t record = 0;
  if (running_.active)
    record = running_.op().record;
  else if (p2p_ && !p2p_->pending().empty())
    record = p2p_->pending().front().op.record;
  return {record, begun_};
}

void ProgressEngine::end(uint64_t id, std::shared_ptr<const Failure> failure, int source) {
  if (failure) failures_.note_reported();
  if (id == driven_id_) driven_id_ = 0;
  requests_.end({id, std::move(failure), source});
}

bool ProgressEngine::nudge() {
  try {
    admit();
    if (running_.active && running_.op().count * byte_size(running_.op().dtype) > kNudgeBytes) {
      running_.announce(links_);
    } else {
      advance_all();
      admit();
    }
  } catch (...) {
    report_caught();
    return false;
  }
  if ((is_busy() || requests_.has_news()) && !signals_.timer_set.exchange(true)) control_->set_timer(kDriftNs);
  return true;
}

void ProgressEngine::attempt(uint64_t id, int64_t until_ns) {
  driven_id_ = id;
  for (int round = 1; driven_id_ != 0 && !failures_.has_conflict() && !failures_.cause(); ++round) {
    try {
      admit();
      if (!is_busy() || (running_.active && takes_long(running_.op()))) break;
      advance_all();
      if (driven_id_ == 0) admit();  // so that queued operations begin before any later one
    } catch (...) {
      report_caught();
    }
    if (driven_id_ == 0) return;
    if (!has_core_each_) {
      if (round > kAttemptYields) break;
      sched_yield();
    } else if (round > kTightSpins) {
      pause_cpu();
    }
    if (round % kRoundsPerLook == 0 && now_ns() >= until_ns) break;
  }
  driven_id_ = 0;
}

/// Returns whether one step of the collective may hold a thread for longer than an attempt.
bool ProgressEngine::takes_long(const Op& op) const {
  return op.count * byte_size(op.dtype) * static_cast<size_t>(size_) > kAttemptBytes;
}

bool ProgressEngine::run_on_board(Op& op, int64_t& ended) {
  if (!board_ || choices_.has(op.verb) || alarm_->load(std::memory_order_relaxed) != 0) return false;
  try {
    begin_collective(op, true);
    board_->announce();  // before the work below, so that the other ranks need not wait for it
    op.record = running_.op().record = flight_.enter(op, board_->algorithm());
    for (int i = 0; i < (has_core_each_ ? kSpins : 1); ++i) {
      board_->advance();
      if (running_.done()) {
        running_.active = false;
        ended = flight_.end(op.record, true);
        return true;
      }
      if (i > kTightSpins) pause_cpu();
    }
  } catch (...) {
    report_caught();
  }
  return false;
}

/// Reports the exception that is being handled, which ends all operations.
void ProgressEngine::report_caught() {
  try {
    throw;
  } catch (const Failure& failure) {
    failures_.report(failures_.reason_of(failure, running_.active ? &running_.signature() : nullptr));
  } catch (const std::exception& error) {
    failures_.report({FailureCode::System, rank_, {rank_}, error.what()});
  }
}

void ProgressEngine::pump(Driver driver, const Op* op) {
  Idle idle_state;
  while (!signals_.stop) {
    try {
      failures_.resolve();
      if (op != nullptr) begin(*std::exchange(op, nullptr), true);
      const bool admitted = driver != Driver::Caller && admit();
      if (!is_busy()) return;
      const bool moved = advance_all() || admitted;
      if (driver == Driver::Waiter && driven_id_ == 0) {
        admit();  // so that queued operations begin before any later one
        return;
      }
      if (driver == Driver::Lane && signals_.drivers > 0) return;
      if (moved) {
        idle_state = {};
      } else if (driver == Driver::Lane && oversubscribed_ && !signals_.progress_requested) {
        idle_state.next_question_ns = last_question_ns(running_.active ? running_.op() : p2p_->pending().front().op);
        return check_waiting(idle_state, driver, now_ns(), earliest_deadline());
      } else {
        idle(idle_state, driver);
      }
    } catch (...) {
      report_caught();
    }
  }
}

/// Begins all queued sends and receives, and the next collective if none is active. Returns true if any began.
bool ProgressEngine::admit() {
  if (!requests_.has_news() && !look_again_) return false;
  bool moved = false;
  requests_.see();
  look_again_ = false;
  if (const auto failure = requests_.take_abort()) throw Failure(*failure);
  while (const auto op = requests_.pop(!running_.active)) {
    moved = true;
    begin(*op, false);
  }
  return moved;
}

void ProgressEngine::begin(const Op& op, bool inline_run) {
  if (alarm_ != nullptr && alarm_->load(std::memory_order_relaxed) != 0) failures_.poll();
  if (failures_.cause()) {
    flight_.end(op.record, false);
    if (!inline_run) end(op.id, failures_.cause());
    return;
  }
  if (!op.is_point_to_point()) {
    begin_collective(op, inline_run);
    flight_.start(op.record, running_.algorithm());
    return;
  }
  flight_.start(op.record, "message");
  p2p_->post(op, inline_run);
  if (board_) board_->compare_posted();
  // A message to a rank that is gone would be lost silently. Receives notice the loss while they wait.
  if (op.verb == Verb::Send && !failures_.diagnosis().is_here(op.root))
    throw failures_.diagnosis().gone(op.root, signature_of(op, rank_, size_));
}

void ProgressEngine::begin_collective(const Op& op, bool inline_run) {
  running_.active = true;
  running_.inline_run = inline_run;
  running_.on_board = choices_.has(op.verb) ? nullptr : board_.get();
  begun_ = op.seq + 1;
  if (running_.on_board != nullptr) return board_->begin(op);  // the post will show the signature to the other ranks
  if (op.reproducible) throw std::logic_error("a reproducible reduction without a board");
  const Topology topology{rank_, hosts_.get(), &choices_.tuning()};
  running_.over_links.begin(op, topology, choices_.choose(op, topology), failures_.diagnosis().is_everyone_here());
  failures_.diagnosis().remember(running_.signature());
}

bool ProgressEngine::advance_all() {
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

void ProgressEngine::finish_collective() {
  running_.active = false;
  flight_.end(running_.op().record, true);
  if (running_.inline_run) {
    inline_done_ = true;  // look_again_ is not needed: operations queued since it began are news in requests_
  } else {
    look_again_ = true;
    end(running_.op().id, nullptr);
  }
  if (running_.on_board != nullptr) return;
  if (running_.over_links.runs_ahead()) poll_while_sending();
  if (running_.over_links.deferred().any() && !signals_.timer_set.exchange(true)) control_->set_timer(kDeferNs);
}

void ProgressEngine::finish_p2p(const PointToPoint::Pending& pending) {
  const int source = pending.op.verb == Verb::Recv ? pending.peer : -1;
  flight_.end(pending.op.record, true, source);
  if (pending.inline_run) {
    inline_done_ = true;
    inline_source_ = source;
  } else {
    end(pending.op.id, nullptr, source);
  }
}

/// Polls the control connections and compares pending handshakes, at most once per kPollNs. A rank that only sends
/// never waits, so it would not notice lost peers or disagreements otherwise.
void ProgressEngine::poll_while_sending() {
  const int64_t now = now_ns();
  if (now - polled_ns_ < kPollNs) return;
  polled_ns_ = now;
  failures_.poll();
  compare_late();
}

/// Compares the pending posts and handshakes that have arrived, for operations in which this rank only sent.
void ProgressEngine::compare_late() {
  if (board_) board_->compare_posted();
  auto& pending = running_.over_links.pending();
  for (int peer = 0; pending.any() && peer < size_; ++peer) {
    try {
      if (pending.from(peer) > 0) pending.settle(rank_, peer, *links_[peer]);
    } catch (const Failure& failure) {
      if (failure.code == FailureCode::Mismatch) throw;
      pending.forget(peer);  // the next operation that needs the lost rank reports it
    }
  }
}

bool ProgressEngine::send_deferred() {
  if (failures_.cause()) return false;
  running_.over_links.send_deferred(links_);
  return running_.over_links.deferred().any();
}

/// Sets `ranks` to the live ranks whose posts or handshakes of operations in which this rank only sent are pending.
void ProgressEngine::find_owing(std::vector<int>& ranks) {
  ranks.clear();
  if (board_) board_->not_posted(ranks);
  const auto& pending = running_.over_links.pending();
  for (int peer = 0; pending.any() && peer < size_; ++peer) {
    if (pending.from(peer) > 0) ranks.push_back(peer);
  }
  std::erase_if(ranks, [&](int peer) { return !failures_.diagnosis().is_here(peer); });
}

void ProgressEngine::settle() {
  if (!control_) return;
  const int64_t board_deadline_ns = board_ ? now_ns() + board_->op().timeout_ns : 0;
  const int64_t deadline_ns = std::max(board_deadline_ns, running_.over_links.pending().deadline_ns());
  std::vector<int> owing;
  while (!failures_.cause() && !signals_.stop && !requests_.has_news()) {
    failures_.poll();
    try {
      compare_late();
      find_owing(owing);
    } catch (...) {
      report_caught();
    }
    failures_.resolve();
    if (failures_.cause() || owing.empty() || now_ns() >= deadline_ns) return;
    control_->wait(kMillisecond);
  }
}

void ProgressEngine::note_exposed() {
  if (!running_.active || running_.on_board == nullptr) return;
  const std::span<const std::byte> exposed = board_->exposed();
  if (exposed.empty()) return;
  exposed_bytes_ = exposed.size();
  exposed_data_ = exposed.data();
}

void ProgressEngine::end_all() {
  note_exposed();
  std::vector<uint64_t> ids;
  const auto fail = [&](const Op& op, bool inline_run) {
    flight_.end(op.record, false);
    if (!inline_run) ids.push_back(op.id);
  };
  if (std::exchange(running_.active, false)) fail(running_.op(), running_.inline_run);
  if (p2p_) {
    for (const auto& pending : p2p_->pending()) fail(pending.op, pending.inline_run);
    p2p_->clear();
  }
  for (const Op& op : requests_.take_all()) fail(op, false);
  for (const uint64_t id : ids) end(id, failures_.cause());
}

}  // namespace ringwise::coll
