// The group of the C ABI: wraps a coll::HostGroup, which has one owner thread, for callers on any thread, and finds the
// results of operations by their ids.
//
// Threads. Every call holds `calls_` for as long as it runs. So the HostGroup has one owner at a time, and no call
// takes the result for which another call waits. Only abort(), error() and failed_ranks() do not hold it, and test()
// returns RINGWISE_PENDING if another call holds it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "coll/engine/host_group.h"
#include "coll/include/ringwise.h"

namespace ringwise::capi {

/// One call of a verb: the operation, the memory of its counts, and how its end is reported.
struct Call {
  const char* function = "";  // name for error texts; a literal
  coll::Op op = {};
  std::vector<size_t> counts = {};       // the memory to which op.counts points; empty if that is null
  std::vector<size_t> recv_counts = {};  // the same for op.recv_counts
  int32_t* source = nullptr;             // for a receive, where to store the sender, or null; owned by the caller
};

}  // namespace ringwise::capi

struct ringwise_group {
 public:
  ringwise_group(int rank, int size) : rank_(rank), size_(size) {}
  ~ringwise_group();

  /// Connects to the other ranks; returns a status. Throws Refused and std::system_error. Call it once, before all
  /// other functions; `listen_host` must not be null.
  int meet(const ringwise_options& options, const char* function);
  /// Makes every later verb fail. For a group whose meet() has failed.
  void give_up() { native_.reset(); }

  int rank() const { return rank_; }
  int size() const { return size_; }

  // These return a status, or throw Refused.

  /// Runs the call and blocks until it has ended if `operation` is null, otherwise starts it.
  int call(ringwise::capi::Call call, ringwise_operation* operation);
  int test(ringwise_operation operation);
  int wait(ringwise_operation operation);
  int close(const char* function);
  int abort(const char* reason);
  int alloc(size_t bytes, void** memory);
  int free(void* memory);

  /// Stores the error text of the last failed call; returns `status`.
  int fail(int status, const char* function, const std::string& what) noexcept;
  size_t error(char* text, size_t capacity) const;
  size_t failed_ranks(int32_t* ranks, size_t capacity) const;

 private:
  using FailurePtr = std::shared_ptr<const ringwise::coll::Failure>;

  /// An operation that has not been reported yet.
  struct Started {
    ringwise::capi::Call call;  // owns the counts to which the operation refers
    bool ended = false;
    FailurePtr failure;
    int sender = -1;
  };
  using Table = std::map<ringwise_operation, Started>;
  using HandOver = std::function<uint64_t(const ringwise::coll::Op&)>;

  // The caller holds calls_.
  Table::iterator track(ringwise::capi::Call call, const HandOver& hand_over);
  Table::iterator find(ringwise_operation operation);
  int finish(Table::iterator at);
  void collect();
  int report(Table::iterator at);
  int report(const ringwise::capi::Call& call, const FailurePtr& failure, int sender);
  uint64_t& sequence_of(const ringwise::coll::Op& op);
  void check_open() const;

  const int rank_;
  const int size_;
  int64_t timeout_ns_ = 0;
  std::atomic<bool> aborted_{false};

  std::mutex calls_;
  bool closed_ = false;             // calls_
  uint64_t collectives_ = 0;        // calls_; number of collectives called
  std::vector<uint64_t> sent_;      // calls_; number of sends by receiver
  std::vector<uint64_t> received_;  // calls_; number of receives by sender; the last entry is for any sender
  Table started_;                   // calls_
  // calls_; memory from alloc(); outlives native_, which may be using it
  std::map<void*, std::shared_ptr<void>> blocks_;
  std::vector<ringwise::coll::Ended> collected_;  // calls_; kept for its memory

  mutable std::mutex error_mutex_;
  std::string error_;              // error_mutex_
  std::vector<int> failed_ranks_;  // error_mutex_

  std::unique_ptr<ringwise::coll::HostGroup> native_;  // null before meet(), and after it has failed
};
