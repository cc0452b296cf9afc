// The segment: shared memory of the ranks of one host, with a sleeping word per rank, an alarm, and two rings per
// ordered pair. It is an anonymous memory file that ranks pass as a file descriptor, so it has no name in the file
// system, and the kernel frees it when the last process that uses it ends.
#pragma once

#include <atomic>
#include <cstddef>

#include "base/fd.h"
#include "coll/transport/shm_link.h"

namespace ringwise::coll {

/// Selects one of a pair's rings: the one for collectives, or the one for sends and receives.
enum class Channel : uint8_t { Collectives, PointToPoint };

class Segment {
 public:
  /// Makes a zeroed segment for `ranks` ranks. Throws std::system_error.
  static Segment create(int ranks);
  /// Maps a segment that another rank made. Takes the descriptor; throws std::system_error if it is not a segment.
  static Segment attach(Fd file, int ranks);

  Segment() = default;
  Segment(Segment&& other) noexcept;
  Segment& operator=(Segment&& other) noexcept;
  ~Segment();

  int descriptor() const { return file_.get(); }
  /// Returns the size of a ring in bytes.
  size_t capacity(Channel channel) const;
  /// Returns the ring from rank `from` to rank `to`; both are indices among the ranks of this host.
  ShmRing* ring(Channel channel, int from, int to) const;
  /// Returns the word that is not zero while the rank with this index sleeps (see ShmLink).
  std::atomic<uint32_t>* sleeping(int index) const;
  /// Returns a word that is not zero once a rank of this host knows that the group has failed. The root cause itself
  /// may arrive later, over the control connections.
  std::atomic<uint32_t>* alarm() const;

 private:
  void map();

  Fd file_;
  int ranks_ = 0;
  std::byte* memory_ = nullptr;  // mapped shared; unmapped by the destructor
};

}  // namespace ringwise::coll
