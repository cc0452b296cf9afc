// Sends and receives of one rank. They have their own links, so they never wait for collectives or delay them.
//
// A message goes to the first posted receive with its tag that names its sender or any rank. Of several messages that
// match, a receive takes the one that was sent first, or for any rank the one that arrived first. A message without a
// posted receive stays in the link, where it needs no memory and flow control stops the sender. It is moved to memory
// only while a posted receive waits for another message, which may come behind it on the same link.
//
// Used only by the thread that owns the engine. The caller owns the buffers of an operation and keeps them alive until
// it has ended.
#pragma once

#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <vector>

#include "coll/engine/execution.h"
#include "coll/handshake/signature.h"
#include "coll/op.h"

namespace ringwise::coll {

class PointToPoint {
 public:
  struct Pending {
    Op op;
    Signature signature;
    bool inline_run = false;
    int peer = -1;                      // the other side; -1 while a receive from any rank has found no message
    size_t moved = 0;                   // bytes of a send that the link has taken, header and padding included
    std::list<Pending>::iterator self;  // in pending_
  };
  using OnEnd = std::function<void(const Pending&)>;

  /// Takes ownership of the links by rank, null at this one. `on_end` is called from `post` and `advance`, once per
  /// operation.
  PointToPoint(int rank, Links links, OnEnd on_end);

  /// Starts a send or a receive. A receive may end at once; throws Failure when it disagrees with the message that has
  /// arrived for it.
  void post(const Op& op, bool inline_run);

  /// Moves the data that can move now; returns true if any did. Throws Failure when a receive disagrees with its
  /// message.
  bool advance();

  /// Returns the operations that have not ended, in the order of posting.
  const std::list<Pending>& pending() const { return pending_; }

  /// Sets `ranks` to the ranks whose action `pending` waits for.
  void waiting_for(const Pending& pending, std::vector<int>& ranks) const;

  /// Returns whether no more data will arrive from a rank that is known to be gone. Call it after an advance() that
  /// moved nothing.
  bool ended(int peer) const { return peers_[peer].link->ended(); }

  /// Drops all operations and messages, without calling `on_end`.
  void clear();

  /// Discards the data that has arrived. A socket that is closed over unread bytes cuts off the last data that it sent.
  void drain();

 private:
  /// A message that arrived before its receive was posted.
  struct Early {
    Signature header;
    std::unique_ptr<std::byte[]> data;
    bool whole = false;
  };
  struct Peer {
    std::unique_ptr<Link> link;
    std::deque<Pending*> sends;
    int posted = 0;  // receives that name this rank and have found no message
    // The message that is arriving from this rank, if any, and its target: `receive` or `early`.
    bool receiving = false;
    Signature header{};
    size_t taken = 0;  // bytes after the header, padding included
    Pending* receive = nullptr;
    Early* early = nullptr;
  };

  bool push(Peer& peer);
  bool pull(int rank);
  void open(int rank, const Signature& header);
  void close(int rank);
  Pending* take_posted(const Signature& header);
  bool take_early(Pending& receive);
  void agree(const Pending& receive, const Signature& header) const;
  void finish(Pending& pending);

  const int rank_;
  const OnEnd on_end_;
  std::vector<Peer> peers_;
  std::list<Pending> pending_;
  std::list<Pending> spare_;      // kept for reuse
  std::vector<Pending*> posted_;  // receives that have found no message, in the order of posting
  int posted_for_any_ = 0;        // how many of them are from any rank
  std::list<Early> early_;        // in the order of arrival
  int first_ = 0;                 // the rank that `advance` serves first; rotates for fairness
};

}  // namespace ringwise::coll
