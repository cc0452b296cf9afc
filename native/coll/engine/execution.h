// Carries out one schedule over the links, a bit at a time: advance() moves what can be moved and never waits.
// First the handshakes, then the sends and the steps side by side. Outgoing data may overtake the incoming handshakes;
// incoming data and everything that writes the caller's output wait until all handshakes have come and agree. A rank
// that only sends need not wait for them at all: it is done before, and compares them in later operations. To such a
// rank those that only receive answer late, several operations at once.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "coll/handshake/deferred_handshakes.h"
#include "coll/handshake/pending_handshakes.h"
#include "coll/handshake/signature.h"
#include "coll/plan/choose.h"
#include "coll/plan/schedule.h"
#include "coll/transport/link.h"

namespace ringwise::coll {

/// Links by rank of the group; null at the own rank. Owned by the group.
using Links = std::vector<std::unique_ptr<Link>>;

class Execution {
 public:
  /// Plans `op` by `algorithm`. The object is reused: in a steady loop nothing is allocated here. With `may_run_ahead` it
  /// is done before the others have come to it, where this rank only sends little, and what it says may be kept back,
  /// where it only receives; then it stays with the same links.
  void begin(const Op& op, const Topology& topology, const Algorithm& algorithm, bool may_run_ahead = false);

  /// Moves what can be moved now; true if anything was. Throws Failure when ranks disagree.
  bool advance(Links& links);

  bool done() const;
  /// Whether it ends without waiting for the others.
  bool runs_ahead() const { return runs_ahead_; }
  /// Says what has been kept back, as far as there is room; of an operation under way, in the next `advance`.
  void speak_up(Links& links);
  /// What it still has to say of operations that are done.
  const DeferredHandshakes& deferred() const { return deferred_; }
  /// What they still have to say of this operation and of those before it.
  PendingHandshakes& pending() { return pending_; }
  const Op& op() const { return op_; }
  Op& op() { return op_; }
  const Signature& signature() const { return signature_; }
  /// The name of the algorithm.
  const char* algorithm() const { return algorithm_; }

  /// How long the rest of the message that is coming in will take at the rate of what came so far; 0 without one, or if
  /// that is more than some Gbit/s.
  int64_t rest_ns() const;

  /// The ranks whose action this one waits for, each once.
  void waiting_for(std::vector<int>& ranks) const;

 private:
  bool send_handshakes(Links& links);
  bool handshake_goes_with_message() const;
  bool receive_handshakes(Links& links);
  void find_role(bool may_run_ahead);
  bool run_ahead(Links& links);
  Signature handshake_for(int peer) const;
  void answer_handshake(int peer, bool is_ahead, Link& link);
  void say_held(int peer, Link& link);
  bool heard_all() const { return heard_count_ == schedule_.handshake_sources.size(); }
  bool run_send(Links& links);
  bool run_step(Links& links);
  bool push(const Send& send, Link& link);
  bool pull(const Step& step, Link& link);
  size_t may_pull(const Step& step) const;
  void take(const Step& step, std::span<const std::byte> bytes, size_t count);
  void work(const Step& step);
  std::byte* at(const Piece& piece) const;
  size_t width(const Piece& message) const;
  size_t padded_bytes(const Piece& message) const;

  Op op_;
  int rank_ = 0;
  int size_ = 1;
  size_t element_ = 1;      // bytes
  size_t accumulator_ = 1;  // the same
  const char* algorithm_ = "";
  Signature signature_{};
  Schedule schedule_;
  std::vector<std::byte> scratch_memory_;
  std::byte* scratch_ = nullptr;  // scratch_memory_, aligned

  size_t handshake_index_ = 0;   // handshakes sent completely
  size_t handshake_offset_ = 0;  // bytes of the one under way
  std::vector<char> heard_;      // by index in schedule_.handshake_sources
  size_t heard_count_ = 0;
  bool runs_ahead_ = false;
  PendingHandshakes pending_;
  DeferredHandshakes deferred_;
  std::vector<int> late_;          // ranks that get this rank's handshake only after theirs has come
  std::vector<uint8_t> ahead_in_;  // by rank: the verb in which it ran ahead when it was last heard, or kVerbCount
  size_t send_ = 0;
  size_t pushed_ = 0;  // bytes of the current send, padding included
  size_t step_ = 0;
  size_t pulled_ = 0;          // bytes of the current step's message, padding included
  int64_t pull_begin_ns_ = 0;  // when the first of them came
  size_t pull_begin_ = 0;      // and how many they were
};

}  // namespace ringwise::coll
