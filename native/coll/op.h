// One operation of a group, as the lane runs it. Plain data: the caller owns the memory that it points to and keeps
// it alive until the operation has ended.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

namespace ringwise::coll {

/// Orders of Verb and ReduceOp are the wire format's and those of the lists in backends/host.ts.
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
/// What an all-reduce of float32, sum or avg, sends between hosts: the values, or the values rounded (see wire.h).
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
  int root = 0;        // of broadcast, reduce, gather and scatter; send and recv: the peer, -1 for any sender
  int tag = 0;         // send and recv; a collective on many buffers packed into one: a digest of their lengths
  uint64_t label = 0;  // of a collective: what the program calls it by, see labels.h; 0: nothing
  uint64_t seq = 0;    // collectives: position in the group; send and recv: position in the pair's direction
  uint64_t count = 0;  // elements: of the buffer; of the input for allGather and gather; of the output for
                       // reduceScatter and scatter; of one part for allToAll
  double factor = 1;   // premulSum
  const std::byte* input = nullptr;  // equals output for verbs that work in place
  std::byte* output = nullptr;
  float* residual = nullptr;            // Wire::Int8, may be null: as many elements as the buffer, see wire.h
  const size_t* counts = nullptr;       // by rank, where parts differ: their elements; allToAll: what this rank sends
  const size_t* recv_counts = nullptr;  // by rank, for allToAll with counts: what this rank receives
  int64_t timeout_ns = 0;
  int64_t deadline_ns = 0;  // set when the operation is handed to the group
  uint64_t id = 0;
  uint32_t record = 0;  // the index of its slot in the flight recorder; 0: none

  bool is_point_to_point() const { return verb == Verb::Send || verb == Verb::Recv; }
};

}  // namespace ringwise::coll
