#include "coll/signature.h"

#include <cstring>

namespace ringwise::coll {

namespace {
constexpr uint32_t kMagic = 0x31475752;  // "RWG1"
constexpr const char* kVerbs[kVerbCount] = {"allReduce", "broadcast", "allGather", "reduceScatter", "send", "recv", "barrier"};
constexpr const char* kOps[kReduceOpCount] = {"sum", "avg", "prod", "min", "max", "band", "bor", "bxor", "premulSum"};
}  // namespace

Signature signature_of(const Op& op, int rank) {
  Signature signature{};
  signature.magic = kMagic;
  signature.version = 1;
  signature.verb = static_cast<uint8_t>(op.verb == Verb::Recv ? Verb::Send : op.verb);
  signature.dtype = static_cast<uint8_t>(op.dtype);
  const bool reduces = op.verb == Verb::AllReduce || op.verb == Verb::ReduceScatter;
  signature.reduce = reduces ? static_cast<uint8_t>(op.reduce) : 0;
  signature.root = op.verb == Verb::Broadcast || op.verb == Verb::Send ? op.root : op.verb == Verb::Recv ? rank : -1;
  signature.source = op.verb == Verb::Send ? rank : op.verb == Verb::Recv ? op.root : -1;
  signature.seq = op.seq;
  signature.count = op.count;
  return signature;
}

bool same(const Signature& a, const Signature& b) { return std::memcmp(&a, &b, sizeof(Signature)) == 0; }

std::string describe(const Signature& s, int rank) {
  if (s.magic != kMagic || s.verb >= kVerbCount || s.dtype >= kDTypeCount || s.reduce >= kReduceOpCount) {
    return "something that is no ringwise operation";
  }
  const Verb verb = static_cast<Verb>(s.verb);
  const bool receives = verb == Verb::Send && s.root == rank;
  std::string text = kVerbs[static_cast<int>(receives ? Verb::Recv : verb)];
  if (verb == Verb::AllReduce || verb == Verb::ReduceScatter) text += std::string(" ") + kOps[s.reduce];
  if (verb != Verb::Barrier) {
    text += " " + std::to_string(s.count) + " × " + name_of(static_cast<DType>(s.dtype));
  }
  if (verb == Verb::Broadcast) text += " from rank " + std::to_string(s.root);
  if (verb == Verb::Send) text += receives ? " from rank " + std::to_string(s.source) : " to rank " + std::to_string(s.root);
  text += " (seq ";
  text += std::to_string(s.seq);
  return text += ")";
}

Failure disagreement(int rank, const Signature& mine, int peer, const Signature& theirs) {
  if (peer < rank) return disagreement(peer, theirs, rank, mine);
  return {FailureCode::Mismatch, rank, {rank, peer},
          "rank " + std::to_string(rank) + " called " + describe(mine, rank) + " but rank " + std::to_string(peer) +
              " called " + describe(theirs, peer)};
}

}  // namespace ringwise::coll
