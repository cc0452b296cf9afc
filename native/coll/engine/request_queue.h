// Passes the requests of a group's owner to the engine, and the operations that have ended back to the owner. The host
// group and the mpi group use it. It keeps only their order; links and failures are handled elsewhere.
//
// Threads. Any thread may call every function; all state is under one mutex. `notify` is called without it.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "coll/failure/failure.h"
#include "coll/op.h"

namespace ringwise::coll {

/// The outcome of an operation. `failure` is null on success; otherwise it is why the group has failed.
struct Ended {
  uint64_t id;
  std::shared_ptr<const Failure> failure;
  int source = -1;       // the sender, of a receive that ended well
  bool is_lent = false;  // it failed, and the transport may use its memory until the process ends
};

class RequestQueue {
 public:
  /// `notify` is called after each operation that ends, on the thread that ended it.
  explicit RequestQueue(std::function<void()> notify) : notify_(std::move(notify)) {}

  // The owner's requests.

  /// Returns the id of a request that is not queued, such as connecting; it ends by `end` as operations do.
  uint64_t reserve();
  /// Queues an operation and gives it its id.
  void push(Op& op);
  /// Asks the engine to fail everything with this failure.
  void abort(Failure failure);
  /// Asks the engine to leave the group when nothing is pending. Returns the id that ends then.
  uint64_t close();

  // The engine's side.

  /// Returns whether something was requested since `see`. Takes no lock. Sequentially consistent, so that a thread that
  /// announces its sleep before it asks misses no request whose owner looks for sleepers afterwards.
  bool has_news() const { return has_news_; }
  /// Notes that the engine looks at the requests now.
  void see() { has_news_ = false; }
  /// Blocks until something is requested or `wake` is called, at most for `limit`.
  void wait_for_news(std::chrono::microseconds limit);
  /// Ends a wait_for_news() that is running, and the next one.
  void wake();

  /// Removes and returns the failure of an abort, if one was requested.
  std::optional<Failure> take_abort();
  /// Removes and returns the oldest send or receive or, if there is none and `collectives` is set, the oldest
  /// collective.
  std::optional<Op> pop(bool collectives);
  /// Removes and returns all operations: sends and receives first, each kind in the order of the calls.
  std::deque<Op> take_all();
  /// Returns the earliest deadline of the queued collectives; the largest number if there are none.
  int64_t earliest_deadline() const;
  /// Returns whether operations are queued.
  bool has_operations() const;
  /// Returns whether the owner has closed the group and has no other request.
  bool may_leave() const;
  /// Removes and returns the id of `close`; call it only if may_leave().
  uint64_t take_closing();

  /// Hands an ended operation to the owner.
  void end(Ended ended);

  // The operations that have ended.

  bool has_ended(uint64_t id) const;
  /// Blocks until the operation has ended.
  void wait_until_ended(uint64_t id);
  /// Removes and returns the outcome of an operation, which must have ended.
  Ended take(uint64_t id);
  /// Moves out everything that has ended, in order of ending.
  void take_ended(std::vector<Ended>& ended);

 private:
  std::vector<Ended>::const_iterator find(uint64_t id) const;

  const std::function<void()> notify_;
  std::atomic<bool> has_news_{false};
  mutable std::mutex mutex_;
  std::condition_variable news_;
  std::condition_variable one_ended_;
  std::deque<Op> collectives_;
  std::deque<Op> messages_;  // sends and receives, which do not wait for collectives
  std::optional<Failure> abort_;
  uint64_t closing_id_ = 0;  // not zero from close() until take_closing()
  uint64_t next_id_ = 1;
  bool is_woken_ = false;
  int waiters_ = 0;  // threads in wait_until_ended
  std::vector<Ended> ended_;
};

}  // namespace ringwise::coll
