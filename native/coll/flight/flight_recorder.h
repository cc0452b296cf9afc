// The flight recorder: a ring of fixed size with the last operations of one rank and their states. Always on.
//
// Threads. The owner's thread enters operations, one at a time. The thread that owns the engine marks when they start
// and end. Any thread may read without blocking the others, so the record can be read while the program hangs. An
// operation that has not ended keeps its slot; new operations skip it.
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

/// A copy of one operation's record. Times are nanoseconds of the monotonic clock; 0 means not yet.
struct FlightEntry {
  enum class State : uint8_t { Queued, Running, Done, Failed };

  uint64_t number = 0;  // number of operations that this rank had called before
  Verb verb = Verb::Barrier;
  DType dtype = DType::UInt8;
  ReduceOp reduce = ReduceOp::Sum;
  State state = State::Queued;
  int root = 0;  // as in Op; the sender, for a receive from any rank that has ended
  int tag = 0;
  uint64_t seq = 0;
  uint64_t label = 0;  // as in Op
  uint64_t count = 0;  // as in Op; for allToAll and uneven parts, of all parts together
  int64_t queued_ns = 0;
  int64_t started_ns = 0;
  int64_t ended_ns = 0;
  const char* algorithm = nullptr;  // a string literal; null if not known
  std::string site;                 // source location of the call; empty if not known

  uint64_t bytes() const { return count * byte_size(dtype); }
};

class FlightRecorder {
 public:
  static constexpr uint32_t kEntries = 1024;
  static constexpr size_t kMaxSiteBytes = 160;

  explicit FlightRecorder(int ranks);

  // Owner's thread.

  /// Enters an operation that is called now. Returns the index of its slot, or 0 if all slots have operations that have
  /// not ended; every function takes 0 for an operation without a slot. With an algorithm, the operation also counts as
  /// started.
  uint32_t enter(const Op& op, const char* algorithm = nullptr);
  /// Records the source location of the call. For an operation that has ended, call it before the next one is entered.
  void locate(uint32_t index, const std::string& site);
  bool is_located(uint32_t index) const { return index == 0 || at(index).site.load(std::memory_order_relaxed) != 0; }

  // The thread that owns the engine.

  void start(uint32_t index, const char* algorithm) {
    if (index == 0) return;
    Slot& slot = at(index);
    slot.algorithm.store(algorithm, std::memory_order_relaxed);
    slot.started.store(clock_.now(), std::memory_order_relaxed);
    slot.state.store(static_cast<uint8_t>(FlightEntry::State::Running), std::memory_order_relaxed);
  }
  /// Marks the operation as ended, successfully if `well`; `source` is the sender, for a receive. After this the slot
  /// may be given to another operation. Returns the time in ticks of `clock`.
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
  /// Returns all records in the order of the calls.
  std::vector<FlightEntry> entries() const;
  /// Copies the record at `index`. Returns false if there is none or the slot is being given to another operation.
  bool read(uint32_t index, FlightEntry& entry) const;
  /// Returns the index of the operation that ended last; 0 if none has.
  uint32_t last_ended() const { return last_ended_.load(std::memory_order_relaxed); }

  /// The main fields of a record, without heap memory, so that a signal handler can have it on its stack.
  struct Glance {
    Verb verb = Verb::Barrier;
    uint64_t seq = 0;
    FlightEntry::State state = FlightEntry::State::Queued;
    char site[kMaxSiteBytes + 1] = "";  // empty if not known, or if the record was being written
  };
  /// Sets `last` to the operation that was called last; returns false if there is none. Takes no lock and allocates
  /// nothing, so a signal handler may call it.
  bool last_called(Glance& last) const;

 private:
  /// A record as it is stored. All members are atomic, so a reader gets old or new values while another thread writes.
  /// `number` is 0 while the slot is given to another operation. Readers notice that it changes, because all later
  /// stores are ordered after it.
  struct Slot {
    std::atomic<uint64_t> number{0};  // from 1
    std::atomic<uint64_t> seq{0};
    std::atomic<uint64_t> count{0};
    std::atomic<uint64_t> label{0};
    std::atomic<int64_t> queued{0};  // in ticks of clock_, like the next two
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

/// Returns a name such as "allReduce #4821".
std::string name_of(const FlightEntry& entry);
/// Returns details such as "max of 128 × float32 to rank 0, train.ts:57"; empty if the operation has none.
std::string details_of(const FlightEntry& entry);
/// Returns the state's name, such as "done".
const char* name_of(FlightEntry::State state);

}  // namespace ringwise::coll
