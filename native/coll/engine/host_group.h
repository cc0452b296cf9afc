// The host backend of one rank: operations over shared memory and TCP, run by a progress thread of its own, the
// lane, or by the calling thread when the lane has nothing to do.
//
// Threads. The owner's thread calls every public function. The engine (links, control connections, running
// operations) belongs to the thread that holds the mutex `engine_`: the lane, or the owner's thread inside `start`,
// `run` and `wait`. The requests and the ended operations are in `requests_`, which any thread may use. Nothing here
// depends on Node; `notify` is called on the thread that ends an operation, mostly the lane.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/time/clock.h"
#include "coll/engine/core_sharing.h"
#include "coll/engine/execution.h"
#include "coll/engine/request_queue.h"
#include "coll/failure/control.h"
#include "coll/failure/diagnosis.h"
#include "coll/failure/last_calls.h"
#include "coll/flight/flight_dump.h"
#include "coll/flight/flight_recorder.h"
#include "coll/p2p/p2p.h"
#include "coll/shm/board_execution.h"
#include "coll/transport/bootstrap.h"

namespace ringwise::coll {

class HostGroup final : private ControlEvents {
 public:
  /// Listens on `host` at once; `connect` starts the lane. `notify` is called when `take_ended` has something to
  /// return.
  HostGroup(int rank, int size, const std::string& host, std::function<void()> notify);
  /// Ends the lane, even in the middle of an operation; pending operations never end. Peers see a lost rank unless
  /// `close` was called before and has ended.
  ~HostGroup() override;

  const Listener& listener() const { return listener_; }

  /// Returns the record of this rank's latest calls and their outcomes. Any thread may read it at any time.
  const FlightRecorder& flight() const { return flight_; }

  /// Makes the group write the flight record to a file when it fails or the process gets SIGUSR2; see FlightDump. Call
  /// it before `connect`.
  void dump_flight_to(std::string path, std::string head) { dump_.emplace(flight_, std::move(path), std::move(head)); }

  /// Sets the function that returns the source location of the owner's current call. It is called on the owner's
  /// thread, inside `start` and `run`: when `run` waits for long, and otherwise so seldom that it takes at most a
  /// twentieth of the time.
  void locate_calls_by(std::function<std::string()> where);

  /// Returns the memory for buffers on which the ranks of this host work in place; null if there is none. Call it on
  /// the owner's thread after the group has connected. The arena may outlive the group.
  const std::shared_ptr<Arena>& arena() const { return board_context_.arena; }

  /// Starts the lane, which connects to all peers. Ends like an operation with the returned id. Called once.
  uint64_t connect(std::vector<PeerAddress> peers, int64_t timeout_ns);

  /// Tells when the lane makes progress on a started operation. `Later`: the caller will call `wait` or
  /// `request_progress`; until then, the lane of an oversubscribed host advances it only about once per millisecond.
  enum class Progress { AtOnce, Later };

  /// Queues an operation and returns its id. Never blocks.
  uint64_t start(Op op, Progress progress = Progress::AtOnce);

  /// Makes the lane work on the started operations at full speed, for callers that wait for them without `wait`.
  void request_progress();

  /// Blocks until the operation has ended, which mostly runs on the calling thread; returns null on success. For a
  /// receive, `source` is set to the sender.
  std::shared_ptr<const Failure> run(Op op, int* source = nullptr);

  /// Blocks until the operation has ended. `take_ended` still returns its `Ended` afterwards.
  void wait(uint64_t id);

  /// Moves out the operations that have ended since the last call, in order of ending.
  void take_ended(std::vector<Ended>& ended) { requests_.take_ended(ended); }

  /// Fails all pending operations on all ranks, with `text` as the reason.
  void abort(const std::string& text);

  /// Returns why collectives of all ranks cannot go on, or null if they can: the root cause once the group has failed,
  /// or the loss of a rank whose connection ended without a goodbye. Such a loss fails no operation until one needs
  /// that rank. Any thread.
  std::shared_ptr<const Failure> failure();

