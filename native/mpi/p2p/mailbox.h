// Sends and receives of one rank; they neither wait for a collective nor hold one up.
//
// A message is an envelope, with its memory inside if it is short. Envelopes are matched here, not by MPI: a receive
// may be for any sender, and what it takes must have its length and type before a byte of its memory is written. For a
// long message the receiver answers the envelope when it is ready, and then MPI moves it from memory to memory.
//
// Used by whoever owns the engine. Memory of the operations is theirs who post them, until they have ended.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <utility>
#include <vector>

#include "coll/handshake/signature.h"
#include "coll/op.h"
#include "mpi/p2p/outbox.h"
#include "mpi/p2p/request.h"

namespace ringwise::mpi {

class Mailbox {
 public:
  struct Pending {
    coll::Op op;
    int peer = -1;         // the other side; unknown while a receive from any rank has found no message
    uint64_t message = 0;  // of a long send: its number
    Request moving;        // of a long message that both sides know of
    size_t moved = 0;      // elements of it that have arrived, less the piece under way
    bool is_moving = false;
  };
  using OnEnd = std::function<void(const coll::Op& op, int source)>;

  /// `on_end` is called from `post` and `advance`, once per operation.
  Mailbox(MPI_Comm comm, int rank, int size, Outbox& outbox, OnEnd on_end);
  ~Mailbox();

  void post(const coll::Op& op);
  /// Moves what can be moved now; true if anything was. Throws Failure when a receive disagrees with its message.
  bool advance();
  /// Forgets everything, without calling `on_end`: the operations, and whether MPI goes on using their memory.
  std::vector<std::pair<coll::Op, bool>> clear();
  /// What has not ended, in the order of posting.
  const std::list<Pending>& pending() const { return pending_; }
  /// Messages to and from a rank so far, those included that nobody has received yet.
  uint64_t sent_to(int peer) const { return sent_[static_cast<size_t>(peer)]; }
  uint64_t come_from(int peer) const { return come_[static_cast<size_t>(peer)]; }

 private:
  struct Envelope {
    coll::Signature signature;
    uint64_t message;  // 0: the memory follows here
  };
  /// A message that came before its receive.
  struct Early {
    Envelope envelope;
    int from;
    std::string inside;
  };
  static constexpr size_t kShort = 8192;  // bytes that travel in the envelope

  void listen();
  bool take_envelope();
  bool take_clear();
  bool fits(const Pending& receive, const Early& early) const;
  void match(std::list<Pending>::iterator receive, const Early& early);
  void begin_move(Pending& pending, uint64_t message);
  void move_piece(Pending& pending);
  std::list<Pending>::iterator end(std::list<Pending>::iterator pending, int source);

  MPI_Comm comm_;
  int rank_;
  int size_;
  Outbox& outbox_;
  OnEnd on_end_;
  uint64_t messages_ = 0;       // long ones sent
  std::vector<uint64_t> sent_;  // by rank
  std::vector<uint64_t> come_;  // by rank
  std::list<Pending> pending_;  // a list: MPI holds pointers into it
  std::list<Early> early_;      // in the order of arrival
  std::vector<char> incoming_;  // an envelope
  uint64_t cleared_ = 0;        // the number of a long message whose receiver is ready
  Request envelope_;            // after incoming_, and the next after cleared_: cancelled before these go
  Request clear_;
};

}  // namespace ringwise::mpi
