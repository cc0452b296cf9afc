// Agrees on one root cause of a failure among the ranks of a group, and keeps their knowledge of lost ranks.
//
// Several ranks may notice a failure at once, with different symptoms. Each reports its symptom to the lowest live
// rank, which takes the first report as the root cause and announces it to all. If that rank dies, the next one
// decides; if it does not answer in time, the reporting rank does. The root cause never changes again; every operation
// of the group ends with it from then on. A rank that closes the group says goodbye; a connection that ends without a
// goodbye is a loss, which fails no operation until one needs that rank.
//
// Threads. Only the thread that owns the engine uses this object, except where a function says otherwise.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "coll/failure/control.h"
#include "coll/failure/diagnosis.h"
#include "coll/failure/failure.h"

namespace ringwise::coll {

/// The present work of a rank, for the ranks that ask for it.
struct Work {
  uint32_t record = 0;  // of the flight recorder; 0: nothing
  uint64_t begun = 0;   // collectives that it has begun
};

class FailureProtocol final : private ControlEvents {
 public:
  /// Functions of the engine that the protocol calls, on the thread that owns the engine.
  struct Hooks {
    /// Called once, when the root cause is known, before any operation ends with it.
    std::function<void(const Failure&)> decided;
    /// Ends all operations with `cause()`; called whenever some may be left.
    std::function<void()> end_all;
    /// Returns what this rank works on.
    std::function<Work()> work;
  };

  /// `flight` is this rank's; it and `stop` outlive this object. `stop` ends every wait.
  FailureProtocol(int rank, int size, const FlightRecorder& flight, const std::atomic<bool>& stop, Hooks hooks);

  /// Sets the connections to the other ranks, and the alarm that the ranks of a host share, which may be null. Before
  /// that the protocol can only `fail`.
  void connect(Control& control, std::atomic<uint32_t>* alarm);
  /// Forgets the connections, before they end.
  void disconnect() { control_ = nullptr; }

  const Diagnosis& diagnosis() const { return diagnosis_; }
  Diagnosis& diagnosis() { return diagnosis_; }

  /// Returns the root cause; null while there is none.
  const std::shared_ptr<const Failure>& cause() const { return cause_; }
  /// Notes that an operation has ended with the root cause. Any thread.
  void note_reported() { is_reported_ = true; }
  /// Returns the root cause if it is a mismatch with which no operation has ended; null otherwise.
  std::shared_ptr<const Failure> unreported_mismatch() const;
  /// Returns why collectives of all ranks cannot continue, or null if they can: the root cause, or the loss of ranks,
  /// which names all that are lost so far. A loss is returned only after a short delay, because operations that need
  /// nothing more from that rank may still succeed. Any thread.
  std::shared_ptr<const Failure> known() const;
  /// Returns the loss of all ranks that are lost so far, also after a root cause; null if none is. Any thread.
  std::shared_ptr<const Failure> losses() const;

  /// Handles the frames that have arrived, without waiting.
  void poll() { control_->poll(*this); }
  /// Carries out requests of frames that could not be handled inside `poll`. Waits, at most a few hundred milliseconds,
  /// until the root cause of a reported failure is known.
  void resolve();
  /// Returns whether a frame showed a disagreement that `resolve` has yet to report.
  bool has_conflict() const { return conflict_.has_value(); }

  /// Makes a failure that this rank noticed known to all ranks.
  void report(Failure failure);
  /// Makes a failure the root cause on this rank only, without telling the others. The first root cause stays.
  void fail(Failure failure);

  /// Returns the failure to report in place of `failure`. A link that breaks during a send may be the first sign that
  /// the peer has left the group; the returned failure then names that reason. Adds the texts of labels to a mismatch.
  /// `running` is the collective in which it happened, or null.
  Failure reason_of(const Failure& failure, const Signature* running);

 private:
  void on_report(int peer, Failure failure) override;
  void on_poison(int peer, Failure failure) override;
  void on_left(int peer) override;
  void on_dead(int peer, const char* reason) override;
  void on_garbage(int peer) override;
  void on_question(int peer, const Signature& signature) override;
  void on_activity(int peer, const Activity& activity) override;
  void on_label_question(int peer, uint64_t label) override;

  void note_loss(int peer);
  Failure with_labels(Failure failure);
  void decide(Failure failure);
  void await_cause();

  const int rank_;
  const std::atomic<bool>& stop_;
  const Hooks hooks_;
  Diagnosis diagnosis_;
  Control* control_ = nullptr;  // the engine's; null until connected
  std::atomic<uint32_t>* alarm_ = nullptr;
  std::optional<Failure> report_;    // a failure noticed here, before the root cause is decided
  std::optional<Failure> conflict_;  // a disagreement found through a question, not reported yet
  int64_t cause_deadline_ns_ = 0;
  std::atomic<bool> is_reported_{false};

  mutable std::mutex mutex_;
  std::shared_ptr<const Failure> cause_;  // written once, by the engine's thread under mutex_
  std::shared_ptr<const Failure> loss_;   // mutex_; the loss of all ranks that ended without a goodbye or sent garbage
  int64_t lost_ns_ = 0;                   // mutex_; when the first of them was noticed
};

}  // namespace ringwise::coll
