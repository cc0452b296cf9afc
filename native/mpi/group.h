// The mpi backend of one rank. Collectives run one after another: all ranks agree on one (agreement.h), then MPI's
// function for the verb moves the data (transfer.h). Sends and receives run beside them (mailbox.h). One rank decides
// the root cause of a failure: the arbiter, the lowest rank that has not left. The others report failures to it, and it
// tells all ranks the root cause.
//
// MPI has no call that sleeps until a message arrives, so threads poll: a thread that waits for an operation, and
// otherwise the lane, the group's progress thread, which also polls now and then while no operation is pending.
//
// Threads. The owner's thread calls every public function. The engine belongs to the thread that holds the mutex
// `engine_`: the lane, or the owner's thread inside `run` and `wait`. The requests and the ended operations are in
// `requests_`, which any thread may use. Nothing here depends on Node; `notify` is called by the thread that holds the
// engine.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "coll/engine/request_queue.h"
#include "coll/failure/failure.h"
#include "coll/op.h"
#include "mpi/channel/agreement.h"
#include "mpi/channel/channel.h"
#include "mpi/transfer.h"

namespace ringwise::mpi {

using coll::Ended;

class MpiGroup {
 public:
  MpiGroup(int rank, int size, std::function<void()> notify);
  /// Ends the lane; pending operations never end. A group that has not been closed says goodbye now, so that the other
  /// ranks need not wait for their deadlines. Waits at most about a second for the other members of connect().
  ~MpiGroup();

  /// Starts the lane, which makes a communicator once all members have called connect(). `members` are the group's
  /// ranks in MPI_COMM_WORLD; `tag` distinguishes groups that are made at the same time. Ends like an operation with
  /// the returned id, with a Timeout if the other members do not call it within `timeout_ns`. Call it once; call run()
  /// and wait() only after it has ended.
  uint64_t connect(std::vector<int> members, int tag, int64_t timeout_ns);

  /// Queues an operation; returns its id. Never blocks.
  uint64_t start(coll::Op op);
  /// Runs an operation and blocks until it has ended.
  Ended run(coll::Op op);
  /// Blocks until the operation has ended. `take_ended` still returns its `Ended` afterwards.
  void wait(uint64_t id);
  /// Moves out the operations that have ended since the last call, in order of ending.
  void take_ended(std::vector<Ended>& ended) { requests_.take_ended(ended); }
  /// Fails all pending and later operations on all ranks with `failure`.
  void abort(coll::Failure failure) { requests_.abort(std::move(failure)); }
  /// Says goodbye once all pending operations have ended, then ends the lane. Ends like an operation with the returned
  /// id.
  uint64_t close() { return requests_.close(); }

 private:
  /// A collective that this rank has begun.
  struct Running {
    Running(const coll::Op& op, MPI_Comm comm, int rank, int size, Outbox& outbox);
    coll::Op op;
    Agreement agreement;
    std::optional<Transfer> transfer;
    // allToAll: elements that this rank sends to each rank, and that each rank announces to send to this one. When
    // `comparison` has exchanged them, `confirmation` lets all ranks confirm that their counts agree.
    std::vector<uint64_t> sent, announced;
    std::optional<Agreement> confirmation;
    Request comparison;  // last member: destroyed before `sent` and `announced`, which MPI uses
  };

  void lane_main();
  bool leave();
  void leave_at_last();

  // Engine: the holder of `engine_` only.
  bool poll();
  bool take_requests();
  bool listen();
  bool advance_collective();
  bool compare_parts();
  void check_losses();
  void check_deadlines(int64_t now);
  void report(coll::Failure failure, uint64_t seq_plus_1 = 0);
  void decide(const coll::Failure& failure, uint64_t seq_plus_1);
  void end_participation_query(int64_t now);
  void announce_root_cause(const coll::Failure& failure);
  void poison(const coll::Failure& failure);
  void end_everything();
  bool let_go_of_running();
  int arbiter() const;
  bool is_busy() const { return running_ || !queued_.empty() || (channel_ && !channel_->mailbox->pending().empty()); }

  // Any thread.
  uint64_t enqueue(coll::Op& op);
  void end(uint64_t id, std::shared_ptr<const coll::Failure> failure, int source = -1, bool is_lent = false);

  const int rank_;
  const int size_;
  coll::RequestQueue requests_;

  std::mutex engine_;
  std::unique_ptr<Channel> channel_;  // engine; null until connected
  std::deque<coll::Op> queued_;       // engine; collectives that have not begun
  std::unique_ptr<Running> running_;  // engine
  uint64_t called_ = 0;               // engine; collectives that this rank has called
  // A failure that this rank has reported, until the root cause arrives or root_cause_deadline_ns_ passes.
  std::optional<coll::Failure> reported_;  // engine
  int64_t root_cause_deadline_ns_ = 0;     // engine
  /// The arbiter's participation query: asks which ranks have called the collective that timed out.
  struct Participation {
    coll::Failure failure;
    uint64_t seq;
    std::vector<std::optional<uint64_t>> called;  // by rank
    int64_t deadline_ns;
  };
  std::optional<Participation> participation_;   // engine
  std::shared_ptr<const coll::Failure> poison_;  // engine; the root cause, once the group has failed
  bool has_left_ = false;                        // engine; this rank has said goodbye without a failure

  std::atomic<bool> stop_{false};
  std::atomic<int> drivers_{0};  // threads that poll in the lane's place
  std::thread lane_;             // last member, so that nothing the lane uses is destroyed before it
};

}  // namespace ringwise::mpi
