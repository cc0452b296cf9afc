#include "coll/failure/failure_protocol.h"

#include <utility>

#include "base/time/clock.h"
#include "coll/handshake/labels.h"

namespace ringwise::coll {

namespace {

// Nanoseconds that the lowest rank has to announce the root cause.
constexpr int64_t kRootCauseNs = 250 * kMillisecond;
// Delay before known() reports a lost rank: operations that need nothing more from that rank may still succeed.
constexpr int64_t kLossNs = 100 * kMillisecond;
// Maximum number of lost ranks that the text of a loss names.
constexpr size_t kMaxNamed = 8;

}  // namespace

FailureProtocol::FailureProtocol(int rank, int size, const FlightRecorder& flight, const std::atomic<bool>& stop,
                                 Hooks hooks)
    : rank_(rank), stop_(stop), hooks_(std::move(hooks)), diagnosis_(rank, size, flight) {}

void FailureProtocol::connect(Control& control, std::atomic<uint32_t>* alarm) {
  control_ = &control;
  alarm_ = alarm;
}

std::shared_ptr<const Failure> FailureProtocol::unreported_mismatch() const {
  return cause_ && !is_reported_ && cause_->code == FailureCode::Mismatch ? cause_ : nullptr;
}

std::shared_ptr<const Failure> FailureProtocol::known() const {
  const std::lock_guard lock(mutex_);
  if (cause_ || !loss_ || now_ns() < lost_ns_ + kLossNs) return cause_;
  return loss_;
}

std::shared_ptr<const Failure> FailureProtocol::losses() const {
  const std::lock_guard lock(mutex_);
  return loss_;
}

void FailureProtocol::resolve() {
  // The texts of labels must be asked for first, which is not possible inside `poll`.
  if (conflict_) report(with_labels(*std::exchange(conflict_, std::nullopt)));
  if (report_) await_cause();
}

Failure FailureProtocol::reason_of(const Failure& failure, const Signature* running) {
  if (failure.code == FailureCode::Mismatch) return with_labels(failure);
  const bool is_news =
      failure.code == FailureCode::PeerLost && running != nullptr && diagnosis_.is_here(failure.peers.front());
  if (!is_news) return failure;
  const Signature signature = *running;
  poll();
  const int peer = failure.peers.front();
  return !cause_ && !diagnosis_.is_here(peer) ? diagnosis_.gone(peer, signature) : failure;
}

/// Returns the failure with the texts of labels in place of their numbers. Between hosts, signatures carry only the
/// numbers, so this rank asks the peers for unknown texts and waits up to kRootCauseNs.
Failure FailureProtocol::with_labels(Failure failure) {
  const int64_t deadline_ns = now_ns() + kRootCauseNs;
  uint64_t asked = 0;
  for (uint64_t label = unknown_label_in(failure.text); label != 0 && !cause_ && !stop_;
       label = unknown_label_in(failure.text)) {
    for (const int peer : failure.peers) {
      if (label != asked && peer != rank_) control_->ask_label(peer, label);
    }
    asked = label;
    poll();
    failure.text = with_known_labels(failure.text);
    if (now_ns() >= deadline_ns) break;
    if (unknown_label_in(failure.text) == label) control_->wait(kMillisecond);
  }
  return failure;
}

void FailureProtocol::report(Failure failure) {
  if (cause_) return hooks_.end_all();
  const int lowest = diagnosis_.lowest_here();
  if (lowest == rank_) return decide(std::move(failure));
  control_->report(lowest, failure);
  report_ = std::move(failure);
  cause_deadline_ns_ = now_ns() + kRootCauseNs;
}

/// Waits until the root cause is announced. Decides it here if that takes longer than kRootCauseNs.
void FailureProtocol::await_cause() {
  while (!cause_ && !stop_) {
    poll();
    if (cause_) break;
    const int64_t left = cause_deadline_ns_ - now_ns();
    if (left > 0)
      control_->wait(left);
    else
      decide(*report_);  // the lowest rank does not answer
  }
  report_.reset();
}

void FailureProtocol::decide(Failure failure) {
  control_->poison(failure);
  if (alarm_ != nullptr) alarm_->store(1);
  fail(std::move(failure));
}

void FailureProtocol::fail(Failure failure) {
  if (cause_) return hooks_.end_all();
  auto cause = std::make_shared<const Failure>(std::move(failure));
  {
    const std::lock_guard lock(mutex_);
    cause_ = cause;
  }
  hooks_.decided(*cause);
  hooks_.end_all();
}

void FailureProtocol::on_report(int, Failure failure) {
  if (!cause_) decide(std::move(failure));
}

void FailureProtocol::on_poison(int, Failure failure) { fail(std::move(failure)); }

void FailureProtocol::on_left(int peer) { diagnosis_.left(peer); }

void FailureProtocol::on_dead(int peer, const char* reason) {
  if (diagnosis_.died(peer, reason)) note_loss(peer);
}

void FailureProtocol::on_garbage(int peer) {
  if (diagnosis_.distrusted(peer, "it sent something that is no ringwise frame")) note_loss(peer);
}

void FailureProtocol::note_loss(int peer) {
  {
    Failure loss = diagnosis_.gone(peer, {});
    const std::lock_guard lock(mutex_);
    if (loss_) {
      Failure all = *loss_;
      all.peers.push_back(peer);
      if (all.peers.size() <= kMaxNamed) all.text += ", " + loss.text;
      loss = std::move(all);
    } else {
      lost_ns_ = now_ns();
    }
    loss_ = std::make_shared<const Failure>(std::move(loss));
  }
  if (report_) report(*report_);  // the lost rank may have been the lowest one, which was to decide
}

/// Answers the question of a waiting rank, which names its operation. If this rank ran a different operation with the
/// same sequence number, it reports the disagreement instead, because the two operations can never complete.
void FailureProtocol::on_question(int peer, const Signature& signature) {
  if (auto failure = diagnosis_.conflict(peer, signature)) {
    if (unknown_label_in(failure->text) == 0) return report(std::move(*failure));
    conflict_ = std::move(failure);
    return;
  }
  const Work work = hooks_.work();
  control_->answer(peer, diagnosis_.activity(work.record, work.begun, now_ns()));
}

void FailureProtocol::on_label_question(int peer, uint64_t label) { control_->answer_label(peer, label); }

void FailureProtocol::on_activity(int peer, const Activity& activity) { diagnosis_.answered(peer, activity, now_ns()); }

}  // namespace ringwise::coll
