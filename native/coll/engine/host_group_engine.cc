// The engine of a HostGroup: the functions that only the holder of the mutex `engine_` calls.
#include <sched.h>

#include <algorithm>
#include <ctime>
#include <limits>

#include "base/pause.h"
#include "base/time/clock.h"
#include "coll/engine/host_group.h"
#include "coll/handshake/labels.h"

namespace ringwise::coll {

namespace {

// Without progress, the engine first spins, then yields, then sleeps in the kernel. The lane yields only a few times,
// because it may share its core with a program that computes. A thread of the program that waits anyway stays awake
// longer, which saves a wake-up that may cost a scheduler tick.
constexpr int kBusyYields = 4;
constexpr int kWaitingYields = 2000;
// Limits how long the engine yields: on an oversubscribed machine each yield lasts a scheduler slice of every other
// thread, and the engine does not notice a lost rank meanwhile.
constexpr int64_t kAwakeNs = 10 * kMillisecond;
// The same limit for links to other hosts: data that has not arrived by then will take longer, and the kernel may need
// the core to deliver it.
constexpr int64_t kAwakeForLinksNs = 200'000;

// Backoff during a long incoming message: the length of a sleep, the shortest rest of a message that is worth one, and
// the most sleeps in a row before the ordinary waiting begins.
constexpr int64_t kBackoffNs = 50'000;
constexpr int64_t kBackoffMinRestNs = 400'000;
constexpr int kBackoffRounds = 20;

// A rank that has been waiting this long asks the ranks it waits for what they are doing, and again at the second
// interval.
constexpr int64_t kFirstQuestionNs = 20 * kMillisecond;
constexpr int64_t kNextQuestionNs = 1'000 * kMillisecond;
// It asks all ranks this long before the deadline (or after half of a short timeout), so that the report of a timeout
// is fresh.
constexpr int64_t kLastQuestionNs = 200 * kMillisecond;

// kLookUpNs: how often a rank that only sends polls its control connections. kSpeakUpNs: how long a rank that only
// receives defers its handshakes.
constexpr int64_t kLookUpNs = 1 * kMillisecond;
constexpr int64_t kSpeakUpNs = 1 * kMillisecond;

// How long the lowest rank may take to announce the root cause.
constexpr int64_t kRootCauseNs = 250 * kMillisecond;

/// Returns when to ask all ranks what keeps `op` waiting.
int64_t last_question_ns(const Op& op) { return op.deadline_ns - std::min(kLastQuestionNs, op.timeout_ns / 2); }

}  // namespace

/// Begins and advances operations. A caller of `run` stays until its operation has ended, `wait` until the operation
/// that it waits for has ended. The lane stays until no operation is left or another thread takes over; on an
/// oversubscribed host where no thread waits, it returns when nothing moves.
void HostGroup::pump(Who who, const Op* op) {
  Idle idle_state;
  while (!stop_) {
    try {
      if (conflict_) report_conflict();
      if (report_) await_root_cause();
      if (op != nullptr) begin(*std::exchange(op, nullptr), true);
      const bool admitted = who != Who::Caller && admit();
      if (!busy()) return;
      const bool moved = advance_all() || admitted;
      if (who == Who::Waiter && driven_id_ == 0) {
        admit();  // so that queued operations begin before any later one
        return;
      }
      if (who == Who::Lane && drivers_ > 0) return;
      if (moved) {
        idle_state = {};
      } else if (who == Who::Lane && oversubscribed_ && !progress_requested_) {
        idle_state.next_question_ns = last_question_ns(running_.active ? running_.op() : p2p_->pending().front().op);
        return check_waiting(idle_state, who, now_ns(), earliest_deadline());
      } else {
        idle(idle_state, who);
      }
    } catch (const Failure& failure) {
      report(reason_of(failure));
    } catch (const std::exception& error) {
      report({FailureCode::System, rank_, {rank_}, error.what()});
    }
  }
}

/// Returns the failure to report. A link that breaks during a send may be the first sign that the peer has left the
/// group; then the failure names that reason. Adds the texts of labels to a mismatch.
Failure HostGroup::reason_of(const Failure& failure) {
  if (failure.code == FailureCode::Mismatch) return with_labels(failure);
  const bool is_news =
      failure.code == FailureCode::PeerLost && running_.active && diagnosis_.is_here(failure.peers.front());
  if (!is_news) return failure;
  control_->poll(*this);
  const int peer = failure.peers.front();
  return running_.active && !diagnosis_.is_here(peer) ? diagnosis_.gone(peer, running_.signature()) : failure;
}

/// Begins all queued sends and receives, and the next collective if none is active. Returns true if any began.
bool HostGroup::admit() {
  if (!requests_.has_news() && !look_again_) return false;
  bool moved = false;
  requests_.see();
  look_again_ = false;
  if (const auto text = requests_.take_abort()) throw Failure(FailureCode::Aborted, rank_, {rank_}, *text);
  while (const auto op = requests_.pop(!running_.active)) {
    moved = true;
    begin(*op, false);
  }
  return moved;
}

void HostGroup::begin(const Op& op, bool inline_run) {
  if (alarm_ != nullptr && alarm_->load(std::memory_order_relaxed) != 0) control_->poll(*this);
  if (poison_) {
    flight_.end(op.record, false);
    if (!inline_run) end(op.id, poison_);
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
  if (op.verb == Verb::Send && !diagnosis_.is_here(op.root))
    throw diagnosis_.gone(op.root, signature_of(op, rank_, size_));
}

void HostGroup::begin_collective(const Op& op, bool inline_run) {
  running_.active = true;
  running_.inline_run = inline_run;
  running_.on_board = choices_.has(op.verb) ? nullptr : board_.get();
  begun_ = op.seq + 1;
  if (running_.on_board != nullptr) return board_->begin(op);  // the post will show the signature to the other ranks
  const Topology topology{rank_, hosts_.get(), &choices_.tuning()};
  running_.over_links.begin(op, topology, choices_.choose(op, topology), diagnosis_.is_everyone_here());
  diagnosis_.remember(running_.signature());
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
  flight_.end(running_.op().record, true);
  if (running_.inline_run) {
    inline_done_ = true;  // look_again_ is not needed: operations queued since it began are news in requests_
  } else {
    look_again_ = true;
    end(running_.op().id, nullptr);
  }
  if (running_.on_board != nullptr) return;
  if (running_.over_links.runs_ahead()) look_up();
  if (running_.over_links.deferred().any() && !lane_timer_set_.exchange(true)) control_->set_timer(kSpeakUpNs);
}

/// Polls the control connections and compares pending handshakes, at most once per kLookUpNs. A rank that only sends
/// never waits, so it would not notice lost peers or disagreements otherwise.
void HostGroup::look_up() {
  const int64_t now = now_ns();
  if (now - looked_up_ns_ < kLookUpNs) return;
  looked_up_ns_ = now;
  control_->poll(*this);
  compare_late();
}

/// Compares the pending posts and handshakes that have arrived, for operations in which this rank only sent.
void HostGroup::compare_late() {
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

/// Sends the deferred handshakes that the links have room for. Returns true if some are left.
bool HostGroup::speak_up() {
  if (poison_) return false;
  running_.over_links.speak_up(links_);
  return running_.over_links.deferred().any();
}

/// Sets `ranks` to the live ranks whose posts or handshakes of operations in which this rank only sent are pending.
void HostGroup::find_owing(std::vector<int>& ranks) {
  ranks.clear();
  if (board_) board_->not_posted(ranks);
  const auto& pending = running_.over_links.pending();
  for (int peer = 0; pending.any() && peer < size_; ++peer) {
    if (pending.from(peer) > 0) ranks.push_back(peer);
  }
  std::erase_if(ranks, [&](int peer) { return !diagnosis_.is_here(peer); });
}

/// Waits for the pending posts and handshakes of operations in which this rank only sent, until their deadline. Once
/// the group is closed, a disagreement could not be reported any more. Also, a socket that is closed over unread bytes
/// cuts off the last data that it sent.
void HostGroup::settle() {
  if (!control_) return;
  const int64_t board_deadline_ns = board_ ? now_ns() + board_->op().timeout_ns : 0;
  const int64_t deadline_ns = std::max(board_deadline_ns, running_.over_links.pending().deadline_ns());
  std::vector<int> owing;
  while (!poison_ && !stop_ && !requests_.has_news()) {
    control_->poll(*this);
    try {
      compare_late();
      find_owing(owing);
    } catch (const Failure& failure) {
      report(reason_of(failure));
    }
    if (conflict_) report_conflict();
    if (report_) await_root_cause();
    if (poison_ || owing.empty() || now_ns() >= deadline_ns) return;
    control_->wait(kMillisecond);
  }
}

void HostGroup::finish_p2p(const PointToPoint::Pending& pending) {
  const int source = pending.op.verb == Verb::Recv ? pending.peer : -1;
  flight_.end(pending.op.record, true, source);
  if (pending.inline_run) {
    inline_done_ = true;
    inline_source_ = source;
  } else {
    end(pending.op.id, nullptr, source);
  }
}

void HostGroup::idle(Idle& idle, Who who) {
  ++idle.rounds;
  if (idle.rounds <= kBackoffRounds && back_off()) return;
  const int spins = has_core_each_ ? kSpins : 0;  // ranks that share this core cannot answer while it spins
  if (idle.rounds <= spins) return pause_cpu();
  const int64_t now = now_ns();
  if (idle.since_ns == 0) {
    idle.since_ns = now;
    const Op& op = running_.active ? running_.op() : p2p_->pending().front().op;
    idle.next_question_ns = std::min(now + std::min(kFirstQuestionNs, op.timeout_ns / 4), last_question_ns(op));
  }
  const int yields = who == Who::Lane ? kBusyYields : kWaitingYields;
  if (idle.rounds <= spins + yields && now - idle.since_ns < (board_ ? kAwakeNs : kAwakeForLinksNs)) {
    if (board_ && has_core_each_) sharing_.part(board_context_.board, rank_);
    sched_yield();
    if (!board_) sharing_.part_from_others(now);
    return;
  }
  control_->poll(*this);
  if (conflict_) return;
  speak_up();
  compare_late();
  // Data that a rank sent before it left or died still counts, so try once more after the poll.
  if (advance_all() || !busy()) return;
  const int64_t deadline_ns = earliest_deadline();
  check_waiting(idle, who, now, deadline_ns);
  sleep(std::min(idle.next_question_ns, deadline_ns), who);
}

/// Sleeps kBackoffNs while a long message arrives over a slow network: polling for every packet would take the core
/// from the kernel threads that deliver them. Returns false if there is no such message.
bool HostGroup::back_off() {
  if (board_ || !running_.active || !p2p_->pending().empty() || running_.over_links.rest_ns() < kBackoffMinRestNs)
    return false;
  const timespec time{0, kBackoffNs};
  nanosleep(&time, nullptr);
  return true;
}

/// Returns the earliest deadline of all running and queued operations: a queued operation times out even while another
/// one runs.
int64_t HostGroup::earliest_deadline() {
  int64_t earliest = std::numeric_limits<int64_t>::max();
  if (running_.active) earliest = running_.op().deadline_ns;
  for (const auto& pending : p2p_->pending()) earliest = std::min(earliest, pending.op.deadline_ns);
  return std::min(earliest, requests_.earliest_deadline());
}

/// Announces the sleep, tries to advance once more, then sleeps until `until_ns` at most. Returns at once if something
/// moved or was requested. The announcement comes before the last try, so that no wake-up is lost.
void HostGroup::sleep(int64_t until_ns, Who who) {
  if (who == Who::Lane) lane_sleeps_ = true;
  if (my_sleeping_ != nullptr) my_sleeping_->store(1);
  const bool moved = advance_all();
  const bool called = requests_.has_news() || (who == Who::Lane && drivers_ > 0);
  if (!moved && !called && !stop_) {
    control_->wait(std::max<int64_t>(until_ns - now_ns(), 0));
  }
  if (my_sleeping_ != nullptr) my_sleeping_->store(0);
  if (who != Who::Lane || lane_sleeps_.exchange(false)) return;
  uint64_t count;
  (void)!::read(wake_.get(), &count, sizeof count);
}

/// Checks the ranks that this one waits for: throws if one is lost or a deadline has passed, and asks them what they
/// are doing when a question is due.
void HostGroup::check_waiting(Idle& idle, Who who, int64_t now, int64_t deadline_ns) {
  const bool is_question_due = now >= idle.next_question_ns;
  if (is_question_due && who != Who::Lane) locate(blocking_);
  idle.next_question_ns = is_question_due ? now + kNextQuestionNs : idle.next_question_ns;
  std::vector<int> waiting;
  const auto look = [&](const Op& op, const Signature& signature) {
    check(op, signature, waiting, idle, now);
    if (is_question_due) ask(op, signature, waiting, now);
    if (now >= op.deadline_ns) throw diagnosis_.late(op, waiting, now);
    if (now < last_question_ns(op)) idle.next_question_ns = std::min(idle.next_question_ns, last_question_ns(op));
  };
  for (const auto& pending : p2p_->pending()) {
    p2p_->waiting_for(pending, waiting);
    look(pending.op, pending.signature);
  }
  if (!running_.active) return;
  running_.waiting_for(waiting);
  look(running_.op(), running_.signature());
  // The deadline of a queued collective has passed; it waits for the running one.
  if (now >= deadline_ns) throw diagnosis_.late(running_.op(), waiting, now);
}

/// Throws if a rank that this one waits for is gone.
void HostGroup::check(const Op& op, const Signature& signature, const std::vector<int>& waiting, Idle& idle,
                      int64_t now) {
  const auto lost = [&](int peer) {
    const bool is_here = diagnosis_.is_here(peer);
    if (!is_here && op.verb == Verb::Send) return true;
    const bool is_local = hosts_->host_of(peer) == hosts_->host_of(rank_);  // shared memory ends with its rank
    const bool has_ended = op.is_point_to_point() ? p2p_->ended(peer) : links_[peer]->ended();
    return diagnosis_.is_lost(peer, is_local ? !is_here : has_ended, idle.since_ns, now, idle.next_question_ns);
  };
  // A receive from any rank waits for all other ranks, and fails only when all of them are lost.
  if (op.verb != Verb::Recv || waiting.size() == 1) {
    const auto first = std::find_if(waiting.begin(), waiting.end(), lost);
    if (first != waiting.end()) throw diagnosis_.gone(*first, signature);
  } else if (std::all_of(waiting.begin(), waiting.end(), lost)) {
    throw Failure(
        FailureCode::PeerLost, rank_, waiting,
        "no other rank is left, but rank " + std::to_string(rank_) + " still waits in " + describe(signature, rank_));
  }
}

/// Asks the ranks in `waiting` what they are doing. Shortly before the deadline of a collective, asks all ranks,
/// because the ones that this rank waits for may themselves wait for others.
void HostGroup::ask(const Op& op, const Signature& signature, const std::vector<int>& waiting, int64_t now) {
  if (op.is_point_to_point() || now < last_question_ns(op))
    diagnosis_.ask(*control_, waiting, signature, now);
  else
    diagnosis_.ask_all(*control_, signature, now);
}

/// Returns the failure with the texts of labels in place of their numbers. Between hosts, signatures carry only the
/// numbers, so this rank asks the peers for unknown texts and waits up to kRootCauseNs.
Failure HostGroup::with_labels(Failure failure) {
  const int64_t deadline_ns = now_ns() + kRootCauseNs;
  uint64_t asked = 0;
  for (uint64_t label = unknown_label_in(failure.text); label != 0 && !poison_ && !stop_;
       label = unknown_label_in(failure.text)) {
    for (const int peer : failure.peers) {
      if (label != asked && peer != rank_) control_->ask_label(peer, label);
    }
    asked = label;
    control_->poll(*this);
    failure.text = with_known_labels(failure.text);
    if (now_ns() >= deadline_ns) break;
    if (unknown_label_in(failure.text) == label) control_->wait(kMillisecond);
  }
  return failure;
}

/// Reports the conflict that a question showed, with the texts of its labels.
void HostGroup::report_conflict() { report(with_labels(*std::exchange(conflict_, std::nullopt))); }

/// Reports a failure to the lowest live rank, which takes the first report as the root cause and announces it to all
/// ranks. Several ranks may notice a failure at once with different symptoms; this way all report the same root cause.
void HostGroup::report(Failure failure) {
  if (poison_) return end_everything();
  const int lowest = diagnosis_.lowest_here();
  if (lowest == rank_) return decide(std::move(failure));
  control_->report(lowest, failure);
  report_ = std::move(failure);
  root_cause_deadline_ns_ = now_ns() + kRootCauseNs;
}

/// Waits until the root cause is announced. Decides it here if that takes longer than kRootCauseNs.
void HostGroup::await_root_cause() {
  while (!poison_ && !stop_) {
    control_->poll(*this);
    const int64_t left = root_cause_deadline_ns_ - now_ns();
    if (left <= 0) decide(*report_);  // the lowest rank does not answer
    if (!poison_) control_->wait(left);
  }
  report_.reset();
}

void HostGroup::decide(Failure failure) {
  control_->poison(failure);
  if (alarm_ != nullptr) alarm_->store(1);
  poison(std::move(failure));
}

/// Sets the group's root cause, which never changes again, and ends all operations.
void HostGroup::poison(Failure failure) {
  if (poison_) return end_everything();
  auto cause = std::make_shared<const Failure>(std::move(failure));
  {
    std::lock_guard lock(loss_mutex_);
    poison_ = cause;
  }
  if (dump_) dump_->write(cause->text);  // before the program learns of the failure and may exit
  end_everything();
}

void HostGroup::end_everything() {
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
  for (const uint64_t id : ids) end(id, poison_);
}

void HostGroup::on_report(int, Failure failure) {
  if (!poison_) decide(std::move(failure));
}

void HostGroup::on_poison(int, Failure failure) { poison(std::move(failure)); }

void HostGroup::on_left(int peer) { diagnosis_.left(peer); }

void HostGroup::on_dead(int peer, const char* reason) {
  if (!diagnosis_.died(peer, reason)) return;
  {
    std::lock_guard lock(loss_mutex_);
    if (!loss_) {
      loss_ = std::make_shared<const Failure>(diagnosis_.gone(peer, {}));
      lost_ns_ = now_ns();
    }
  }
  if (report_) report(*report_);  // the lost rank may have been the lowest one, which was to decide
}

void HostGroup::on_garbage(int peer) {
  if (diagnosis_.distrusted(peer, "it sent something that is no ringwise frame") && report_) report(*report_);
}

/// Answers the question of a waiting rank, which names its operation. If this rank ran a different operation with the
/// same sequence number, it reports the disagreement instead, because the two operations can never complete.
void HostGroup::on_question(int peer, const Signature& signature) {
  if (auto failure = diagnosis_.conflict(peer, signature)) {
    // The text of the peer's label must be requested first, which is not possible inside `poll`.
    if (unknown_label_in(failure->text) == 0) return report(std::move(*failure));
    conflict_ = std::move(failure);
    return;
  }
  uint32_t record = 0;
  if (running_.active)
    record = running_.op().record;
  else if (p2p_ && !p2p_->pending().empty())
    record = p2p_->pending().front().op.record;
  control_->answer(peer, diagnosis_.activity(record, begun_, now_ns()));
}

void HostGroup::on_label_question(int peer, uint64_t label) { control_->answer_label(peer, label); }

void HostGroup::on_activity(int peer, const Activity& activity) { diagnosis_.answered(peer, activity, now_ns()); }

}  // namespace ringwise::coll
