// What the ranks of a group tell each other besides their data: who leaves, what went wrong, and who is where. Every
// rank listens all the time; the program of a rank may compute meanwhile. Used by whoever owns the engine.
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
  Left,       // the sender has left the group; number: the collectives that it has called; messages: those to this rank
  Report,     // to the arbiter: a failure; number: the collective that it is about, plus 1, or 0
  RootCause,  // from the arbiter: why the group fails
  Question,   // how many collectives have you called?
  Answer,     // so many
};

struct Heard {
  Notice notice;
  int from;
  uint64_t number;
  uint64_t messages;      // of Left
  coll::Failure failure;  // of Report and RootCause
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
  /// The next notice that has arrived, if any.
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
  Request receive_;  // last member: cancelled before incoming_ goes
};

}  // namespace ringwise::mpi
