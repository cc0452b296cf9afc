// A group behind the C ABI: a coll::HostGroup, which knows one caller, for callers on any thread, and the ends of
// operations by their ids.
//
// Threads. `calls_` is held by every call, for as long as it blocks; so the HostGroup has one owner at a time, and
// nobody takes an end that another one waits for. Only `abort` and the error's accessors do without.
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

/// One call of a verb: the operation, what it points to, and how it is reported.
struct Call {
  const char* function = "";  // for texts; a literal
  coll::Op op = {};
  std::vector<size_t> counts = {};  // what op.counts and op.recv_counts point to; empty where these are null
  std::vector<size_t> recv_counts = {};
  int32_t* source = nullptr;  // the caller's; set to a receive's sender
};

}  // namespace ringwise::capi

struct ringwise_group {
 public:
  ringwise_group(int rank, int size) : rank_(rank), size_(size) {}
  ~ringwise_group();

  /// Meets the other ranks; returns a status. Throws Refused and std::system_error. Called once, before anything else;
  /// `listen_host` is not null.
  int meet(const ringwise_options& options, const char* function);
  /// After `meet` has failed: from now on every call is refused.
  void give_up() { native_.reset(); }

  int rank() const { return rank_; }
  int size() const { return size_; }

  // These return a status, or throw Refused.

  /// Runs the call to its end when `operation` is null, else starts it.
  int call(ringwise::capi::Call call, ringwise_operation* operation);
  int test(ringwise_operation operation);
  int wait(ringwise_operation operation);
  int close(const char* function);
  int abort(const char* reason);
  int alloc(size_t bytes, void** memory);
  int free(void* memory);

  /// Remembers the sentence; returns `status`.
  int fail(int status, const char* function, const std::string& what) noexcept;
  size_t error(char* text, size_t capacity) const;
  size_t failed_ranks(int32_t* ranks, size_t capacity) const;

 private:
  using FailurePtr = std::shared_ptr<const ringwise::coll::Failure>;

  /// An operation that has not been reported yet.
  struct Started {
    ringwise::capi::Call call;  // its counts are the operation's memory
    bool ended = false;
    FailurePtr failure;
    int sender = -1;
  };
  using Table = std::map<ringwise_operation, Started>;
  using HandOver = std::function<uint64_t(const ringwise::coll::Op&)>;

  // Called with calls_.
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
  bool closed_ = false;                            // calls_
  uint64_t collectives_ = 0;                       // calls_; so many were called
  std::vector<uint64_t> sent_;                     // calls_; by receiver
  std::vector<uint64_t> received_;                 // calls_; by sender, the last for any
  Table started_;                                  // calls_
  std::map<void*, std::shared_ptr<void>> blocks_;  // calls_; from `alloc`; outlives native_, which may be using them
  std::vector<ringwise::coll::Ended> collected_;   // calls_; kept for its memory

  mutable std::mutex error_mutex_;
  std::string error_;              // error_mutex_
  std::vector<int> failed_ranks_;  // error_mutex_

  std::unique_ptr<ringwise::coll::HostGroup> native_;  // null until met, or when that failed
};
