// The communicator of one group and its messages in flight. After a regular close, the communicator is freed. MPI
// reuses the context of a freed communicator, so no message may be left in it: it is freed when all other ranks have
// said goodbye, which may be much later. Until then it is on a list that the lanes of other groups check.
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

  /// The totals that a rank sent in its goodbye. Its last messages may arrive after the goodbye.
  struct Goodbye {
    uint64_t collectives;
    uint64_t messages;
  };

  void note_goodbye(const Heard& heard) {
    left[static_cast<size_t>(heard.from)] = Goodbye{heard.number, heard.messages};
  }
  bool has_left(int peer) const { return left[static_cast<size_t>(peer)].has_value(); }
  /// Returns whether `peer` has left and all its messages have arrived. MPI may deliver a goodbye before earlier
  /// messages.
  bool is_gone(int peer) const {
    return has_left(peer) && mailbox->come_from(peer) == left[static_cast<size_t>(peer)]->messages;
  }
  /// Tells the other ranks that this one leaves, and waits up to a second until the messages are sent.
  void say_goodbye(uint64_t collectives);

  const int rank;
  const int size;
  MPI_Comm comm = MPI_COMM_NULL;
  Outbox outbox;
  std::optional<Control> control;
  std::optional<Mailbox> mailbox;
  std::vector<std::optional<Goodbye>> left;  // by rank
};

/// Takes over the channel of a group that this rank has closed regularly.
void retire(std::unique_ptr<Channel> channel);

/// Frees the communicators that all ranks have left. Any thread.
void tend_retired();

/// Waits a moment for missing goodbyes, then drops all retired channels. Called before MPI ends.
void forget_retired();

}  // namespace ringwise::mpi
