// Memory that a rank allocates for its buffers and that the other ranks of its host have mapped as well. Collectives
// read and write such buffers in place, without copies.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/fd.h"

namespace ringwise::coll {

/// One rank's. The address space is as large as the host's memory; memory is taken as it is allocated, and goes back
/// when it is freed. The owner's thread allocates and frees; anybody may read `memory` and `offset_of`.
class Arena {
 public:
  /// Null where the address space is limited: then there is no such memory, and everything else works.
  static std::shared_ptr<Arena> create();
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// Zeroed, at a multiple of 4096 bytes. Throws std::system_error when there is no memory.
  std::byte* allocate(size_t bytes);
  void release(std::byte* block) noexcept;

  /// Where in the arena the range lies, if it does.
  std::optional<size_t> offset_of(const std::byte* data, size_t bytes) const;

  int descriptor() const { return file_.get(); }
  /// The size of every rank's arena on this host.
  static size_t span();

 private:
  Arena() = default;

  Fd file_;
  std::byte* memory_ = nullptr;
  std::map<size_t, size_t> free_;  // offset → bytes, never adjacent
  std::map<size_t, size_t> used_;
};

/// The mapped arenas of the other ranks of the host, by their index there; unmapped by the destructor.
class PeerArenas {
 public:
  explicit PeerArenas(int ranks) : memory_(ranks) {}
  PeerArenas(PeerArenas&&) = default;
  PeerArenas& operator=(PeerArenas&&) = default;
  ~PeerArenas();

  /// Throws std::system_error.
  void attach(int index, const Fd& file);
  std::byte* memory(int index) const { return memory_[index]; }

 private:
  std::vector<std::byte*> memory_;
};

}  // namespace ringwise::coll
