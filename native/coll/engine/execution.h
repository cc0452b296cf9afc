// Carries out one schedule over the links in small portions: advance() moves the data that can move now and never
// waits. An operation begins with the handshakes; after them, the sends and the steps run side by side. Outgoing data
// may leave before the incoming handshakes have arrived. Incoming data, and all work that writes the caller's output,
// wait until all handshakes have arrived and agree. A rank that only sends does not wait for the handshakes of its
// peers (it "runs ahead"): its operation ends at once, and it compares the pending handshakes in later operations.
// Ranks that only receive may defer their handshakes to such a rank and send those of several operations together.
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

/// Links indexed by rank; null at this rank. Owned by the group.
using Links = std::vector<std::unique_ptr<Link>>;

class Execution {
 public:
  /// Plans `op` with `algorithm`. The object is reused, so a steady loop allocates nothing here. With `may_run_ahead`,
  /// the operation may end before the peers have begun it if this rank only sends small messages, and this rank may
  /// defer its handshakes if it only receives small ones. All later calls must then use the same links.
  void begin(const Op& op, const Topology& topology, const Algorithm& algorithm, bool may_run_ahead = false);

  /// Moves the data that can move now; returns true if any did. Throws Failure when ranks disagree.
  bool advance(Links& links);

  bool done() const;
  /// Returns whether the operation ends without waiting for the handshakes of its peers.
  bool runs_ahead() const { return runs_ahead_; }
  /// Sends the deferred handshakes that the links have room for. Those of the running operation go with the next
  /// `advance`.
  void send_deferred(Links& links);
  /// Returns the handshakes, of this operation and earlier ones, that this rank has deferred and not sent yet.
  const DeferredHandshakes& deferred() const { return deferred_; }
  /// Returns the handshakes that peers have yet to send, for this operation and earlier ones.
  PendingHandshakes& pending() { return pending_; }
  const Op& op() const { return op_; }
  Op& op() { return op_; }
  const Signature& signature() const { return signature_; }
  /// Returns the algorithm's name, a string literal.
  const char* algorithm() const { return algorithm_; }

  /// Estimates how long the rest of the incoming message will take, from the rate so far. Returns 0 if no long message
  /// is arriving, or if the rate is above a few Gbit/s.
  int64_t rest_ns() const;

  /// Sets `ranks` to the ranks whose action this one waits for, each once.
  void waiting_for(std::vector<int>& ranks) const;

 private:
  bool send_handshakes(Links& links);
  bool handshake_goes_with_message() const;
  bool receive_handshakes(Links& links);
  void find_role(bool may_run_ahead);
  bool run_ahead(Links& links);
  Signature handshake_for(int peer) const;
  void answer_handshake(int peer, bool is_ahead, Link& link);
  void send_deferred_to(int peer, Link& link);
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
  size_t accumulator_ = 1;  // bytes
  const char* algorithm_ = "";
  Signature signature_{};
  Schedule schedule_;
  std::vector<std::byte> scratch_memory_;
  std::byte* scratch_ = nullptr;  // scratch_memory_, aligned

  size_t handshake_index_ = 0;   // handshakes sent completely
  size_t handshake_offset_ = 0;  // bytes sent of the current handshake
  std::vector<char> heard_;      // by index in schedule_.handshake_sources
  size_t heard_count_ = 0;
  bool runs_ahead_ = false;
  PendingHandshakes pending_;
  DeferredHandshakes deferred_;
  std::vector<int> late_;          // ranks that get this rank's handshake only after theirs has arrived
  std::vector<uint8_t> ahead_in_;  // by rank: the verb of its last handshake if it ran ahead in it, else kVerbCount
  size_t send_ = 0;
  size_t pushed_ = 0;  // bytes of the current send, padding included
  size_t step_ = 0;
  size_t pulled_ = 0;          // bytes of the current step's message, padding included
  int64_t pull_begin_ns_ = 0;  // when the first bytes of the current message arrived, if it is long
  size_t pull_begin_ = 0;      // how many bytes arrived then; 0 if it is not long
};

}  // namespace ringwise::coll
