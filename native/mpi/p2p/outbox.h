// Small messages on their way out. Each is a copy, so that whoever sends it can forget it. Used by whoever owns the
// engine of its group.
#pragma once

#include <mpi.h>

#include <list>
#include <string>

namespace ringwise::mpi {

/// Tags of a group's messages. Those of payloads and of checks follow on the ones here.
enum Tag : int { kControlTag = 1, kEnvelopeTag = 2, kClearTag = 3, kCheckTag = 32, kPayloadTag = 64 };

class Outbox {
 public:
  Outbox() = default;
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;
  ~Outbox();

  void open(MPI_Comm comm) { comm_ = comm; }
  void send(int peer, int tag, std::string bytes);
  /// Forgets what has been sent; true if there was anything.
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
