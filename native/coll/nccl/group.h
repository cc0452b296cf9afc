// The nccl backend of one rank: operations on the memory of one device, in call order on a stream that the group owns.
//
// On the device, an operation waits for the work that the caller's stream has at the time of the call, and the caller's
// stream waits for the result from `fence` on. So no thread waits for the device, except in `wait` and `run`. NCCL's
// calls do not block either: a communicator that is still connecting returns "in progress", and its operations count as
// launched once it has finished.
//
// NCCL has no deadlines, does not tell which rank is missing, and hangs when a rank dies. The host group of the same
// ranks fills these gaps: JavaScript runs a small host collective beside each NCCL operation (backends/nccl/nccl.ts),
// and a failure of the host group ends this group. The lane is the watchdog: it looks for such a failure, for NCCL's
// asynchronous errors and for passed deadlines. The clock of an operation starts when the device has passed all work
// before it, so a device that is behind its host makes no operation late. When it finds a failure, the lane reads
// NCCL's last error text and then aborts the communicator, which frees the device. Pending operations end only after
// the abort, because kernels may use their memory until then.
//
// Operations on a stream that is being captured become part of the graph (capture.cc). They have no end of their own;
// each run of the graph has one and is watched like an operation. When NCCL aborts a communicator, it waits until the
// owner of such graphs has destroyed them; the lane does not wait for that. It waits a few seconds until the device has
// passed the operations, and then ends them as lent.
//
// Threads. The owner's thread calls every public function; the lane is this class's own. All state is under `mutex_`.
// The lane releases the mutex to make, leave and abort a communicator, which may take long, so that the owner never
// waits for that. Nothing here depends on Node; `notify` is called without the mutex.
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
#include "coll/engine/request_queue.h"
#include "coll/failure/failure.h"
#include "coll/nccl/library.h"
#include "coll/nccl/registrations.h"
#include "coll/op.h"

namespace ringwise::nccl {

using coll::Ended;

/// Time that the host group has to name the missing rank before an NCCL error, or a passed NCCL deadline, is reported
/// instead.
inline constexpr int64_t kGrace = 500 * kMillisecond;

class NcclGroup {
 public:
  /// Opens `device` and starts the lane. `cause` returns why the host group has failed, or null, on any thread. Throws
  /// Failure if the device or the NCCL library is missing.
  NcclGroup(int rank, int size, int device, std::function<std::shared_ptr<const coll::Failure>()> cause,
            std::function<void()> notify);
  /// Ends the lane and aborts the pending operations, for which no `Ended` appears.
  ~NcclGroup();

  /// Returns the id that rank 0 makes and passes to all ranks for connect().
  static UniqueId make_id();

  /// Starts to make the communicator on the lane. Ends like an operation with the returned id. Call it once; operations
  /// may be started before.
  uint64_t connect(const UniqueId& id, int64_t timeout_ns);

  /// Starts an operation; returns its id. `caller` is the stream on which the caller's work with its memory is ordered.
  uint64_t start(coll::Op op, cuda::Stream caller);
  /// hold() collects the operations that are started or captured from now on; release() passes them to NCCL as one
  /// group. Between the two, do not wait for these operations.
  void hold();
  void release();
  /// Registers memory with NCCL for operations that are started from now on; returns an id. All ranks must do so at the
  /// same place in their sequence of operations. Does nothing if the group has failed.
  uint64_t register_buffer(void* data, size_t bytes);
  /// Undoes a registration; the caller starts no more operations on the memory. Ends like an operation with the
  /// returned id; after that the memory may be freed.
  uint64_t deregister_buffer(uint64_t id);
  /// Runs an operation and blocks until it has ended.
  Ended run(coll::Op op, cuda::Stream caller);
  /// Returns whether NCCL accepts the operation within a moment, or it has ended. Then `fence` does not block to wait
  /// for other ranks.
  bool is_taken(uint64_t id);
  /// Makes the caller's stream wait for the operation. Blocks only until NCCL has accepted the operation.
  void fence(uint64_t id);
  /// Adds an operation to the graph that `caller` is being captured into. In the graph it runs after the earlier work
  /// of `caller`, and concurrently with the work that is captured until `join`. Blocks until NCCL has accepted the
  /// operation; if operations are held, `release` blocks instead. The operation ends at `join`, or at once if the group
  /// has failed.
  uint64_t capture(coll::Op op, cuda::Stream caller);
  /// Orders the work that the stream captures from now on after the operation.
  void join(uint64_t id);
  /// Drops a captured operation because the program has abandoned the capture.
  void forget(uint64_t id);
  /// Orders the next work of `stream`, a graph with captured operations, after all operations so far. Returns why the
  /// group has failed, or null. If it returns null, end_run() follows, or another begin_run() if the launch has failed.
  std::shared_ptr<const coll::Failure> begin_run(cuda::Stream stream);
  /// Watches a run of a graph that the caller has just launched on `stream`. The returned id ends when the graph has
  /// run, or fails if the run takes longer than the timeout of `op`. All later operations run after the graph.
  uint64_t end_run(coll::Op op, cuda::Stream stream);

