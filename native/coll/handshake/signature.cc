#include "coll/handshake/signature.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <numeric>

#include "coll/handshake/labels.h"
#include "coll/plan/choose.h"
#include "coll/reduce/wire.h"

namespace ringwise::coll {

namespace {
constexpr uint32_t kMagic = 0x31475752;  // "RWG1"
constexpr uint8_t kVersion = 1;
constexpr uint64_t kMaxCount =
    uint64_t{1} << 48;  // larger counts are treated as garbage; the bytes of kMaxCount elements still fit a size_t
constexpr const char* kVerbs[kVerbCount] = {"allReduce", "broadcast", "allGather", "reduceScatter", "send",    "recv",
                                            "barrier",   "reduce",    "gather",    "scatter",       "allToAll"};
constexpr const char* kOps[kReduceOpCount] = {"sum", "avg", "prod", "min", "max", "band", "bor", "bxor", "premulSum"};

/// Returns a hash (FNV-1a) of the ranks' counts, never 0.
uint32_t hash_of(const size_t* counts, int size) {
  uint64_t hash = 0xcbf29ce484222325;
  for (int rank = 0; rank < size; ++rank) {
    for (int shift = 0; shift < 64; shift += 8) hash = (hash ^ ((counts[rank] >> shift) & 0xff)) * 0x100000001b3;
  }
  return static_cast<uint32_t>(hash ^ (hash >> 32)) | 1;
}

std::string hex(uint32_t number) {
  char digits[9];
  std::snprintf(digits, sizeof digits, "%x", number);
  return digits;
}

/// Returns " by ring" or the like, for messages about ranks whose algorithms or tuning rules differ.
std::string by_algorithm(const Signature& s) {
  const auto known = algorithms_of(static_cast<Verb>(s.verb));
  std::string text =
      s.algorithm == 0 || s.algorithm > known.size() ? "" : std::string(" by ") + known[s.algorithm - 1].name;
  return s.tuning == 0 ? text : text + " with RINGWISE_TUNING " + hex(s.tuning);
}

/// Returns text such as "rank 0 called allToAll 3 × int32 for rank 1 (seq 7)".
std::string describe_part(const Signature& s, int rank, uint64_t count, const char* direction, int other) {
  return "rank " + std::to_string(rank) + " called allToAll " + std::to_string(count) + " × " +
         name_of(static_cast<DType>(s.dtype)) + direction + std::to_string(other) +
         (s.label != 0 ? ' ' + describe_label(s.label) : "") + " (seq " + std::to_string(s.seq) + ")";
}

/// Returns the failure of an allToAll whose ranks differ about the size of a part: the part that the lower rank sends,
/// or the other part if they agree about that one.
Failure parts_disagreement(int rank, const Signature& mine, int peer, const Signature& theirs) {
  const auto failure = [&](int from, uint64_t sent, int to, uint64_t expected) -> Failure {
    return {FailureCode::Mismatch,
            std::min(from, to),
            {std::min(from, to), std::max(from, to)},
            describe_part(mine, from, sent, " for rank ", to) + " but " +
                describe_part(mine, to, expected, " from rank ", from)};
  };
  const bool is_ours = mine.returned != theirs.returned && (mine.count == theirs.count || rank < peer);
  return is_ours ? failure(rank, mine.returned, peer, theirs.returned) : failure(peer, theirs.count, rank, mine.count);
}
}  // namespace

const char* name_of(Verb verb) { return kVerbs[static_cast<int>(verb)]; }

const char* name_of(ReduceOp reduce) { return kOps[static_cast<int>(reduce)]; }

Signature signature_of(const Op& op, int rank, int size) {
  Signature signature{};
  signature.magic = kMagic;
  signature.version = kVersion;
  signature.verb = static_cast<uint8_t>(op.verb == Verb::Recv ? Verb::Send : op.verb);
  signature.dtype = static_cast<uint8_t>(op.dtype);
  signature.reduce = reduces(op.verb) ? static_cast<uint8_t>(op.reduce) : 0;
  signature.root = has_root(op.verb) || op.verb == Verb::Send ? op.root : op.verb == Verb::Recv ? rank : -1;
  signature.source = op.verb == Verb::Send ? rank : op.verb == Verb::Recv ? op.root : -1;
  signature.tag = op.tag;
  signature.wire = static_cast<uint8_t>(op.wire);
  signature.reproducible = op.reproducible ? 1 : 0;
  signature.label = op.label;
  signature.seq = op.seq;
  if (op.verb == Verb::AllToAll) return signature;
  signature.count = op.count;
  // Explicit counts that are all equal mean the same operation as even parts.
  if (op.counts == nullptr || std::all_of(op.counts, op.counts + size, [&](size_t n) { return n == op.counts[0]; }))
    return signature;
  signature.count = std::accumulate(op.counts, op.counts + size, size_t{0});
  signature.parts = hash_of(op.counts, size);
  return signature;
}

Signature handshake_to(const Signature& signature, const Op& op, int peer) {
  Signature handshake = signature;
  if (op.verb != Verb::AllToAll) return handshake;
  handshake.count = op.counts != nullptr ? op.counts[peer] : op.count;
  handshake.returned = op.recv_counts != nullptr ? op.recv_counts[peer] : op.count;
  return handshake;
}

Signature handshake_from(const Signature& signature, const Op& op, int peer) {
  Signature handshake = handshake_to(signature, op, peer);
  if (op.verb == Verb::AllToAll) std::swap(handshake.count, handshake.returned);
  return handshake;
}

bool is_message(const Signature& s, int from, int to) {
  return s.magic == kMagic && s.version == kVersion && s.verb == static_cast<uint8_t>(Verb::Send) &&
         s.dtype < kDTypeCount && s.source == from && s.root == to && s.count <= kMaxCount;
}

bool same(const Signature& a, const Signature& b) {
  Signature likewise = a;
  likewise.runs_ahead = b.runs_ahead;
  return std::memcmp(&likewise, &b, sizeof(Signature)) == 0;
}

std::string describe(const Signature& s, int rank) {
  if (s.magic != kMagic || s.verb >= kVerbCount || s.dtype >= kDTypeCount || s.reduce >= kReduceOpCount) {
    return "something that is no ringwise operation";
  }
  const Verb verb = static_cast<Verb>(s.verb);
  const bool receives = verb == Verb::Send && s.root == rank;
  std::string text = kVerbs[static_cast<int>(receives ? Verb::Recv : verb)];
  const auto add = [&](const char* words, auto value) { text.append(words).append(std::to_string(value)); };
  if (s.reproducible != 0) text.append(" reproducible");
  if (reduces(verb)) text.append(" ").append(kOps[s.reduce]);
  if (verb != Verb::Barrier) {
    if (verb != Verb::AllToAll) add(" ", s.count);
    text.append(verb != Verb::AllToAll ? " × " : " ").append(name_of(static_cast<DType>(s.dtype)));
  }
  if (s.wire != 0 && s.wire < kWireCount) text.append(" over ").append(name_of(static_cast<Wire>(s.wire)));
  if (s.parts != 0) text.append(" in uneven parts ").append(hex(s.parts));
  if (has_root(verb)) add(verb == Verb::Broadcast || verb == Verb::Scatter ? " from rank " : " to rank ", s.root);
  if (verb == Verb::Send) {
    if (receives && s.source < 0) {
      text.append(" from any rank");
    } else {
      add(receives ? " from rank " : " to rank ", receives ? s.source : s.root);
    }
    if (s.tag != 0) add(" with tag ", s.tag);
    return text;
  }
  if (s.tag != 0) text.append(" with digest ").append(hex(static_cast<uint32_t>(s.tag)));
  if (s.label != 0) text.append(" ").append(describe_label(s.label));
  add(" (seq ", s.seq);
  return text.append(")");
}

Failure disagreement(int rank, const Signature& mine, int peer, const Signature& theirs) {
  Signature likewise = mine;
  likewise.count = theirs.count;
  likewise.returned = theirs.returned;
  if (mine.verb == static_cast<uint8_t>(Verb::AllToAll) && same(likewise, theirs))
    return parts_disagreement(rank, mine, peer, theirs);
  if (peer < rank) return disagreement(peer, theirs, rank, mine);
  likewise = mine;
  likewise.algorithm = theirs.algorithm;
  likewise.tuning = theirs.tuning;
  const bool by = same(likewise, theirs);
  return {FailureCode::Mismatch,
          rank,
          {rank, peer},
          "rank " + std::to_string(rank) + " called " + describe(mine, rank) + (by ? by_algorithm(mine) : "") +
              " but rank " + std::to_string(peer) + " called " + describe(theirs, peer) +
              (by ? by_algorithm(theirs) : "")};
}

}  // namespace ringwise::coll
