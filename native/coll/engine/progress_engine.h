// Begins and advances the operations of one rank over its links, its board and the control connections. It has no
// thread of its own: the thread that drives a group, its lane or a thread that waits, calls `pump` until nothing is
// left or it must go. Failures are thrown inside and end at the failure protocol, which tells all ranks.
//
// Threads. Only the thread that owns the engine, which holds HostGroup's mutex, uses this object, except where a
// function says otherwise.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "coll/engine/core_sharing.h"
#include "coll/engine/lane_signals.h"
#include "coll/engine/request_queue.h"
#include "coll/engine/running.h"
#include "coll/failure/failure_protocol.h"
#include "coll/flight/flight_recorder.h"
#include "coll/p2p/p2p.h"
#include "coll/transport/bootstrap.h"

namespace ringwise::coll {

/// The thread that drives the engine: the lane, a thread that waits for a queued operation, or one that runs its own.
enum class Driver { Lane, Waiter, Caller };

class ProgressEngine {
 public:
  /// The arguments that are references outlive this object. `on_long_wait` is called when a driver other than the lane
  /// has waited for long, and then about once per second. If it returns false, the driver gives up, and this rank
  /// counts as lost.
  ProgressEngine(int rank, int size, RequestQueue& requests, FlightRecorder& flight, FailureProtocol& failures,
                 LaneSignals& signals, std::function<bool()> on_long_wait);

  /// Takes ownership of the connections to all ranks. Throws std::system_error.
  void connect(Connections connections, Choices choices);
  bool is_connected() const { return control_ != nullptr; }
  /// Says goodbye to the peers, discards the messages that have arrived, and closes all links.
  void leave();

  /// Returns the memory for buffers on which the ranks of this host work in place; null if there is none.
  const std::shared_ptr<Arena>& arena() const { return board_context_.arena; }
  /// Returns whether reproducible reductions of this verb run here: on the board, where one rank reads the elements of
  /// all.
  bool reproduces(Verb verb) const { return board_ != nullptr && !choices_.has(verb); }
  /// Returns whether this host has fewer than two cores per rank. Any thread, after the group has connected.
  bool is_oversubscribed() const { return oversubscribed_; }

  /// Returns whether operations have begun here and have not ended.
  bool is_busy() const { return running_.active || (p2p_ && !p2p_->pending().empty()); }
  /// Returns whether `pump` would find something to do.
  bool has_work() const { return is_busy() || look_again_ || requests_.has_news(); }

  /// Begins and advances operations. A Caller stays until its operation, `op` or the one that runs, has ended; a Waiter
  /// until the one named by `wait_for` has ended. The lane stays until no operation is left or another thread takes
  /// over; on an oversubscribed host where no thread waits, it returns when nothing moves.
  void pump(Driver driver, const Op* op = nullptr);
  /// Begins the queued operations, announces them to the other ranks, and advances small ones. Returns false if one
  /// failed. Sets the lane's timer, so that the lane advances them later if no thread waits for them before.
  bool nudge();
  /// Begins the queued operations and advances them until the one named `id` has ended or the time is `until_ns`,
  /// without sleeping. Stops before a collective that would hold the calling thread for long, and at a failure.
  void attempt(uint64_t id, int64_t until_ns);
  /// Runs a collective on the board without clock or queue, for ranks that call it at about the same time. Returns true
  /// if it has ended, and sets `ended` to the time in ticks of the flight recorder's clock; otherwise `pump` continues
  /// it if it is active, or begins it. The operation's record is set once the flight recorder has it.
  bool run_on_board(Op& op, int64_t& ended);
  /// Prepares for an operation of a blocking call, which ends by `inline_result` instead of an `Ended`.
  void expect_inline() { inline_done_ = false, inline_source_ = -1; }
  /// Sets the deadline of the active collective, which began without a clock. Returns false if none is active.
  bool start_clock();
  struct Inline {
    bool is_done;  // it has ended well
    int source;    // the sender, of a receive; else -1
  };
  Inline inline_result() const { return {inline_done_, inline_source_}; }
  /// Names the operation that a Waiter drives; 0: none.
  void wait_for(uint64_t id) { driven_id_ = id; }

