// Control messages (notices) between the ranks of an MPI group: goodbyes, failures, and questions about progress. The
// lane of every rank receives them, even while its program computes. Used by one thread at a time: the one that holds
// the engine, or after the goodbye the one that frees retired channels (channel.h).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "coll/failure/failure.h"
#include "mpi/p2p/outbox.h"
#include "mpi/p2p/request.h"

namespace ringwise::mpi {

enum class Notice : uint8_t {
  Left,       // the sender has left the group; number: collectives that it has called; messages: sent to this rank
  Report,     // to the arbiter: a failure; number: 1 + seq of the late collective, or 0
  RootCause,  // from the arbiter: the root cause of the group's failure
  Question,   // asks for the number of collectives that the receiver has called
  Answer,     // answers a question; number: collectives that the sender has called
};

struct Heard {
  Notice notice;
  int from;
  uint64_t number;
  uint64_t messages;      // for Left; 0 otherwise
  coll::Failure failure;  // for Report and RootCause
};

class Control {
 public:
  Control(MPI_Comm comm, int rank, int size, Outbox& outbox);

  void tell(int peer, Notice notice, uint64_t number = 0, const coll::Failure* failure = nullptr) {
    tell(peer, notice, number, 0, failure);
  }
  void tell_goodbye(int peer, uint64_t collectives, uint64_t messages) {
    tell(peer, Notice::Left, collectives, messages, nullptr);
  }
  void tell_others(Notice notice, uint64_t number = 0, const coll::Failure* failure = nullptr);
  /// Returns the next notice that has arrived, if any.
  std::optional<Heard> hear();

 private:
  static constexpr size_t kMaxBytes = 4096;  // texts are cut to fit

  void tell(int peer, Notice notice, uint64_t number, uint64_t messages, const coll::Failure* failure);
  void listen();

  MPI_Comm comm_;
  int rank_;
  int size_;
  Outbox& outbox_;
  std::array<char, kMaxBytes> incoming_;
  Request receive_;  // last member: cancelled before incoming_ is destroyed
};

}  // namespace ringwise::mpi
