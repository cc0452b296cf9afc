// One operation of a group, as the lane runs it. Plain data: the caller owns `input` and `output` and keeps them
// alive until the operation has settled.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

namespace ringwise::coll {

/// Orders of Verb and ReduceOp are the wire format's and those of the lists in backends/host.ts.
enum class Verb : uint8_t { AllReduce, Broadcast, AllGather, ReduceScatter, Send, Recv, Barrier };
enum class ReduceOp : uint8_t { Sum, Avg, Prod, Min, Max, Band, Bor, Bxor, PremulSum };

inline constexpr int kVerbCount = 7;
inline constexpr int kReduceOpCount = 9;

struct Op {
  Verb verb = Verb::Barrier;
  DType dtype = DType::UInt8;
  ReduceOp reduce = ReduceOp::Sum;
  int root = 0;              // broadcast: the root; send and recv: the peer
  uint64_t seq = 0;          // collectives: position in the group; send and recv: position in the pair's direction
  uint64_t count = 0;        // elements: of the buffer; of the input for allGather; of the output for reduceScatter
  double factor = 1;         // premulSum
  const std::byte* input = nullptr;   // equals output for verbs that work in place
  std::byte* output = nullptr;
  int64_t timeout_ns = 0;
  int64_t deadline_ns = 0;   // set when the operation is handed to the group
  uint64_t id = 0;

  bool is_point_to_point() const { return verb == Verb::Send || verb == Verb::Recv; }
};

}  // namespace ringwise::coll
