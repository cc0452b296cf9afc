// The engine of a HostGroup: what the holder of `engine_` does.
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

// Without progress, the engine first spins, then yields, then sleeps in the kernel. A lane that shares its core with
// a program that computes gives up soon; where the program waits anyway, nothing is lost by staying awake, and a
// wake-up that may cost a scheduler tick is saved.
constexpr int kBusyYields = 4;
constexpr int kWaitingYields = 2000;
// On a oversubscribed machine a single yield takes a scheduler slice of everybody else: nobody hears of a lost rank meanwhile.
constexpr int64_t kAwakeNs = 10 * kMillisecond;
// What has not come from another host after this long will take a while, and the kernel may need the core to bring it.
constexpr int64_t kAwakeForLinksNs = 200'000;

// How long to look away from a message that will take at least so long, and how often in a row before somebody asks.
constexpr int64_t kBackoffNs = 50'000;
constexpr int64_t kBackoffMinRestNs = 400'000;
constexpr int kBackoffRounds = 20;

// A rank that has been waiting this long asks the others what they are doing.
constexpr int64_t kFirstQuestionNs = 20 * kMillisecond;
constexpr int64_t kNextQuestionNs = 1'000 * kMillisecond;
// And everybody, this long before the deadline or after half of the time: so what it reports is no older.
constexpr int64_t kLastQuestionNs = 200 * kMillisecond;

// How often a rank that only sends looks whether the others are there, and how long one that only receives keeps back
// what it has to say.
constexpr int64_t kLookUpNs = 1 * kMillisecond;
constexpr int64_t kSpeakUpNs = 1 * kMillisecond;

// How long the lowest rank may take to say which failure was the first.
constexpr int64_t kRootCauseNs = 250 * kMillisecond;

/// When everybody is asked what keeps `op` waiting.
int64_t last_question_ns(const Op& op) { return op.deadline_ns - std::min(kLastQuestionNs, op.timeout_ns / 2); }

}  // namespace

/// Moves what is under way. A caller of `run` stays until its operation has ended, `wait` until the one that it waits
/// for has. The lane stays until nothing is left, or somebody else comes to do it, or, on a oversubscribed host where nobody
/// waits, until nothing moves.
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
        admit();  // so that nobody overtakes what the operation has kept waiting
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

/// A link that breaks in a send may be the first news of a rank that has closed the group: then that is what is told.
Failure HostGroup::reason_of(const Failure& failure) {
  if (failure.code == FailureCode::Mismatch) return with_labels(failure);
  const bool is_news =
      failure.code == FailureCode::PeerLost && running_.active && diagnosis_.is_here(failure.peers.front());
  if (!is_news) return failure;
  control_->poll(*this);
  const int peer = failure.peers.front();
  return running_.active && !diagnosis_.is_here(peer) ? diagnosis_.gone(peer, running_.signature()) : failure;
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
  // A message to a rank that is gone would be lost without a word. Whoever waits for such a rank finds out itself.
  if (op.verb == Verb::Send && !diagnosis_.is_here(op.root))
    throw diagnosis_.gone(op.root, signature_of(op, rank_, size_));
}

void HostGroup::begin_collective(const Op& op, bool inline_run) {
  running_.active = true;
  running_.inline_run = inline_run;
  running_.on_board = choices_.has(op.verb) ? nullptr : board_.get();
  begun_ = op.seq + 1;
  if (running_.on_board != nullptr) return board_->begin(op);  // which shows the signature to the others
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
    inline_done_ = true;  // nothing was queued before it began, and what was since has set has_requests_
  } else {
    look_again_ = true;
    end(running_.op().id, nullptr);
  }
  if (running_.on_board != nullptr) return;
  if (running_.over_links.runs_ahead()) look_up();
  if (running_.over_links.deferred().any() && !lane_timer_set_.exchange(true)) control_->set_timer(kSpeakUpNs);
}

/// A rank that only sends never waits: so now and then it looks whether the others are still there, and what they say.
void HostGroup::look_up() {
  const int64_t now = now_ns();
  if (now - looked_up_ns_ < kLookUpNs) return;
  looked_up_ns_ = now;
  control_->poll(*this);
  compare_late();
}

/// Compares what has come by now from the others about operations in which this rank only sent.
void HostGroup::compare_late() {
  if (board_) board_->compare_posted();
  auto& pending = running_.over_links.pending();
  for (int peer = 0; pending.any() && peer < size_; ++peer) {
    try {
      if (pending.from(peer) > 0) pending.settle(rank_, peer, *links_[peer]);
    } catch (const Failure& failure) {
      if (failure.code == FailureCode::Mismatch) throw;
      pending.forget(peer);  // a rank that is lost is noticed by those who need it
    }
  }
}

/// Says what has been kept back, when nothing else is to be done. True if that is to be tried again.
bool HostGroup::speak_up() {
  if (poison_) return false;
  running_.over_links.speak_up(links_);
  return running_.over_links.deferred().any();
}

/// The ranks that are here and have not said everything yet about operations in which this one only sent.
void HostGroup::find_owing(std::vector<int>& ranks) {
  ranks.clear();
  if (board_) board_->not_posted(ranks);
  const auto& pending = running_.over_links.pending();
  for (int peer = 0; pending.any() && peer < size_; ++peer) {
    if (pending.from(peer) > 0) ranks.push_back(peer);
  }
  std::erase_if(ranks, [&](int peer) { return !diagnosis_.is_here(peer); });
}

