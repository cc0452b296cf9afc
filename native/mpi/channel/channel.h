// The communicator of one group and its messages in flight. After a goodbye, the communicator is freed; after a failure
// it is not. MPI reuses the context of a freed communicator, so no message may be left in it: it is freed when all
// other ranks have said goodbye, which may be much later. Until then it is on a list that the lanes of other groups
// check.
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
  /// Takes a communicator of make_communicator().
  Channel(MPI_Comm comm, int rank, int size, Mailbox::OnEnd on_end);
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
    return has_left(peer) && mailbox->received_from(peer) == left[static_cast<size_t>(peer)]->messages;
  }
  /// Tells the other ranks that this one leaves, and waits up to a second until the messages are sent.
  void say_goodbye(uint64_t collectives);

  const int rank;
  const int size;
  MPI_Comm comm;
  Outbox outbox;
  std::optional<Control> control;
  std::optional<Mailbox> mailbox;
  std::vector<std::optional<Goodbye>> left;  // by rank
};

/// Takes over the channel of a group that this rank has left with a goodbye.
void retire(std::unique_ptr<Channel> channel);

/// Frees the communicators that all ranks have left. Any thread.
void tend_retired();

/// Waits up to a second for missing goodbyes, then drops all retired channels. Called before MPI ends.
void forget_retired();

}  // namespace ringwise::mpi
