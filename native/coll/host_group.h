// The host backend of one rank: operations over shared memory and TCP, run by a progress thread of its own, the
// lane, or by the calling thread when the lane has nothing to do.
//
// Threads. The owner's thread calls every public function. The engine (links, control connections, running
// operations) belongs to whoever holds `engine_`: the lane, or the owner's thread inside `run`. The queue and the
// list of ended operations are shared under `mutex_`. Nothing here knows Node; `notify` is called on the lane.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "coll/control.h"
#include "coll/execution.h"
#include "coll/transport/bootstrap.h"

namespace ringwise::coll {

/// How an operation ended. `failure` is null on success; otherwise the root cause, the same for the whole group.
struct Ended {
  uint64_t id;
  std::shared_ptr<const Failure> failure;
};

class HostGroup final : private ControlEvents {
 public:
  /// Listens on `host` at once; the lane starts with `connect`. `notify` says that `take_ended` has something.
  HostGroup(int rank, int size, const std::string& host, std::function<void()> notify);
  /// Ends the lane, whatever it is doing; what is pending never ends. Peers see a lost rank unless `close` came first.
  ~HostGroup() override;

  const Listener& listener() const { return listener_; }

  /// Starts the lane and lets it connect with all peers. Ends like an operation. Called once.
  uint64_t connect(std::vector<PeerAddress> peers, int64_t timeout_ns);

  /// Queues an operation; returns its id. Never blocks.
  uint64_t start(Op op);

  /// Runs an operation to its end on the calling thread; null on success.
  std::shared_ptr<const Failure> run(Op op);

  /// Blocks until the operation has ended. Its `Ended` is still to be taken.
  void wait(uint64_t id);

  /// Moves out what has ended since the last call, in order of ending.
  void take_ended(std::vector<Ended>& ended);

  /// Fails everything pending, here and on all ranks.
  void abort(const std::string& text);

  /// Says goodbye once everything pending has ended, then ends the lane. Ends like an operation.
  uint64_t close();

 private:
  struct Running {
    Execution execution;
    bool inline_run = false;  // by `run`, which takes its end from inline_done_
  };
  enum class Liveness : uint8_t { Alive, Left, Dead };
  struct PeerState {
    Liveness liveness = Liveness::Alive;
    std::string reason;
    std::optional<Activity> activity;  // its last answer
  };
  struct Idle {  // how long the engine has been without progress
    int rounds = 0;
    int64_t since_ns = 0;
    int64_t next_question_ns = 0;
  };

  void lane_main();
  void meet(const std::vector<PeerAddress>& peers, int64_t deadline_ns);
  void build_links(Connections connections);

  // Engine: the holder of `engine_` only.
  void pump(const Op* inline_op);
  bool admit();
  bool must_wait(const Op& op, size_t before) const;
  bool advance_all();
  void idle(Idle& idle, bool inline_run);
  void sleep(int64_t until_ns, bool inline_run);
  void check_waiting(Idle& idle, int64_t now, int64_t deadline_ns);
  int64_t earliest_deadline();
  void begin(const Op& op, bool inline_run);
  void finish(size_t index);
  void report(Failure failure);
  void await_verdict();
  void decide(Failure failure);
  void poison(Failure failure);
  void end_everything();
  Failure gone(int peer, const Execution& execution) const;
  Failure timeout_failure(const Execution& execution, const std::vector<int>& waiting, int64_t now) const;
  void remember(const Signature& signature);

  void on_report(int peer, Failure failure) override;
  void on_poison(int peer, Failure failure) override;
  void on_left(int peer) override;
  void on_dead(int peer, const char* reason) override;
  void on_question(int peer, const Signature& signature) override;
  void on_activity(int peer, const Activity& activity) override;

  // Any thread.
  uint64_t enqueue(Op op);
  void end(uint64_t id, std::shared_ptr<const Failure> failure);
  void wake_lane();
  bool has_work();

  const int rank_;
  const int size_;
  Listener listener_;  // open until everybody has come; its descriptors belong to the lane
  const std::function<void()> notify_;
  Fd wake_;  // eventfd: ends the lane's sleep

  std::mutex engine_;
  std::unique_ptr<Control> control_;                     // engine; null until connected
  Segment segment_;                                      // engine; outlives links_
  Links links_;                                          // engine
  std::atomic<uint32_t>* my_sleeping_ = nullptr;         // in segment_, null without one
  std::atomic<uint32_t>* alarm_ = nullptr;               // the same
  std::vector<PeerState> peer_states_;                   // engine
  std::vector<std::unique_ptr<Running>> running_;        // engine; either one collective, or sends and receives
  std::vector<std::unique_ptr<Running>> spare_;          // engine; kept for reuse
  std::vector<Signature> history_;                       // engine; the last collectives by seq modulo its size
  Activity last_;                                        // engine; what this rank runs or ran last
  bool inline_done_ = false;                             // engine
  bool look_again_ = false;                              // engine; something ended that the queue may have waited for
  std::optional<Failure> report_;                        // engine; noticed here, not decided yet
  int64_t verdict_deadline_ns_ = 0;                      // engine
  std::shared_ptr<const Failure> poison_;                // written once by the engine's holder, under mutex_

  std::mutex mutex_;
  std::condition_variable ended_condition_;
  std::deque<Op> queue_;                                 // mutex_
  std::vector<Ended> ended_;                             // mutex_; not taken yet
  uint64_t next_id_ = 1;                                 // mutex_
  uint64_t closing_id_ = 0;                              // mutex_; not zero once close has been called
  std::optional<std::string> abort_text_;                // mutex_; to be handled by the lane

  std::atomic<bool> has_requests_{false};  // the queue, closing_id_ or abort_text_ has something the lane has not seen
  std::atomic<bool> lane_sleeps_{false};
  std::atomic<int> waiters_{0};  // threads in `wait`; counted under mutex_, read by the lane
  std::atomic<bool> stop_{false};
  std::thread lane_;  // last member: joined before anything it uses goes
};

}  // namespace ringwise::coll
