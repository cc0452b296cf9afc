#include "mpi/p2p/outbox.h"

#include <utility>

#include "mpi/library.h"

namespace ringwise::mpi {

Outbox::~Outbox() {
  // MPI may still read the bytes of these messages. They do not move with the string, because send() has put them on
  // the heap.
  for (Message& message : messages_) leave_to_mpi(message.request, std::move(message.bytes));
}

void Outbox::send(int peer, int tag, std::string bytes) {
  bytes.reserve(64);  // on the heap, where it stays when the string moves
  Message& message = messages_.emplace_back(Message{MPI_REQUEST_NULL, std::move(bytes)});
  const int length = static_cast<int>(message.bytes.size());
  check(MPI_Isend(message.bytes.data(), length, MPI_BYTE, peer, tag, comm_, &message.request), "MPI_Isend");
}

bool Outbox::advance() {
  bool moved = false;
  for (auto message = messages_.begin(); message != messages_.end();) {
    int done = 0;
    check(MPI_Test(&message->request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    moved |= done != 0;
    message = done != 0 ? messages_.erase(message) : std::next(message);
  }
  return moved;
}

}  // namespace ringwise::mpi
