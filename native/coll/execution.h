// Carries out one schedule over the links, a bit at a time: advance() moves what can be moved and never waits.
// First the greetings, then the steps in order. Outgoing data may overtake the incoming greetings; incoming data
// and everything that writes the caller's output wait until all greetings have come and agree.
#pragma once

#include <memory>
#include <vector>

#include "coll/schedule.h"
#include "coll/signature.h"
#include "coll/transport/link.h"

namespace ringwise::coll {

/// Links by rank of the group; null at the own rank. Owned by the group.
using Links = std::vector<std::unique_ptr<Link>>;

class Execution {
 public:
  /// Plans `op` for `rank` of `size`. The object is reused: in a steady loop nothing is allocated here.
  void begin(const Op& op, int rank, int size);

  /// Moves what can be moved now; true if anything was. Throws Failure when ranks disagree.
  bool advance(Links& links);

  bool done() const;
  const Op& op() const { return op_; }
  const Signature& signature() const { return signature_; }

  /// The ranks whose action this one waits for, each once.
  void waiting_for(std::vector<int>& ranks) const;

 private:
  bool greet(Links& links);
  bool hear_greetings(Links& links);
  bool heard_all() const { return heard_count_ == schedule_.greeted_by.size(); }
  bool run_step(Links& links);
  bool push(const Step& step, Link& link);
  bool pull(const Step& step, Link& link);
  void work(const Step& step);
  std::byte* at(const Piece& piece) const;

  Op op_;
  int rank_ = 0;
  int size_ = 1;
  size_t element_ = 1;  // bytes
  Signature signature_{};
  Schedule schedule_;
  std::vector<std::byte> scratch_memory_;
  std::byte* scratch_ = nullptr;  // scratch_memory_, aligned

  size_t greet_index_ = 0;    // greetings sent completely
  size_t greet_offset_ = 0;   // bytes of the one under way
  std::vector<char> heard_;   // by index in schedule_.greeted_by
  size_t heard_count_ = 0;
  size_t step_ = 0;
  size_t pushed_ = 0;         // bytes of the current step's outgoing message, padding included
  size_t pulled_ = 0;
};

}  // namespace ringwise::coll