  /// Sends the deferred handshakes that the links have room for. Returns true if some are left.
  bool send_deferred();
  /// Waits for the pending posts and handshakes of operations in which this rank only sent, until their deadline. Once
  /// the group is closed, a disagreement could not be reported any more. Also, a socket that is closed over unread
  /// bytes cuts off the last data that it sent.
  void settle();
  /// Sleeps until something happens on a control connection, `signals.wake` is written, a timer ends, or the time is
  /// over.
  void wait_idle(int64_t timeout_ns) { control_->wait_idle(timeout_ns); }

  /// Ends all operations, begun and queued, with the root cause.
  void end_all();
  /// Notes the memory of the running operation that other ranks may write at any later time, for take_exposed(). Call
  /// it before the operation ends with a failure or is abandoned.
  void note_exposed();
  /// Returns the memory that note_exposed() has noted, once. Any thread, after an operation has ended with a failure.
  std::span<const std::byte> take_exposed() {
    if (exposed_data_.load(std::memory_order_acquire) == nullptr) return {};
    return {exposed_data_.exchange(nullptr), exposed_bytes_};
  }
  /// Returns what this rank works on.
  Work work() const;
  /// Ends a request with this outcome.
  void end(uint64_t id, std::shared_ptr<const Failure> failure, int source = -1);

 private:
  struct Idle {  // how long the engine has been without progress
    int rounds = 0;
    int64_t since_ns = 0;
    int64_t next_question_ns = 0;
  };

  // Operations: progress_engine.cc.
  bool admit();
  void begin(const Op& op, bool inline_run);
  void begin_collective(const Op& op, bool inline_run);
  bool advance_all();
  void finish_collective();
  void finish_p2p(const PointToPoint::Pending& pending);
  void report_caught();
  bool takes_long(const Op& op) const;
  void poll_while_sending();
  void compare_late();
  void find_owing(std::vector<int>& ranks);

  // Waiting: progress_engine_wait.cc.
  void idle(Idle& idle, Driver driver);
  bool back_off();
  void sleep(int64_t until_ns, Driver driver);
  void check_waiting(Idle& idle, Driver driver, int64_t now, int64_t deadline_ns);
  void check(const Op& op, const Signature& signature, const std::vector<int>& waiting, Idle& idle, int64_t now);
  void ask(const Op& op, const Signature& signature, const std::vector<int>& waiting, int64_t now);
  int64_t earliest_deadline() const;

  static constexpr int kSpins = 200;  // rounds that a waiting thread spins before it yields or sleeps

  const int rank_;
  const int size_;
  RequestQueue& requests_;
  FlightRecorder& flight_;
  FailureProtocol& failures_;
  LaneSignals& signals_;
  const std::function<bool()> on_long_wait_;

  std::unique_ptr<Control> control_;  // null until connected; the lane also sleeps in it without owning the engine
  Segment segment_;                   // outlives links_
  Links links_;
  std::unique_ptr<Hosts> hosts_;  // null until connected
  Choices choices_;
  BoardContext board_context_;                    // has a board only if all ranks are on one host
  std::unique_ptr<BoardExecution> board_;         // null without a board
  std::atomic<uint32_t>* my_sleeping_ = nullptr;  // in segment_, null without one
  std::atomic<uint32_t>* alarm_ = nullptr;        // in segment_, null without one
  Running running_;                               // the collective, if one is active
  std::unique_ptr<PointToPoint> p2p_;             // null until connected
  uint64_t begun_ = 0;                            // collectives begun so far
  CoreSharing sharing_;
  std::atomic<size_t> exposed_bytes_{0};  // written before exposed_data_
  std::atomic<const std::byte*> exposed_data_{nullptr};
  bool inline_done_ = false;     // the operation of a blocking call has ended well
  int inline_source_ = -1;       // the sender, of a receive that a blocking call ran itself
  uint64_t driven_id_ = 0;       // the operation that a Waiter drives, 0 when it has ended
  bool look_again_ = false;      // a collective has ended, so the next queued one may begin
  int64_t polled_ns_ = 0;        // when poll_while_sending last polled the control connections
  bool oversubscribed_ = false;  // written, like the next member, by `connect`
  bool has_core_each_ = false;   // this host has at least as many cores as ranks
};

}  // namespace ringwise::coll
