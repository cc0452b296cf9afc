// Pipelined chain for large buffers (see Chan, Heimlich, Purkayastha, van de Geijn, "Collective communication: theory,
// practice, and experience", 2007): every rank passes each chunk to its successor while the next one arrives.
// ⌈S / chunk⌉ + n − 2 steps; S bytes in, S bytes out.
#include <algorithm>

#include "coll/algo/algorithms.h"

namespace ringwise::coll {

namespace {
constexpr size_t kChunk = 128 * 1024;  // bytes
}

void chain_broadcast(const Op& op, int rank, int size, Schedule& schedule) {
  const int v = (rank - op.root + size) % size;
  const int next = v + 1 < size ? (rank + 1) % size : -1;
  const int previous = v > 0 ? (rank - 1 + size) % size : -1;
  const size_t element = byte_size(op.dtype);
  const size_t per_chunk = kChunk / element;
  const auto chunk = [&](Region region, size_t begin) {
    return Piece{region, begin * element, std::min<size_t>(per_chunk, op.count - begin)};
  };

  handshake_all(rank, size, schedule);
  if (previous < 0 || next < 0) {
    for (size_t begin = 0; begin < op.count; begin += per_chunk) {
      schedule.exchange(next, next < 0 ? Piece{} : chunk(Region::Input, begin), previous,
                        previous < 0 ? Piece{} : chunk(Region::Output, begin), Take::Store);
    }
    return;
  }
  schedule.exchange(-1, {}, previous, chunk(Region::Output, 0), Take::Store);
  size_t begin = 0;
  for (; begin + per_chunk < op.count; begin += per_chunk) {
    schedule.exchange(next, chunk(Region::Output, begin), previous, chunk(Region::Output, begin + per_chunk),
                      Take::Store);
  }
  schedule.exchange(next, chunk(Region::Output, begin), -1, {}, Take::Store);
}

}  // namespace ringwise::coll
