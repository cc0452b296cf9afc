// The nccl backend of one rank: operations on the memory of one device, in call order on a stream of the group's own.
//
// An operation waits, on the device, for what its caller's stream has been given by then, and the caller's stream waits
// for the result where `fence` is called. So no thread waits for the device, except in `wait` and `run`. NCCL's calls
// do not block either: a communicator that is busy connecting says so, and what it was given counts as launched when it
// has done.
//
// NCCL knows no deadlines, does not say who is missing, and hangs when a rank dies. The host group of the same ranks
// does all that: JavaScript lets it run a small collective beside each of these (backends/nccl.ts), and whatever ends
// that group ends this one. The watchdog is the lane: it looks for that, for NCCL's asynchronous errors and for
// deadlines; it reads what NCCL noted last before it aborts the communicator, which frees the device. Operations end
// after that: until then, kernels may use their memory.
//
// Operations on a stream that is captured into a graph become part of that (capture.cc). They have no end that could be
// looked for: each run of the graph has, and is watched as an operation is. NCCL keeps what graphs have of a
// communicator, and waits for their owner to destroy them when it aborts one; the lane does not.
//
// Threads. The owner's thread calls every public function; the lane is this class's own. All state is under `mutex_`.
// What may take NCCL long, to make, leave and abort a communicator, the lane does without it, so that the owner never
// waits for that. Nothing here knows Node; `notify` is called without the mutex.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/time/clock.h"
#include "coll/failure/failure.h"
#include "coll/nccl/library.h"
#include "coll/nccl/registrations.h"
#include "coll/op.h"

namespace ringwise::nccl {

/// How an operation ended. `failure` is null on success.
struct Ended {
  uint64_t id;
  std::shared_ptr<const coll::Failure> failure;
  int source = -1;
};

/// How long the host group has to say who is missing, before what NCCL says counts: its failures and its own deadline.
inline constexpr int64_t kGrace = 500 * kMillisecond;

class NcclGroup {
 public:
  /// `cause` tells why the host group has failed, or null; any thread. Throws Failure where there is no device or
  /// library.
  NcclGroup(int rank, int size, int device, std::function<std::shared_ptr<const coll::Failure>()> cause,
            std::function<void()> notify);
  /// Ends the lane and aborts what is pending, which never ends.
  ~NcclGroup();

  /// What rank 0 gives to all ranks for connect.
  static UniqueId make_id();

  /// Makes the communicator, on the lane. Ends like an operation. Called once; operations may be started before.
  uint64_t connect(const UniqueId& id, int64_t timeout_ns);

  /// Hands an operation over; returns its id. `caller` is the stream that its memory is ordered on.
  uint64_t start(coll::Op op, cuda::Stream caller);
  /// What is started, or captured, until `release` goes to NCCL as one group. Until then nothing may wait for it.
  void hold();
  void release();
  /// Registers memory with NCCL for what is started from now on; returns an id. Every rank does so at the same place
  /// among its operations. Nothing happens where the library cannot do that, or the group has failed.
  uint64_t register_buffer(void* data, size_t bytes);
  /// From now on nothing is started on it. Ends like an operation: then the memory is free.
  uint64_t deregister_buffer(uint64_t id);
  /// Runs an operation to its end on the calling thread.
  Ended run(coll::Op op, cuda::Stream caller);
  /// Whether NCCL takes it within a moment, or it has ended: whether `fence` would not block for others.
  bool is_taken(uint64_t id);
  /// Lets the caller's stream wait for the operation. Blocks only until NCCL has taken it.
  void fence(uint64_t id);
  /// Makes an operation part of the graph that `caller` is being captured into: after what that has been given by now,
  /// and beside what it is given until `join`. Blocks until NCCL has taken it, which where it is held is in `release`.
  /// Ends at `join`, or with the group's failure at once.
  uint64_t capture(coll::Op op, cuda::Stream caller);
  /// What the stream is captured to do from now on comes after the operation.
  void join(uint64_t id);
  /// The capture has been given up.
  void forget(uint64_t id);
  /// What the stream is given next, a graph with captured operations, comes after all operations until now. Returns why
  /// the group has failed, or null.
  std::shared_ptr<const coll::Failure> begin_run(cuda::Stream stream);
  /// The graph has been given to the stream. Ends when it has run, by `op`'s deadline. All later operations come after
  /// it.
  uint64_t end_run(coll::Op op, cuda::Stream stream);