  /// Says goodbye to the peers once all pending operations have ended, then ends the lane. Ends like an operation with
  /// the returned id, and with a mismatch if one became known after the last operation.
  uint64_t close();

 private:
  struct Running {
    Execution over_links;
    BoardExecution* on_board = nullptr;  // null for an operation over links
    bool active = false;
    bool inline_run = false;  // started by `run` itself, which reads inline_done_ instead of an `Ended`

    /// Tells the other ranks that the operation has begun here, without moving much data.
    void announce(Links& links) {
      if (on_board != nullptr)
        on_board->announce();
      else
        over_links.advance(links);
    }
    /// Sets the deadline if it has not been set.
    void start_clock() {
      if (op().deadline_ns == 0) op().deadline_ns = now_ns() + op().timeout_ns;
    }
    bool advance(Links& links) { return on_board != nullptr ? on_board->advance() : over_links.advance(links); }
    bool done() const { return on_board != nullptr ? on_board->done() : over_links.done(); }
    const char* algorithm() const { return on_board != nullptr ? on_board->algorithm() : over_links.algorithm(); }
    Op& op() { return on_board != nullptr ? on_board->op() : over_links.op(); }
    const Op& op() const { return on_board != nullptr ? on_board->op() : over_links.op(); }
    const Signature& signature() const { return on_board != nullptr ? on_board->signature() : over_links.signature(); }
    void waiting_for(std::vector<int>& ranks) const {
      if (on_board != nullptr)
        on_board->waiting_for(ranks);
      else
        over_links.waiting_for(ranks);
    }
  };
  struct Idle {  // how long the engine has been without progress
    int rounds = 0;
    int64_t since_ns = 0;
    int64_t next_question_ns = 0;
  };

  enum class Who { Lane, Waiter, Caller };

  static constexpr int kSpins = 200;  // rounds that a waiting thread spins before it yields or sleeps

  void lane_main();
  void wait_for_wake(int timeout_ms);
  bool leave();
  void meet(const std::vector<PeerAddress>& peers, int64_t deadline_ns);
  void build_links(Connections connections);

  // Engine: the holder of `engine_` only.
  void pump(Who who, const Op* op = nullptr);
  void drive(std::unique_lock<std::mutex>& engine, Who who, const Op* op = nullptr);
  bool nudge();
  bool run_on_board(Op& op);
  bool admit();
  bool advance_all();
  void idle(Idle& idle, Who who);
  bool back_off();
  void sleep(int64_t until_ns, Who who);
  void check_waiting(Idle& idle, Who who, int64_t now, int64_t deadline_ns);
  void check(const Op& op, const Signature& signature, const std::vector<int>& waiting, Idle& idle, int64_t now);
  void ask(const Op& op, const Signature& signature, const std::vector<int>& waiting, int64_t now);
  int64_t earliest_deadline();
  bool busy() const { return running_.active || (p2p_ && !p2p_->pending().empty()); }
  void begin(const Op& op, bool inline_run);
  void begin_collective(const Op& op, bool inline_run);
  void finish_collective();
  void look_up();
  void compare_late();
  bool speak_up();
  void find_owing(std::vector<int>& ranks);
  void settle();
  void finish_p2p(const PointToPoint::Pending& pending);
  Failure reason_of(const Failure& failure);
  Failure with_labels(Failure failure);
  void report_conflict();
  void report(Failure failure);
  void await_root_cause();
  void decide(Failure failure);
  void poison(Failure failure);
  void end_everything();

  void on_report(int peer, Failure failure) override;
  void on_poison(int peer, Failure failure) override;
  void on_left(int peer) override;
  void on_dead(int peer, const char* reason) override;
  void on_garbage(int peer) override;
  void on_question(int peer, const Signature& signature) override;
  void on_activity(int peer, const Activity& activity) override;
  void on_label_question(int peer, uint64_t label) override;