  /// Blocks until `id` has ended. `take_ended` still returns its `Ended` afterwards.
  void wait(uint64_t id);
  /// Tells the lane that a caller waits for started operations without calling `wait`.
  void request_progress();
  void take_ended(std::vector<Ended>& ended);
  /// Fails all pending and later operations on this rank. The lane ends the pending ones.
  void abort(coll::Failure failure);
  /// Leaves the group once all pending operations have ended. Ends like an operation with the returned id.
  uint64_t close();

 private:
  struct Entry {
    coll::Op op;  // its deadline_ns is 0 until start_clock() sets it
    cuda::Stream caller;
    cuda::Event ready;  // recorded on the caller's stream at the call, or before the launch of a graph
    cuda::Event done;
    uint64_t together;  // number of the hold() that it belongs to; 0 for none
  };
  /// A captured operation before `join`: the later work in the graph does not wait for it yet.
  struct Captured {
    coll::Op op;
    cuda::Stream caller;
    cuda::Event done;
  };

  using Lock = std::unique_lock<std::mutex>;

  // The public constructor delegates to this one, so that the destructor frees what it has acquired if it throws.
  NcclGroup(int rank, int size, std::function<std::shared_ptr<const coll::Failure>()> cause,
            std::function<void()> notify);
  void lane_main();
  void make_communicator(Lock& lock);
  bool poll();
  void launch();
  void settle_launched();
  bool settle_deregistered();
  void watch();
  void start_clock();
  void suspect(const std::string& what);
  void give_up(coll::Failure failure);
  void end_all(Lock& lock);
  bool leave(Lock& lock);
  void finalize(Comm comm);
  bool let_go(Comm comm, int (*by)(Comm), const std::vector<cuda::Event>& pending);
  void free_all();
  std::vector<cuda::Event> ends_of_running() const;
  void capture_deferred(Lock& lock);
  void give_captured();
  cuda::Event drop_captured(uint64_t id);
  cuda::Event take_event();
  void record_event(cuda::Event event, cuda::Stream stream);
  void end(uint64_t id, std::shared_ptr<const coll::Failure> failure, bool is_lent = false);
  bool has_ended(uint64_t id) const;
  bool is_launched(uint64_t id) const;
  void wait_until(Lock& lock, const std::function<bool()>& is_reached);
  coll::Failure system(const std::string& what) const {
    return {coll::FailureCode::System, rank_, {rank_}, "rank " + std::to_string(rank_) + ": " + what};
  }

  const int rank_;
  const int size_;
  const std::function<std::shared_ptr<const coll::Failure>()> cause_;
  const std::function<void()> notify_;
  cuda::Context context_ = nullptr;
  cuda::Stream stream_ = nullptr;          // owned
  cuda::Stream capture_stream_ = nullptr;  // takes the place of stream_ in captures; nothing ever runs on it

  std::mutex mutex_;
  std::condition_variable wake_lane_;
  std::optional<UniqueId> unique_id_;  // from connect(), until the lane uses it
  uint64_t connecting_id_ = 0;         // not zero while the communicator is made
  int64_t connect_deadline_ns_ = 0;
  Comm comm_ = nullptr;
  bool is_connected_ = false;
  std::deque<Entry> queue_;
  size_t launching_ = 0;       // the number of operations at the front of queue_ that NCCL is busy with
  uint64_t holding_ = 0;       // `together` of the operations that are held now
  uint64_t holds_ = 0;         // number of hold() calls so far
  std::deque<Entry> running_;  // given to NCCL, in the order of the stream
  Registrations registrations_;
  std::vector<cuda::Event> spare_;          // events for reuse
  std::vector<Captured> deferred_;          // to be captured, not given to NCCL yet
  std::vector<Captured> open_;              // captured, not joined yet
  cuda::Event run_ready_ = nullptr;         // `ready` of the run that begin_run() has prepared
  bool has_captured_ = false;               // graphs may contain operations of comm_
  std::vector<Ended> ended_;                // not taken yet
  bool has_news_ = false;                   // notify_ is due
  std::optional<coll::Failure> suspicion_;  // an NCCL failure, until the host group names the rank that caused it
  int64_t suspected_until_ns_ = 0;
  std::shared_ptr<const coll::Failure> failure_;
  bool has_ended_all_ = false;  // the communicator is aborted, and what was pending has ended with failure_
  uint64_t next_id_ = 1;
  uint64_t closing_id_ = 0;
  bool progress_requested_ = false;
  std::atomic<bool> stop_{false};
  std::thread lane_;  // last member, so that nothing the lane uses is destroyed before it
};

}  // namespace ringwise::nccl
