// What the last operations of one rank were, and what became of them. Always on; a fixed ring.
//
// Threads. The owner's thread enters operations, one at a time; the engine's holder says when they start and end; any
// thread reads, without stopping anybody: so the record can be read while the program hangs. An operation that has not
// ended keeps its slot, and the ring goes around it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/time/tick_clock.h"
#include "coll/op.h"

namespace ringwise::coll {

/// An operation as it was when the record was read. Times are nanoseconds of the monotonic clock, 0: not yet.
struct FlightEntry {
  enum class State : uint8_t { Queued, Running, Done, Failed };

  uint64_t number = 0;  // how many this rank had called before
  Verb verb = Verb::Barrier;
  DType dtype = DType::UInt8;
  ReduceOp reduce = ReduceOp::Sum;
  State state = State::Queued;
  int root = 0;  // as in Op; of a receive from any rank that has ended: the sender
  int tag = 0;
  uint64_t seq = 0;
  uint64_t label = 0;  // as in Op
  uint64_t count = 0;  // as in Op; of all parts together where they differ, and for allToAll
  int64_t queued_ns = 0;
  int64_t started_ns = 0;
  int64_t ended_ns = 0;
  const char* algorithm = nullptr;  // a literal; null: not known
  std::string site;                 // where the program called it; empty: not known

  uint64_t bytes() const { return count * byte_size(dtype); }
};

class FlightRecorder {
 public:
  static constexpr uint32_t kEntries = 1024;
  static constexpr size_t kMaxSiteBytes = 160;

  explicit FlightRecorder(int ranks);

  // Owner's thread.

  /// Enters an operation that is called now. Returns the index of its slot; 0, which stands for none everywhere, when
  /// the ring is full of operations that have not ended. With an algorithm it has started, too.
  uint32_t enter(const Op& op, const char* algorithm = nullptr);
  /// Says where the program called it. Until the next one is entered, also of an operation that has ended.
  void locate(uint32_t index, const std::string& site);
  bool is_located(uint32_t index) const { return index == 0 || at(index).site.load(std::memory_order_relaxed) != 0; }

  // The engine's holder.

  void start(uint32_t index, const char* algorithm) {
    if (index == 0) return;
    Slot& slot = at(index);
    slot.algorithm.store(algorithm, std::memory_order_relaxed);
    slot.started.store(clock_.now(), std::memory_order_relaxed);
    slot.state.store(static_cast<uint8_t>(FlightEntry::State::Running), std::memory_order_relaxed);
  }
  /// `source` is a receive's sender. After this the slot may be given to another operation. Returns the time, by
  /// `clock`.
  int64_t end(uint32_t index, bool well, int source = -1) {
    const int64_t now = clock_.now();
    if (index == 0) return now;
    Slot& slot = at(index);
    if (source >= 0) slot.root.store(source, std::memory_order_relaxed);
    slot.ended.store(now, std::memory_order_relaxed);
    last_ended_.store(index, std::memory_order_relaxed);
    slot.state.store(static_cast<uint8_t>(well ? FlightEntry::State::Done : FlightEntry::State::Failed),
                     std::memory_order_release);
    return now;
  }

  // Any thread.

  const TickClock& clock() const { return clock_; }
  /// In the order of the calls.
  std::vector<FlightEntry> entries() const;
  /// False when there is none, or its slot is just given to another operation.
  bool read(uint32_t index, FlightEntry& entry) const;
  /// The operation that ended last; 0 if none has.
  uint32_t last_ended() const { return last_ended_.load(std::memory_order_relaxed); }

  /// What fits on the stack of a signal handler.
  struct Glance {
    Verb verb = Verb::Barrier;
    uint64_t seq = 0;
    FlightEntry::State state = FlightEntry::State::Queued;
    char site[kMaxSiteBytes + 1] = "";  // empty: not known, or the record was being written
  };
  /// The operation that was called last; false if there is none. Takes no lock and no memory, so it may be called in a
  /// signal handler.
  bool last_called(Glance& last) const;

 private:
  /// All members are atomic, so that reading while somebody writes gives old or new values. `number` is 0 while the
  /// others change hands; those who read see it change, because all that is stored after it is stored in order.
  struct Slot {
    std::atomic<uint64_t> number{0};  // from 1
    std::atomic<uint64_t> seq{0};
    std::atomic<uint64_t> count{0};
    std::atomic<uint64_t> label{0};
    std::atomic<int64_t> queued{0};  // by clock_, like the next two
    std::atomic<int64_t> started{0};
    std::atomic<int64_t> ended{0};
    std::atomic<const char*> algorithm{nullptr};
    std::atomic<int32_t> root{0};
    std::atomic<int32_t> tag{0};
    std::atomic<uint32_t> site{0};  // 1 + index in sites_
    std::atomic<uint8_t> verb{0};
    std::atomic<uint8_t> dtype{0};
    std::atomic<uint8_t> reduce{0};
    std::atomic<uint8_t> state{static_cast<uint8_t>(FlightEntry::State::Done)};
  };

  bool read(uint32_t index, FlightEntry& entry, const TickClock::Scale& scale) const;
  Slot& at(uint32_t index) const { return slots_[index - 1]; }
  static bool has_ended(const Slot& slot) {
    return slot.state.load(std::memory_order_acquire) >= static_cast<uint8_t>(FlightEntry::State::Done);
  }

  const int ranks_;
  const TickClock clock_;
  const std::unique_ptr<Slot[]> slots_;
  uint32_t next_ = 0;    // owner's thread; the slot to try first
  uint64_t number_ = 0;  // owner's thread; operations so far
  std::atomic<uint32_t> last_ended_{0};

  mutable std::mutex sites_mutex_;
  std::vector<std::string> sites_;                          // sites_mutex_
  std::unordered_map<std::string, uint32_t> site_numbers_;  // owner's thread; 1 + index in sites_
};

/// "allReduce #4821"
std::string name_of(const FlightEntry& entry);
/// "max of 128 × float32 from rank 0, train.ts:57"; empty where there is nothing to say.
std::string details_of(const FlightEntry& entry);
/// "done"
const char* name_of(FlightEntry::State state);

}  // namespace ringwise::coll
