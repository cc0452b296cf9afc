// Sends and receives of one rank, which never wait for collectives or delay them.
//
// A message is an envelope, which contains the payload if it is short. This class matches envelopes, not MPI, because a
// receive may be from any sender, and length and type must be compared before its memory is written. For a long
// message, the receiver answers the envelope when it is ready, and then MPI moves the payload from memory to memory.
//
// Used only by the thread that holds the engine. The caller owns the memory of operations and keeps it alive until they
// have ended.
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
    int peer = -1;         // the other side; -1 while a receive from any rank has found no message
    uint64_t message = 0;  // number of a long send
    Request moving;        // the transfer of a long message
    size_t moved = 0;      // elements of a long message that have been moved, without the current piece
    bool is_moving = false;
  };
  using OnEnd = std::function<void(const coll::Op& op, int source)>;

  /// Starts to listen. `on_end` is called from `post` and `advance`, once per operation.
  Mailbox(MPI_Comm comm, int rank, int size, Outbox& outbox, OnEnd on_end);
  ~Mailbox();

  void post(const coll::Op& op);
  /// Moves the data that can move now; returns true if any did. Throws Failure when a receive disagrees with its
  /// message.
  bool advance();
  /// Drops all operations without calling `on_end`. Returns them, and for each whether MPI goes on using its memory.
  std::vector<std::pair<coll::Op, bool>> clear();
  /// Returns the operations that have not ended, in the order of posting.
  const std::list<Pending>& pending() const { return pending_; }
  /// Return the number of messages to and from a rank so far, including those without a receive.
  uint64_t sent_to(int peer) const { return sent_[static_cast<size_t>(peer)]; }
  uint64_t come_from(int peer) const { return come_[static_cast<size_t>(peer)]; }

 private:
  struct Envelope {
    coll::Signature signature;
    uint64_t message;  // number of a long message; 0 if the payload follows the envelope
  };
  /// A message that arrived before its receive was posted.
  struct Early {
    Envelope envelope;
    int from;
    std::string inside;
  };
  static constexpr size_t kShort = 8192;  // most payload bytes inside an envelope

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
  uint64_t messages_ = 0;       // long messages sent so far
  std::vector<uint64_t> sent_;  // by rank
  std::vector<uint64_t> come_;  // by rank
  std::list<Pending> pending_;  // a list: MPI holds pointers into it
  std::list<Early> early_;      // in the order of arrival
  std::vector<char> incoming_;  // the envelope that MPI receives
  uint64_t cleared_ = 0;        // the number of a long message whose receiver is ready
  Request envelope_;            // this and clear_ are last: cancelled before incoming_ and cleared_ are destroyed
  Request clear_;
};

}  // namespace ringwise::mpi
