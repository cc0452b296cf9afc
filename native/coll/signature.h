// What an operation is, in 64 bytes that open its traffic on every link. The receiver compares them with its own
// operation before it touches a buffer, so that ranks which disagree get a sentence instead of a wrong number.
#pragma once

#include <cstdint>
#include <string>

#include "coll/failure.h"
#include "coll/op.h"

namespace ringwise::coll {

struct alignas(64) Signature {
  uint32_t magic;
  uint8_t version;
  uint8_t verb;  // send for both ends of a pair
  uint8_t dtype;
  uint8_t reduce;
  int32_t root;    // broadcast: the root; send: the receiver; otherwise -1
  int32_t source;  // send: the sender; otherwise -1
  uint64_t seq;
  uint64_t count;
  uint8_t padding[32];
};
static_assert(sizeof(Signature) == 64);

/// The signature of `op` as rank `rank` runs it.
Signature signature_of(const Op& op, int rank);

bool same(const Signature& a, const Signature& b);

/// What `rank` called: "allReduce sum 4096 × float32 (seq 7)", or a note that the bytes are no signature at all.
std::string describe(const Signature& signature, int rank);

/// Says that two ranks run different operations; the same text on both sides.
Failure disagreement(int rank, const Signature& mine, int peer, const Signature& theirs);

}  // namespace ringwise::coll
