// The signature of an operation: 64 bytes that begin its traffic on every link. The receiver compares them with its own
// operation before it writes to a buffer, so that ranks which disagree get an error message, not a wrong result.
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
  uint64_t count;     // elements; uneven parts: of all parts together; allToAll: of the part for the addressee
  uint32_t parts;     // uneven parts: a hash of their sizes; otherwise 0
  int32_t tag;        // as in Op
  uint8_t algorithm;  // over links: the number of the verb's algorithm (see number_of in choose.h); otherwise 0
  uint8_t wire;
  uint8_t runs_ahead;    // over links: 1 if the sender does not wait for the receiver's handshake; not compared
  uint8_t reproducible;  // as in Op
  uint32_t tuning;       // over links: digest of the rules in the file that RINGWISE_TUNING names (see tuning.h)
  uint64_t returned;     // allToAll: the count of the part that the addressee sends back; otherwise 0
  uint64_t label;        // as in Op
};
static_assert(sizeof(Signature) == 64);

/// Returns the verb's name, such as "allReduce".
const char* name_of(Verb verb);
/// Returns the reduction's name, such as "sum".
const char* name_of(ReduceOp reduce);

/// Returns the signature of `op` as rank `rank` of `size` runs it. For allToAll, the counts stay 0: they depend on the
/// peer.
Signature signature_of(const Op& op, int rank, int size);

/// Return the handshake to send to `peer`, and the one that `peer` must send. They differ from `signature` only for
/// allToAll.
Signature handshake_to(const Signature& signature, const Op& op, int peer);
Signature handshake_from(const Signature& signature, const Op& op, int peer);

/// Returns whether `signature` can be the header of a message from rank `from` to rank `to`.
bool is_message(const Signature& signature, int from, int to);

/// Returns whether both describe the same operation; ignores `runs_ahead`.
bool same(const Signature& a, const Signature& b);

/// Describes the call of `rank`, such as "allReduce sum 4096 × float32 (seq 7)", or says that the bytes are no
/// signature.
std::string describe(const Signature& signature, int rank);

/// Returns the failure of two ranks that run different operations, with the same text on both sides. `mine` is the
/// signature that `peer` should have sent.
Failure disagreement(int rank, const Signature& mine, int peer, const Signature& theirs);

}  // namespace ringwise::coll
