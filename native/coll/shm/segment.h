// The shared memory of the ranks of one host: a sleeping word per rank, two rings per ordered pair. It is an anonymous
// memory file that travels as a file descriptor, so it never has a name, and goes when the last process does.
#pragma once

#include <atomic>
#include <cstddef>

#include "base/fd.h"
#include "coll/transport/shm_link.h"

namespace ringwise::coll {

/// Which of a pair's rings: that of collectives, or that of sends and receives.
enum class Channel : uint8_t { Collectives, PointToPoint };

class Segment {
 public:
  /// Makes a zeroed segment for `ranks` ranks. Throws std::system_error.
  static Segment create(int ranks);
  /// Maps one that another rank made. Takes the descriptor; throws std::system_error when it is not a segment.
  static Segment attach(Fd file, int ranks);

  Segment() = default;
  Segment(Segment&& other) noexcept;
  Segment& operator=(Segment&& other) noexcept;
  ~Segment();

  int descriptor() const { return file_.get(); }
  /// Bytes in a ring.
  size_t capacity(Channel channel) const;
  /// Indices count the ranks of this host.
  ShmRing* ring(Channel channel, int from, int to) const;
  std::atomic<uint32_t>* sleeping(int index) const;
  /// Not zero once a rank of this host knows that the group has failed: the news itself may still be on its way.
  std::atomic<uint32_t>* alarm() const;

 private:
  void map();

  Fd file_;
  int ranks_ = 0;
  std::byte* memory_ = nullptr;  // mapped shared; unmapped by the destructor
};

}  // namespace ringwise::coll
