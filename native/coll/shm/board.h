// The board: shared memory in which the ranks of one host run their collectives. Every rank has posts, which describe
// its calls and the location of its data; slots, into which it copies data for the other ranks; and counters of its
// progress. Ranks write only their own posts, slots and counters, and read those of the others.
//
// Reuse. Every rank has two sets of slots, for operations of even and odd number. A rank writes the slots of operation
// k only after all other ranks have posted k−1. By then they have ended k−2, so no rank reads the data that k−2 left in
// the same slots. Every rank has kPosts posts, so that a rank which only sends, or only gets the root's data, may be
// kRunAhead operations ahead of the others: it posts k after all others have posted k−kRunAhead, when no rank reads the
// post of k−kPosts any more.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/fd.h"
#include "coll/handshake/signature.h"

namespace ringwise::coll {

/// Location of a rank's data, for the other ranks.
enum class Where : uint32_t {
  Post,    // in the post itself
  Slot,    // in its slot, complete when the post appears
  Chunks,  // copied into its slots chunk by chunk; Counter::Staged counts them
  Arena,   // in its arena, at the post's offset: the others read it there, and the rank waits until they have
  Memory,  // in its private memory, at the post's offset: the kernel copies it for the others, and the rank waits
};

inline constexpr uint64_t kPosts = 32;
inline constexpr uint64_t kRunAhead = kPosts / 2;

/// The fields that other ranks always read come first, so that an operation with a few bytes of data transfers only one
/// pair of cache lines.
struct Post {
  std::atomic<uint64_t> stamp;  // the number of the operation; written last, all other fields are valid then
  uint64_t digest;              // hash of the signatures of this and all earlier calls, compared in their place
  uint64_t offset;              // bytes from the beginning of the arena; an address for Memory
  Where where;
  uint32_t reserved;
  std::byte data[352];
  Signature signature;  // read only where digests differ, like `label`, and in allToAll
  char label[64];       // the text of the signature's label, or its beginning; valid if the label is not 0
};
static_assert(sizeof(Post) == 512);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

/// Facts about a rank that the others need and that do not belong to one operation.
struct Member {
  std::atomic<int> core;     // 1 + the core on which it ran when it last waited for long
  std::atomic<int> reads;    // whether it can read the memory of all others: 1 yes, −1 no, 0 not tried
  std::atomic<int> fences;   // 1 if it calls os::barrier_everywhere() before it sleeps, and others' calls reach it
  std::atomic<int> process;  // process id; this and the fields below are valid once it is not 0
  uint64_t probe;            // a random number
  uint64_t probe_address;    // address of the same number in the rank's private memory
};

/// A rank's counters of the chunks of an operation, combined with the operation's number (see Board::mark): chunks that
/// it has copied into its slots, has reduced, and has taken from the other ranks. Only that rank writes them.
enum class Counter : uint8_t { Staged, Reduced, Taken };
inline constexpr int kCounters = 3;

class Board {
 public:
  /// Most ranks of a board: each needs at least a cache line of a slot. More ranks use links.
  static constexpr int kMaxRanks = 1024;

  /// Makes a zeroed board for `ranks` ranks. Throws std::system_error.
  static Board create(int ranks);
  /// Maps a board that another rank made. Throws std::system_error if it is not a board.
  static Board attach(Fd file, int ranks);

  Board() = default;
  Board(Board&& other) noexcept;
  Board& operator=(Board&& other) noexcept;
  ~Board();

  explicit operator bool() const { return memory_ != nullptr; }
  int ranks() const { return ranks_; }
  int descriptor() const { return file_.get(); }

  // Memory layout of each rank: posts, counters, Member, then a slot and a result for each of two operations times two
  // chunks.

  Post& post(int rank, uint64_t operation) const {
    return *reinterpret_cast<Post*>(of(rank) + sizeof(Post) * (operation % kPosts));
  }
  std::atomic<uint64_t>& counter(int rank, Counter counter) const {
    return *reinterpret_cast<std::atomic<uint64_t>*>(of(rank) + kPostBytes + kLine * static_cast<size_t>(counter));
  }
  Member& member(int rank) const { return *reinterpret_cast<Member*>(of(rank) + kPostBytes + kCounters * kLine); }
  /// Returns the slot for data to the other ranks, slot_bytes() long. result() returns the one for reduced data, half
  /// as long.
  std::byte* slot(int rank, uint64_t operation, size_t chunk) const {
    const size_t index = operation % 2 * 2 + chunk % 2;
    return of(rank + 1) - (index + 1) * (slot_bytes_ + slot_bytes_ / 2);
  }
  std::byte* result(int rank, uint64_t operation, size_t chunk) const {
    return slot(rank, operation, chunk) + slot_bytes_;
  }
  size_t slot_bytes() const { return slot_bytes_; }

  /// mark() returns a counter's value after `chunks` chunks of an operation; kAll chunks mean that the rank has done
  /// all of them. Values only grow. An operation has fewer than kAll chunks, which would be at least 256 GiB of each
  /// rank. The operation numbers last for 50 days at one operation per microsecond.
  static constexpr int kChunkBits = 22;
  static constexpr size_t kAll = (size_t{1} << kChunkBits) - 1;
  static uint64_t mark(uint64_t operation, size_t chunks) { return (operation << kChunkBits) + chunks; }

 private:
  static constexpr size_t kLine = 128;  // two cache lines, because processors prefetch them in pairs
  static constexpr size_t kPostBytes = kPosts * sizeof(Post);
  static_assert(sizeof(Member) <= kLine);

  Board(Fd file, int ranks);
  std::byte* of(int rank) const { return memory_ + rank_bytes_ * static_cast<size_t>(rank); }
  size_t bytes() const { return rank_bytes_ * static_cast<size_t>(ranks_); }
  void map();

  Fd file_;
  int ranks_ = 0;
  size_t slot_bytes_ = 0;
  size_t rank_bytes_ = 0;
  std::byte* memory_ = nullptr;  // mapped shared; unmapped by the destructor
};

}  // namespace ringwise::coll
