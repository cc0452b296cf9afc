// One operation of a group, as plain data. The caller owns the memory that its pointers refer to, and keeps it alive
// until the operation has ended.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

namespace ringwise::coll {

/// The numbers of Verb, ReduceOp and Wire are part of the wire format and equal the order of the lists in
/// packages/collectives/src: all-verbs.ts, reduce-ops.ts, backends/native-lane.ts.
enum class Verb : uint8_t {
  AllReduce,
  Broadcast,
  AllGather,
  ReduceScatter,
  Send,
  Recv,
  Barrier,
  Reduce,
  Gather,
  Scatter,
  AllToAll
};
enum class ReduceOp : uint8_t { Sum, Avg, Prod, Min, Max, Band, Bor, Bxor, PremulSum };
/// The dtype in which a float32 all-reduce (sum or avg) sends its values between hosts (see wire.h). Full sends them
/// unrounded.
enum class Wire : uint8_t { Full, BFloat16, Int8 };

inline constexpr int kVerbCount = 11;
inline constexpr int kReduceOpCount = 9;
inline constexpr int kWireCount = 3;

constexpr bool reduces(Verb verb) {
  return verb == Verb::AllReduce || verb == Verb::ReduceScatter || verb == Verb::Reduce;
}
constexpr bool has_root(Verb verb) {
  return verb == Verb::Broadcast || verb == Verb::Reduce || verb == Verb::Gather || verb == Verb::Scatter;
}

struct Op {
  Verb verb = Verb::Barrier;
  DType dtype = DType::UInt8;
  ReduceOp reduce = ReduceOp::Sum;
  Wire wire = Wire::Full;
  int root = 0;        // broadcast, reduce, gather, scatter: the root; send, recv: the peer, -1 for any sender
  int tag = 0;         // send, recv: the tag; collectives: their `packing` (packages/collectives/src/backend.ts)
  uint64_t label = 0;  // collectives: number of the label (see labels.h), 0 for none
  uint64_t seq = 0;    // collectives: position in the group; send and recv: position in the pair's direction
  uint64_t count =
      0;              // elements of the buffer; allGather, gather: of the input; reduceScatter, scatter: of the output;
                      // allToAll: of one part
  double factor = 1;  // premulSum
  // sum, avg of floating types: the bits do not depend on the order of the additions (see reduce/grid.h). Only on a
  // board, where one rank reads the elements of all.
  bool reproducible = false;
  const std::byte* input = nullptr;  // equals output for verbs that work in place
  std::byte* output = nullptr;
  float* residual = nullptr;            // Wire::Int8: as many elements as the buffer (see wire.h), or null
  const size_t* counts = nullptr;       // by rank, elements of uneven parts; allToAll: of those that this rank sends
  const size_t* recv_counts = nullptr;  // by rank, allToAll with counts: elements that this rank receives
  int64_t timeout_ns = 0;
  int64_t deadline_ns = 0;  // on the monotonic clock; 0 until the group starts the operation's clock
  uint64_t id = 0;
  uint32_t record = 0;  // index of its slot in the flight recorder; 0 for none

  bool is_point_to_point() const { return verb == Verb::Send || verb == Verb::Recv; }
};

}  // namespace ringwise::coll
