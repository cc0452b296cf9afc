// The communicator of one group, and what of its messages is under way. A group that has been left well gives it back:
// MPI uses the place of a freed communicator again, so nothing may be left in it. The others' goodbyes may come much
// later; until then it is on a list that whoever polls looks after.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "mpi/control.h"
#include "mpi/mailbox.h"
#include "mpi/outbox.h"

namespace ringwise::mpi {

struct Channel {
  /// Makes the communicator of the processes `members` of MPI's world; blocks until all of them have called it.
  Channel(const std::vector<int>& members, int tag, int rank, Mailbox::OnEnd on_end);
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  bool has_left(int peer) const { return left[static_cast<size_t>(peer)].has_value(); }

  const int rank;
  const int size;
  MPI_Comm comm = MPI_COMM_NULL;
  Outbox outbox;
  std::optional<Control> control;
  std::optional<Mailbox> mailbox;
  std::vector<std::optional<uint64_t>> left;  // by rank: the collectives that it called before it left
};

/// Takes over the channel of a group that this rank has left well.
void retire(std::unique_ptr<Channel> channel);

/// Frees the communicators that all ranks have left. From any thread.
void tend_retired();

/// MPI is about to end: waits a moment for goodbyes that are still missing, then listens no more.
void forget_retired();

}  // namespace ringwise::mpi