/// Waits for what the others still have to say of operations in which this rank only sent, as long as they may take for
/// it: afterwards nobody would hear that they disagree. And a socket that is closed before that cuts off what it sent last.
void HostGroup::settle() {
  if (!control_) return;
  const int64_t board_deadline_ns = board_ ? now_ns() + board_->op().timeout_ns : 0;
  const int64_t deadline_ns = std::max(board_deadline_ns, running_.over_links.pending().deadline_ns());
  std::vector<int> owing;
  while (!poison_ && !stop_ && !has_requests_) {
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
  const int spins = has_core_each_ ? kSpins : 0;  // where ranks share a core, the others cannot answer meanwhile
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
  // What a rank sent before it left or died still counts, so look once more after the news.
  if (advance_all() || !busy()) return;
  const int64_t deadline_ns = earliest_deadline();
  check_waiting(idle, who, now, deadline_ns);
  sleep(std::min(idle.next_question_ns, deadline_ns), who);
}

/// While a long message comes in over a slow network, whoever looks for every packet of it only takes the core away from
/// those who bring them.
bool HostGroup::back_off() {
  if (board_ || !running_.active || !p2p_->pending().empty() || running_.over_links.rest_ns() < kBackoffMinRestNs)
    return false;
  const timespec time{0, kBackoffNs};
  nanosleep(&time, nullptr);
  return true;
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
  // A collective in the queue is late, and the one that runs is what it waits for.
  if (now >= deadline_ns) throw diagnosis_.late(running_.op(), waiting, now);
}

/// Throws if a rank that is waited for is gone.
void HostGroup::check(const Op& op, const Signature& signature, const std::vector<int>& waiting, Idle& idle,
                      int64_t now) {
  const auto lost = [&](int peer) {
    const bool is_here = diagnosis_.is_here(peer);
    if (!is_here && op.verb == Verb::Send) return true;
    const bool is_local = hosts_->host_of(peer) == hosts_->host_of(rank_);  // shared memory ends with its rank
    const bool has_ended = op.is_point_to_point() ? p2p_->ended(peer) : links_[peer]->ended();
    return diagnosis_.is_lost(peer, is_local ? !is_here : has_ended, idle.since_ns, now, idle.next_question_ns);
  };
  // A receive from any rank waits for all others, and it is enough that one is left.
  if (op.verb != Verb::Recv || waiting.size() == 1) {
    const auto first = std::find_if(waiting.begin(), waiting.end(), lost);
    if (first != waiting.end()) throw diagnosis_.gone(*first, signature);
  } else if (std::all_of(waiting.begin(), waiting.end(), lost)) {
    throw Failure(
        FailureCode::PeerLost, rank_, waiting,
        "no other rank is left, but rank " + std::to_string(rank_) + " still waits in " + describe(signature, rank_));
  }
}

/// The ranks that are waited for may wait for others themselves: so in the end all are asked.
void HostGroup::ask(const Op& op, const Signature& signature, const std::vector<int>& waiting, int64_t now) {
  if (op.is_point_to_point() || now < last_question_ns(op))
    diagnosis_.ask(*control_, waiting, signature, now);
  else
    diagnosis_.ask_all(*control_, signature, now);
}

/// Between hosts only the numbers of labels travel with operations: those of which this rank does not know the text are asked for.
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

/// Several ranks may notice a failure at once, each in its own way, but all are to report the same root cause. So a
/// failure is reported to the lowest rank that is there; that one takes the first report and tells everybody.
void HostGroup::report(Failure failure) {
  if (poison_) return end_everything();
  const int lowest = diagnosis_.lowest_here();
  if (lowest == rank_) return decide(std::move(failure));
  control_->report(lowest, failure);
  report_ = std::move(failure);
  root_cause_deadline_ns_ = now_ns() + kRootCauseNs;
}

/// Nothing moves until the group knows what has happened to it.
void HostGroup::await_root_cause() {
  while (!poison_ && !stop_) {
    control_->poll(*this);
    const int64_t left = root_cause_deadline_ns_ - now_ns();
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
  if (poison_) return end_everything();
  auto cause = std::make_shared<const Failure>(std::move(failure));
  {
    std::lock_guard lock(mutex_);
    poison_ = cause;
  }
  if (dump_) dump_->write(cause->text);  // before the program hears of it, and perhaps ends
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
  {
    std::lock_guard lock(mutex_);
    for (auto* queue : {&p2p_queue_, &queue_}) {
      for (const Op& op : *queue) fail(op, false);
      queue->clear();
    }
  }
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
    std::lock_guard lock(mutex_);
    if (!loss_) {
      loss_ = std::make_shared<const Failure>(diagnosis_.gone(peer, {}));
      lost_ns_ = now_ns();
    }
  }
  if (report_) report(*report_);  // it may have been the one to decide
}

void HostGroup::on_garbage(int peer) {
  if (diagnosis_.distrusted(peer, "it sent something that is no ringwise frame") && report_) report(*report_);
}

/// A late rank's question: it names the operation that it is in. If this rank ran another one at that place of the
/// sequence, the two will never meet.
void HostGroup::on_question(int peer, const Signature& signature) {
  if (auto failure = diagnosis_.conflict(peer, signature)) {
    // The text of the peer's label would have to be asked for, which cannot be done inside `poll`.
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
