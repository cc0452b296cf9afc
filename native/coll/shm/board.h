// Shared memory in which the ranks of one host run their collectives. Every rank has a post, where it says what it
// calls and where its data lies; slots, in which it lays out data for the others; and counters of what it has done.
// A rank writes its own part only, and reads those of the others.
//
// Reuse. Slots exist twice, for operations of even and odd number. A rank lays data into them for operation k only when
// all others have posted k−1, so when they have ended k−2: then nobody reads what k−2 left in the same place. Of posts
// there are kPosts, so that a rank which only sends may be kRunAhead operations in front of those that take: it posts k
// when all others have posted k−kRunAhead, so when they are through with what k−kPosts left in the same place.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/fd.h"
#include "coll/handshake/signature.h"

namespace ringwise::coll {

/// Where the others find a rank's data.
enum class Where : uint32_t {
  Post,    // in the post itself
  Slot,    // in its slot, complete when the post appears
  Chunks,  // comes into its slots chunk by chunk; `staged` counts them
  Arena,   // in its arena, at the post's offset: they read it there, and it waits for them
  Memory,  // in its private memory, at the post's offset: the kernel copies it for them, and it waits for them
};

inline constexpr uint64_t kPosts = 8;
inline constexpr uint64_t kRunAhead = kPosts / 2;

/// What the others always read lies in front: with a few bytes of data, the pair of cache lines that goes over is all
/// that an operation costs.
struct Post {
  std::atomic<uint64_t> stamp;  // the number of the operation; everything else is valid once it has come
  uint64_t digest;              // of the signature: equal exactly if that is
  uint64_t offset;              // bytes from the beginning of the arena; an address for Memory
  Where where;
  uint32_t reserved;
  std::byte data[352];
  Signature signature;  // read where digests differ, like what follows
  char label[64];       // the text of the signature's label, or its beginning; valid where that is not 0
};
static_assert(sizeof(Post) == 512);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

/// What a rank tells the others about itself, beside operations.
struct Member {
  std::atomic<int> core;     // 1 + the one on which it ran when it last had to wait for long
  std::atomic<int> reads;    // whether it can read the memory of all others: 1 yes, −1 no, 0 not tried
  std::atomic<int> process;  // its id; valid like what follows once it is not 0
  uint64_t probe;            // a random number
  uint64_t probe_address;    // where the rank has the same number
};

/// What a rank counts: chunks of the operation, on top of the operation's number (see Board::mark). Only it writes.
enum class Counter : uint8_t { Staged, Reduced, Taken };
inline constexpr int kCounters = 3;

class Board {
 public:
  /// Makes a zeroed board for `ranks` ranks. Throws std::system_error.
  static Board create(int ranks);
  /// Maps one that another rank made. Throws std::system_error when it is not a board.
  static Board attach(Fd file, int ranks);

  Board() = default;
  Board(Board&& other) noexcept;
  Board& operator=(Board&& other) noexcept;
  ~Board();

  explicit operator bool() const { return memory_ != nullptr; }
  int ranks() const { return ranks_; }
  int descriptor() const { return file_.get(); }

  // Per rank: the posts, the counters, the member, then per operation and chunk (two of each) a slot and a result.

  Post& post(int rank, uint64_t operation) const {
    return *reinterpret_cast<Post*>(of(rank) + sizeof(Post) * (operation % kPosts));
  }
  std::atomic<uint64_t>& counter(int rank, Counter counter) const {
    return *reinterpret_cast<std::atomic<uint64_t>*>(of(rank) + kPostBytes + kLine * static_cast<size_t>(counter));
  }
  Member& member(int rank) const { return *reinterpret_cast<Member*>(of(rank) + kPostBytes + kCounters * kLine); }
  /// For data on its way to the others, slot_bytes() long; and for results, slot_bytes() / 2.
  std::byte* slot(int rank, uint64_t operation, size_t chunk) const {
    const size_t index = operation % 2 * 2 + chunk % 2;
    return of(rank + 1) - (index + 1) * (slot_bytes_ + slot_bytes_ / 2);
  }
  std::byte* result(int rank, uint64_t operation, size_t chunk) const {
    return slot(rank, operation, chunk) + slot_bytes_;
  }
  size_t slot_bytes() const { return slot_bytes_; }

  /// A counter's value after `chunks` of an operation; kAll stands for its end. Values only grow.
  static constexpr size_t kAll = (size_t{1} << 20) - 1;
  static uint64_t mark(uint64_t operation, size_t chunks) { return (operation << 20) + chunks; }

 private:
  static constexpr size_t kLine = 128;  // pairs of cache lines travel together
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
