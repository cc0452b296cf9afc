// Small outgoing messages of a group. Each message is a copy, so the sender need not keep it. Used only by the thread
// that holds the group's engine.
#pragma once

#include <mpi.h>

#include <list>
#include <string>

namespace ringwise::mpi {

/// MPI tags of a group's messages. Checks and payloads use ranges of tags that begin at the last two.
enum Tag : int { kControlTag = 1, kEnvelopeTag = 2, kClearTag = 3, kCheckTag = 32, kPayloadTag = 64 };

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
  std::list<Message> messages_;  // a list: MPI holds pointers into them
};

}  // namespace ringwise::mpi
