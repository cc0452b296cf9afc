// The mpi backend of one rank. Collectives run one after another: all ranks agree about one (agreement.h), then MPI's
// function of that name moves the data (transfer.h). Messages go beside them (mailbox.h). What goes wrong is decided in
// one place: the lowest rank that is here, the arbiter, is told, and tells everybody.
//
// MPI offers no way to sleep until something comes, so whoever waits here asks again and again: a thread that waits for
// an operation, and otherwise a thread of the group's own, the lane, which also listens, now and then, while nothing
// is pending.
//
// Threads. The owner's thread calls every public function. The engine belongs to whoever holds `engine_`: the lane, or
// the owner's thread inside `run` and `wait`. The queue and the list of ended operations are shared under `mutex_`.
// Nothing here knows Node; `notify` is called by the engine's holder.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "coll/failure/failure.h"
#include "coll/op.h"
#include "mpi/channel/agreement.h"
#include "mpi/channel/channel.h"
#include "mpi/transfer.h"

namespace ringwise::mpi {

/// How an operation ended. `failure` is null on success; otherwise the root cause, the same for the whole group.
struct Ended {
  uint64_t id;
  std::shared_ptr<const coll::Failure> failure;
  int source = -1;       // of a receive that ended well: the sender
  bool is_lent = false;  // it failed, and MPI may go on using its memory for ever
};

class MpiGroup {
 public:
  MpiGroup(int rank, int size, std::function<void()> notify);
  /// Ends the lane, whatever it is doing; what is pending never ends. A group that has not been closed leaves now: the
  /// others need not wait for their deadline.
  ~MpiGroup();

  /// Starts the lane, which makes a communicator. `members` are the ranks of the group among all processes of MPI;
  /// `tag` tells groups apart that are made at the same time. Blocks the lane until all members have called it. Called
  /// once.
  uint64_t connect(std::vector<int> members, int tag);

  /// Queues an operation; returns its id. Never blocks.
  uint64_t start(coll::Op op);
  /// Runs an operation to its end on the calling thread.
  Ended run(coll::Op op);
  /// Blocks until the operation has ended. Its `Ended` is still to be taken.
  void wait(uint64_t id);
  /// Moves out what has ended since the last call, in order of ending.
  void take_ended(std::vector<Ended>& ended);
  /// Fails everything pending, here and on all ranks.
  void abort(const std::string& text);
  /// Says goodbye once everything pending has ended, then ends the lane. Ends like an operation.
  uint64_t close();

 private:
  /// A collective that this rank has begun.
  struct Running {
    Running(const coll::Op& op, MPI_Comm comm, int rank, int size, Outbox& outbox);
    coll::Op op;
    Agreement agreement;
    std::optional<Transfer> transfer;
    // allToAll: what each rank sends to this one, to be compared with what it expects; then all say that they are
    // content.
    std::vector<uint64_t> sent, announced;
    std::optional<Agreement> contentment;
    Request comparison;  // last member: it uses those before it
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
  bool has_ended(uint64_t id);

  const int rank_;
  const int size_;
  const std::function<void()> notify_;
  std::vector<int> members_;  // written before the lane starts
  int tag_ = 0;               // the same

  std::mutex engine_;
  std::unique_ptr<Channel> channel_;  // engine; null until connected
  std::deque<coll::Op> queued_;       // engine; collectives that have not begun
  std::unique_ptr<Running> running_;  // engine
  uint64_t called_ = 0;               // engine; collectives that this rank has called
  // A failure that was noticed here and reported, until the root cause comes or the time for it is over.
  std::optional<coll::Failure> reported_;  // engine
  int64_t root_cause_deadline_ns_ = 0;     // engine
  /// Of the arbiter: who has called the collective that somebody waited for too long.
  struct Participation {
    coll::Failure failure;
    uint64_t seq;
    std::vector<std::optional<uint64_t>> called;  // by rank
    int64_t deadline_ns;
  };
  std::optional<Participation> participation_;   // engine
  std::shared_ptr<const coll::Failure> poison_;  // engine
  bool has_left_ = false;                        // engine; well

  std::mutex mutex_;
  std::condition_variable wake_lane_;
  std::deque<coll::Op> requests_;          // mutex_
  std::vector<Ended> ended_;               // mutex_; not taken yet
  uint64_t next_id_ = 1;                   // mutex_
  uint64_t closing_id_ = 0;                // mutex_; not zero once close has been called
  std::optional<std::string> abort_text_;  // mutex_
  bool stop_ = false;                      // mutex_
  std::atomic<int> drivers_{0};            // threads that poll in the lane's place
  std::thread lane_;                       // last member: joined before anything it uses goes
};

}  // namespace ringwise::mpi