  /// Blocks until what has this id has ended. Its `Ended` is still to be taken.
  void wait(uint64_t id);
  /// Tells the lane that a caller waits for started operations, but not in `wait`.
  void request_progress();
  void take_ended(std::vector<Ended>& ended);
  /// Fails everything pending and later, on this rank; the lane ends it.
  void fail(coll::Failure failure);
  void abort(const std::string& text);
  /// Leaves once everything pending has ended. Ends like an operation.
  uint64_t close();

 private:
  struct Entry {
    coll::Op op;
    cuda::Stream caller;
    cuda::Event ready;  // what the caller's stream had been given
    cuda::Event done;
    uint64_t together;  // the same for what was held together; 0: alone
  };
  /// An operation of a graph that is being captured and does not wait for it yet.
  struct Captured {
    coll::Op op;
    cuda::Stream caller;
    cuda::Event done;
  };

  using Lock = std::unique_lock<std::mutex>;

  // What the other one has got so far is given back when it throws.
  NcclGroup(int rank, int size, std::function<std::shared_ptr<const coll::Failure>()> cause,
            std::function<void()> notify);
  void lane_main();
  void make_communicator(Lock& lock);
  bool poll();
  void launch();
  void settle_launched();
  bool settle_deregistered();
  void watch();
  void suspect(const std::string& what);
  void give_up(coll::Failure failure);
  void end_all(Lock& lock);
  bool leave(Lock& lock);
  void finalize(Comm comm);
  void let_go(Comm comm, int (*by)(Comm), const std::vector<cuda::Event>& pending);
  void free_all();
  std::vector<cuda::Event> ends_of_running() const;
  void capture_deferred(Lock& lock);
  void give_captured();
  cuda::Event drop_captured(uint64_t id);
  cuda::Event take_event();
  void record_event(cuda::Event event, cuda::Stream stream);
  void end(uint64_t id, std::shared_ptr<const coll::Failure> failure);
  bool has_ended(uint64_t id) const;
  bool is_launched(uint64_t id) const;
  void wait_until(Lock& lock, const std::function<bool()>& is_reached);
  coll::Failure system(const std::string& what) const { return {coll::FailureCode::System, rank_, {}, what}; }

  const int rank_;
  const int size_;
  const std::function<std::shared_ptr<const coll::Failure>()> cause_;
  const std::function<void()> notify_;
  cuda::Context context_ = nullptr;
  cuda::Stream stream_ = nullptr;          // the group's own
  cuda::Stream capture_stream_ = nullptr;  // the same in graphs; nothing ever runs there

  std::mutex mutex_;
  std::condition_variable wake_lane_;
  std::optional<UniqueId> unique_id_;  // given, not used yet
  uint64_t connecting_id_ = 0;         // not zero while the communicator is made
  int64_t connect_deadline_ns_ = 0;
  Comm comm_ = nullptr;
  bool is_connected_ = false;
  std::deque<Entry> queue_;    // not given to NCCL yet
  size_t launching_ = 0;       // NCCL is busy with so many of the first of queue_
  uint64_t holding_ = 0;       // `together` of what is held
  uint64_t holds_ = 0;         // so far
  std::deque<Entry> running_;  // in the order of the stream
  Registrations registrations_;
  std::vector<cuda::Event> spare_;          // events
  std::vector<Captured> deferred_;          // to be captured, not given to NCCL yet
  std::vector<Captured> open_;              // captured, not joined yet
  bool has_captured_ = false;               // graphs may have something of comm_
  std::vector<Ended> ended_;                // not taken yet
  bool has_news_ = false;                   // notify_ is due
  std::optional<coll::Failure> suspicion_;  // a failure of NCCL's, until the host group tells whose fault it was
  int64_t suspected_until_ns_ = 0;
  std::shared_ptr<const coll::Failure> failure_;
  bool has_ended_all_ = false;  // the communicator is aborted, and what was pending has ended with failure_
  uint64_t next_id_ = 1;
  uint64_t closing_id_ = 0;
  bool progress_requested_ = false;
  std::atomic<bool> stop_{false};
  std::thread lane_;  // last member: joined before anything it uses goes
};

}  // namespace ringwise::nccl
