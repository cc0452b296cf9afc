// Sends and receives of one rank, which never wait for collectives or delay them.
//
// Each message begins with an envelope. The envelope of a short message contains the payload. This class, not MPI,
// matches messages with receives, because it compares length and type before the receiver's memory is written, also for
// a receive from any rank. For a long
// message, the receiver answers the envelope when it is ready, and then MPI moves the payload from memory to memory.
//
// Used by one thread at a time: the thread that polls the group, or after the goodbye the one that frees retired
// channels (channel.h). The caller owns the memory of operations and keeps it alive until they have ended.
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
    uint64_t message = 0;  // number of a long message, which its sender gave it
    Request moving;        // the transfer of a long message
    size_t moved = 0;      // elements of a long message that have been moved, without the current piece
    bool is_moving = false;
  };
  /// `source`: rank of the sender for a receive, -1 for a send.
  using OnEnd = std::function<void(const coll::Op& op, int source)>;

  /// Starts to receive. `on_end` is called from `post` and `advance`, once for each operation that succeeds.
  Mailbox(MPI_Comm comm, int rank, int size, Outbox& outbox, OnEnd on_end);
  ~Mailbox();

  /// Begins a send or receive. Throws Failure when a receive disagrees with a message that has already arrived.
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
  uint64_t received_from(int peer) const { return come_[static_cast<size_t>(peer)]; }

 private:
  struct Envelope {
    coll::Signature signature;
    uint64_t message;  // number of a long message; 0 if the payload follows the envelope
  };
  /// A message whose envelope has arrived.
  struct Arrived {
    Envelope envelope;
    int from;
    std::string inside;  // the payload of a short message
  };
  static constexpr size_t kShort = 8192;  // most payload bytes inside an envelope

  void listen();
  bool take_envelope();
  bool take_ready();
  bool fits(const Pending& receive, const Arrived& message) const;
  void match(std::list<Pending>::iterator receive, const Arrived& message);
  void begin_move(Pending& pending, uint64_t message);
  void move_piece(Pending& pending);
  std::list<Pending>::iterator end(std::list<Pending>::iterator pending, int source);

  MPI_Comm comm_;
  int rank_;
  int size_;
  Outbox& outbox_;
  OnEnd on_end_;
  uint64_t messages_ = 0;       // long messages sent so far
  std::vector<uint64_t> sent_;  // number of messages by receiver
  std::vector<uint64_t> come_;  // number of messages that have arrived, by sender
  std::list<Pending> pending_;  // a list: operations end in any order, and iterators to the others stay valid
  std::list<Arrived> early_;    // messages without a receive, in the order of arrival
  std::vector<char> incoming_;  // the envelope that MPI receives
  uint64_t ready_message_ = 0;  // the number of a long message whose receiver is ready
  Request envelope_;            // this and ready_ are last: cancelled before incoming_ and ready_message_ are destroyed
  Request ready_;
};

}  // namespace ringwise::mpi