  // Owner's thread.
  void enqueue(Op& op);
  std::shared_ptr<const Failure> told();
  void locate(uint32_t record);
  /// Records the source location of the call if that is due; `now` is in ticks of the recorder's clock.
  void locate_if_due(uint32_t record, int64_t now) {
    if (now >= next_site_) locate(record);
  }

  // Any thread.
  void end(uint64_t id, std::shared_ptr<const Failure> failure, int source = -1);
  void wake_lane();

  const int rank_;
  const int size_;
  Listener listener_;  // open until all peers have connected; its descriptors belong to the lane
  RequestQueue requests_;
  Fd wake_;  // eventfd: ends the lane's sleep
  FlightRecorder flight_;
  const LastCalls last_calls_{flight_, size_};
  std::optional<FlightDump> dump_;  // not written to once the lane runs

  std::function<std::string()> where_;  // owner's thread; may be empty
  int64_t next_site_;                   // owner's thread; when `where_` may be called again, by the recorder's clock
  int64_t next_site_ns_ = 0;            // owner's thread; the same by the monotonic clock
  uint32_t blocking_ = 0;               // owner's thread; the record of the operation that `run` runs

  std::mutex engine_;
  std::unique_ptr<Control> control_;              // engine; null until connected
  Segment segment_;                               // engine; outlives links_
  Links links_;                                   // engine
  std::unique_ptr<Hosts> hosts_;                  // engine; null until connected
  Choices choices_;                               // engine
  BoardContext board_context_;                    // engine; has a board only if all ranks are on one host
  std::unique_ptr<BoardExecution> board_;         // engine; null without a board
  std::atomic<uint32_t>* my_sleeping_ = nullptr;  // in segment_, null without one
  std::atomic<uint32_t>* alarm_ = nullptr;        // in segment_, null without one
  Diagnosis diagnosis_;                           // engine
  Running running_;                               // engine; the collective, if one is active
  std::unique_ptr<PointToPoint> p2p_;             // engine; null until connected
  uint64_t begun_ = 0;                            // engine; collectives begun so far
  CoreSharing sharing_;                           // engine
  bool inline_done_ = false;                      // engine
  uint64_t driven_id_ = 0;                        // engine; the operation that `wait` drives, 0 when it has ended
  bool oversubscribed_ = false;                   // written, like the next member, before the group is connected
  bool has_core_each_ = false;                    // this host has at least as many cores as ranks
  int inline_source_ = -1;                        // engine; the sender, of a receive that `run` ran itself
  bool look_again_ = false;                       // engine; a collective has ended, so the next queued one may begin
  int64_t looked_up_ns_ = 0;                      // engine; when look_up last polled the control connections
  std::optional<Failure> report_;                 // engine; a failure noticed here, before the root cause is decided
  std::optional<Failure> conflict_;               // engine; a disagreement found through a question, not reported yet
  int64_t root_cause_deadline_ns_ = 0;            // engine
  std::shared_ptr<const Failure> poison_;         // written once by the engine's holder, under loss_mutex_
  std::atomic<bool> is_told_{false};              // an operation has ended with poison_

  std::mutex loss_mutex_;
  std::shared_ptr<const Failure> loss_;  // loss_mutex_; the loss of the first rank that ended without a goodbye
  int64_t lost_ns_ = 0;                  // loss_mutex_; when loss_ was noticed

  std::atomic<bool> lane_sleeps_{false};
  std::atomic<bool> lane_timer_set_{false};  // the lane wakes by timer to advance pending operations
  std::atomic<bool> progress_requested_{false};
  std::atomic<int> drivers_{0};  // threads that pump, or are about to, in the lane's place
  std::atomic<bool> stop_{false};
  std::thread lane_;  // last member, so that nothing the lane uses is destroyed before it
};

}  // namespace ringwise::coll
