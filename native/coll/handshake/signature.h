// What an operation is, in 64 bytes that open its traffic on every link. The receiver compares them with its own
// operation before it touches a buffer, so that ranks which disagree get a sentence instead of a wrong number.
#pragma once

#include <cstdint>
#include <string>

#include "coll/failure/failure.h"
#include "coll/op.h"

namespace ringwise::coll {

struct alignas(64) Signature {
  uint32_t magic;
  uint8_t version;
  uint8_t verb;  // send for both ends of a pair
  uint8_t dtype;
  uint8_t reduce;
  int32_t root;    // broadcast, reduce, gather, scatter: the root; send: the receiver; otherwise -1
  int32_t source;  // send: the sender, -1 in a receive from any rank; otherwise -1
  uint64_t seq;
  uint64_t count;     // where parts differ: of all parts together; allToAll: of the part that goes to the addressee
  uint32_t parts;     // where parts differ: a hash of their sizes; otherwise 0
  int32_t tag;        // as in Op
  uint8_t algorithm;  // over links: the number among the verb's algorithms (see choose.h); otherwise 0
  uint8_t wire;
  uint8_t runs_ahead;  // of a handshake over links: its sender does not wait for the answer; not compared
  uint8_t padding;
  uint32_t tuning;    // over links: the digest of the rules that RINGWISE_TUNING gives (see tuning.h)
  uint64_t returned;  // allToAll: the count of the part that the addressee sends back; otherwise 0
  uint64_t label;     // as in Op
};
static_assert(sizeof(Signature) == 64);

/// "allReduce"
const char* name_of(Verb verb);
/// "sum"
const char* name_of(ReduceOp reduce);

/// The signature of `op` as rank `rank` of `size` runs it. For allToAll, without any part's count.
Signature signature_of(const Op& op, int rank, int size);

/// The handshake that goes to `peer`, and the one that has to come from it, for `signature`. Only allToAll differs between peers.
Signature handshake_to(const Signature& signature, const Op& op, int peer);
Signature handshake_from(const Signature& signature, const Op& op, int peer);

/// Whether `signature` can be the header of a message from rank `from` to rank `to`.
bool is_message(const Signature& signature, int from, int to);

/// Whether both are of the same operation.
bool same(const Signature& a, const Signature& b);

/// What `rank` called: "allReduce sum 4096 × float32 (seq 7)", or a note that the bytes are no signature at all.
std::string describe(const Signature& signature, int rank);

/// Says that two ranks run different operations; the same text on both sides. `mine` is what `peer` should have sent.
Failure disagreement(int rank, const Signature& mine, int peer, const Signature& theirs);

}  // namespace ringwise::coll
