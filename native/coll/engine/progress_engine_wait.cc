// Waiting of the engine: it spins, yields and sleeps, and checks the ranks that it waits for.
#include <sched.h>

#include <algorithm>
#include <ctime>
#include <limits>

#include "base/os/barrier.h"
#include "base/pause.h"
#include "base/time/clock.h"
#include "coll/engine/progress_engine.h"
#include "coll/engine/waiting.h"

namespace ringwise::coll {

namespace {

// Without progress, the engine first spins, then yields, then sleeps in the kernel. The lane yields only a few times,
// because it may share its core with a program that computes. A thread of the program that waits anyway stays awake
// longer, which saves a wake-up that may cost a scheduler tick.
constexpr int kBusyYields = 4;
constexpr int kWaitingYields = 2000;
// Limits how long the engine yields: with more busy threads than cores, each yield lasts a scheduler slice of every
// other thread, and the engine does not notice a lost rank meanwhile.
constexpr int64_t kAwakeNs = 10 * kMillisecond;
// The same limit for links to other hosts: data that has not arrived by then will take longer, and the kernel may need
// the core to deliver it.
constexpr int64_t kAwakeForLinksNs = 200'000;

// Backoff during a long incoming message: the length of a sleep, the shortest remaining time that justifies one, and
// the maximum number of consecutive sleeps before the ordinary waiting begins.
constexpr int64_t kBackoffNs = 50'000;
constexpr int64_t kBackoffMinRestNs = 400'000;
constexpr int kBackoffRounds = 20;

// A rank that has been waiting this long asks the ranks it waits for what they are doing, and again at the second
// interval.
constexpr int64_t kFirstQuestionNs = 20 * kMillisecond;
constexpr int64_t kNextQuestionNs = 1'000 * kMillisecond;

}  // namespace

void ProgressEngine::idle(Idle& idle, Driver driver) {
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
  const int yields = driver == Driver::Lane ? kBusyYields : kWaitingYields;
  if (idle.rounds <= spins + yields && now - idle.since_ns < (board_ ? kAwakeNs : kAwakeForLinksNs)) {
    if (board_ && has_core_each_) sharing_.leave_shared_core(board_context_.board, rank_);
    sched_yield();
    if (!board_) sharing_.leave_slow_core(now);
    return;
  }
  failures_.poll();
  if (failures_.has_conflict()) return;
  send_deferred();
  compare_late();
  // Data that a rank sent before it left or died still counts, so try once more after the poll.
  if (advance_all() || !is_busy()) return;
  const int64_t deadline_ns = earliest_deadline();
  check_waiting(idle, driver, now, deadline_ns);
  sleep(std::min(idle.next_question_ns, deadline_ns), driver);
}

/// Sleeps kBackoffNs while a long message arrives over a slow network: polling for every packet would take the core
/// from the kernel threads that deliver them. Returns false if there is no such message.
bool ProgressEngine::back_off() {
  if (board_ || !running_.active || !p2p_->pending().empty() || running_.over_links.rest_ns() < kBackoffMinRestNs)
    return false;
  const timespec time{0, kBackoffNs};
  nanosleep(&time, nullptr);
  return true;
}

/// Returns the earliest deadline of all running and queued operations: a queued operation times out even while another
/// one runs.
int64_t ProgressEngine::earliest_deadline() const {
  int64_t earliest = std::numeric_limits<int64_t>::max();
  if (running_.active) earliest = running_.op().deadline_ns;
  for (const auto& pending : p2p_->pending()) earliest = std::min(earliest, pending.op.deadline_ns);
  return std::min(earliest, requests_.earliest_deadline());
}

/// Announces the sleep, tries to advance once more, then sleeps until `until_ns` at most. Returns at once if something
/// moved or was requested. The announcement comes before the last try, so that no wake-up is lost.
void ProgressEngine::sleep(int64_t until_ns, Driver driver) {
  if (driver == Driver::Lane) signals_.sleeps = true;
  if (my_sleeping_ != nullptr) my_sleeping_->store(1);
  if (board_context_.fences) os::barrier_everywhere();  // in place of barriers in the ranks that wake this one
  const bool moved = advance_all();
  const bool called = requests_.has_news() || (driver == Driver::Lane && signals_.drivers > 0);
  if (!moved && !called && !signals_.stop) {
    control_->wait(std::max<int64_t>(until_ns - now_ns(), 0));
  }
  if (my_sleeping_ != nullptr) my_sleeping_->store(0);
  if (driver == Driver::Lane && !signals_.sleeps.exchange(false)) signals_.wake.silence();
}

/// Checks the ranks that this one waits for: throws if one is lost, a deadline has passed or the driver's thread must
/// end, and asks them what they are doing when a question is due.
void ProgressEngine::check_waiting(Idle& idle, Driver driver, int64_t now, int64_t deadline_ns) {
  const bool is_question_due = now >= idle.next_question_ns;
  if (is_question_due && driver != Driver::Lane && !on_long_wait_()) {
    throw Failure(FailureCode::PeerLost, rank_, {rank_},
                  "lost rank " + std::to_string(rank_) + " (its thread was told to end in the middle of a call)");
  }
  idle.next_question_ns = is_question_due ? now + kNextQuestionNs : idle.next_question_ns;
  std::vector<int> waiting;
  const auto look = [&](const Op& op, const Signature& signature) {
    check(op, signature, waiting, idle, now);
    if (is_question_due) ask(op, signature, waiting, now);
    if (now >= op.deadline_ns) throw failures_.diagnosis().late(op, waiting, now);
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
  if (now >= deadline_ns) throw failures_.diagnosis().late(running_.op(), waiting, now);
}

/// Throws if a rank that this one waits for is gone.
void ProgressEngine::check(const Op& op, const Signature& signature, const std::vector<int>& waiting, Idle& idle,
                           int64_t now) {
  const auto lost = [&](int peer) {
    const bool is_here = failures_.diagnosis().is_here(peer);
    if (!is_here && op.verb == Verb::Send) return true;
    // Through shared memory, nothing more arrives once the rank is gone.
    const bool is_local = hosts_->host_of(peer) == hosts_->host_of(rank_);
    const bool has_ended = op.is_point_to_point() ? p2p_->ended(peer) : links_[peer]->ended();
    return failures_.diagnosis().is_lost(peer, is_local ? !is_here : has_ended, idle.since_ns, now,
                                         idle.next_question_ns);
  };
  // A receive from any rank waits for all other ranks, and fails only when all of them are lost.
  if (op.verb != Verb::Recv || waiting.size() == 1) {
    const auto first = std::find_if(waiting.begin(), waiting.end(), lost);
    if (first != waiting.end()) throw failures_.diagnosis().gone(*first, signature);
  } else if (std::all_of(waiting.begin(), waiting.end(), lost)) {
    throw Failure(
        FailureCode::PeerLost, rank_, waiting,
        "no other rank is left, but rank " + std::to_string(rank_) + " still waits in " + describe(signature, rank_));
  }
}

/// Asks the ranks in `waiting` what they are doing. Shortly before the deadline of a collective, asks all ranks,
/// because the ones that this rank waits for may themselves wait for others.
void ProgressEngine::ask(const Op& op, const Signature& signature, const std::vector<int>& waiting, int64_t now) {
  if (op.is_point_to_point() || now < last_question_ns(op))
    failures_.diagnosis().ask(*control_, waiting, signature, now);
  else
    failures_.diagnosis().ask_all(*control_, signature, now);
}

}  // namespace ringwise::coll
