// The communicator of one group, and what of its messages is under way. A group that has been left well gives it back:
// MPI uses the place of a freed communicator again, so nothing may be left in it. The others' goodbyes may come much
// later; until then it is on a list that whoever polls looks after.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "mpi/channel/control.h"
#include "mpi/p2p/mailbox.h"
#include "mpi/p2p/outbox.h"

namespace ringwise::mpi {

struct Channel {
  /// Makes the communicator of the processes `members` of MPI's world; blocks until all of them have called it.
  Channel(const std::vector<int>& members, int tag, int rank, Mailbox::OnEnd on_end);
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  /// Of what a rank has sent; its last messages may come after it.
  struct Goodbye {
    uint64_t collectives;
    uint64_t messages;
  };

  void note_goodbye(const Heard& heard) {
    left[static_cast<size_t>(heard.from)] = Goodbye{heard.number, heard.messages};
  }
  bool has_left(int peer) const { return left[static_cast<size_t>(peer)].has_value(); }
  /// Whether it has left and nothing more will come from it: MPI may deliver a goodbye ahead of a message.
  bool is_gone(int peer) const {
    return has_left(peer) && mailbox->come_from(peer) == left[static_cast<size_t>(peer)]->messages;
  }
  /// Tells the others that this rank leaves, and waits a moment until that is on its way.
  void say_goodbye(uint64_t collectives);

  const int rank;
  const int size;
  MPI_Comm comm = MPI_COMM_NULL;
  Outbox outbox;
  std::optional<Control> control;
  std::optional<Mailbox> mailbox;
  std::vector<std::optional<Goodbye>> left;  // by rank
};

/// Takes over the channel of a group that this rank has left well.
void retire(std::unique_ptr<Channel> channel);

/// Frees the communicators that all ranks have left. From any thread.
void tend_retired();

/// MPI is about to end: waits a moment for goodbyes that are still missing, then listens no more.
void forget_retired();

}  // namespace ringwise::mpi
