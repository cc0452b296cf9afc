// The arena: memory that a rank allocates for its buffers and that the other ranks of its host map as well. Collectives
// read and write such buffers in place, without copies.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/fd.h"

namespace ringwise::coll {

/// The arena of one rank. It reserves as much address space as the host has memory; physical memory is taken by
/// allocate() and returned by release(). Only the owner's thread allocates and releases; any thread may call
/// `offset_of`.
class Arena {
 public:
  /// Returns null if the arena cannot be mapped, for example where the address space is limited. Collectives work
  /// without arenas. Takes the arena that prepare() has made, if there is one.
  static std::shared_ptr<Arena> create();
  /// Makes an arena for the next create(), and maps its first `bytes`, so that allocate() need not wait for new pages.
  /// Replaces one that create() has not taken; 0 bytes only drop that. Blocks while the pages are mapped, some 100 ms
  /// for 100 MB. Any thread may call it. Without memory for it the next create() makes an arena as usual.
  static void prepare(size_t bytes) noexcept;
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// Returns zeroed memory, aligned to 4096 bytes, or to 2 MiB if it is as large. Its pages are mapped. Throws
  /// std::system_error when there is no memory.
  std::byte* allocate(size_t bytes);
  void release(std::byte* block) noexcept;

  /// Takes the pages of a range from the other ranks: what they write later does not reach this rank. The data stays.
  /// Best effort; does nothing for a range outside the arena. The owner's thread calls it while nothing uses the
  /// range. allocate() uses no released memory again after this.
  void isolate(const std::byte* data, size_t bytes) noexcept;

  /// Returns the offset of the range in the arena; nothing if the range does not lie in it.
  std::optional<size_t> offset_of(const std::byte* data, size_t bytes) const;

  int descriptor() const { return file_.get(); }
  /// Returns the size of the address range of every arena on this host, in bytes.
  static size_t span();

 private:
  Arena() = default;
  static std::shared_ptr<Arena> make();

  Fd file_;
  std::byte* memory_ = nullptr;
  size_t ready_ = 0;               // the pages before this offset are mapped, whether they are used or not
  std::map<size_t, size_t> free_;  // offset → bytes, never adjacent
  std::map<size_t, size_t> used_;
  bool is_isolated_ = false;  // some pages of memory_ are private
};

/// The mapped arenas of the other ranks of the host, by rank index on the host. The destructor unmaps them.
class PeerArenas {
 public:
  explicit PeerArenas(int ranks) : memory_(ranks) {}
  PeerArenas(PeerArenas&&) = default;
  PeerArenas& operator=(PeerArenas&& other) noexcept {
    std::swap(memory_, other.memory_);
    return *this;
  }
  ~PeerArenas();

  /// Maps the arena of the rank with this index. Throws std::system_error.
  void attach(int index, const Fd& file);
  std::byte* memory(int index) const { return memory_[index]; }

 private:
  std::vector<std::byte*> memory_;
};

}  // namespace ringwise::coll
