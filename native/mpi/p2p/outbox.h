// Small outgoing messages of a group. The outbox owns their bytes, so the sender need not keep them. Used by one thread
// at a time: the one that holds the engine, or after the goodbye the one that frees retired channels (channel.h).
#pragma once

#include <mpi.h>

#include <list>
#include <string>

namespace ringwise::mpi {

/// MPI tags of a group's messages. The messages of agreements (agreement.h) and the payloads of long messages use
/// ranges of tags that begin at the last two.
enum Tag : int { kControlTag = 1, kEnvelopeTag = 2, kReadyTag = 3, kCheckTag = 32, kPayloadTag = 64 };

class Outbox {
 public:
  Outbox() = default;
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;
  ~Outbox();

  void open(MPI_Comm comm) { comm_ = comm; }
  void send(int peer, int tag, std::string bytes);
  /// Drops the messages that have been sent; returns true if there were any.
  bool advance();
  bool is_empty() const { return messages_.empty(); }

 private:
  struct Message {
    MPI_Request request;
    std::string bytes;
  };
  MPI_Comm comm_ = MPI_COMM_NULL;
  std::list<Message> messages_;  // a list: the requests and bytes must not move
};

}  // namespace ringwise::mpi
