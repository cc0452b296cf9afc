// Makes the communicator of a group. MPI has no such function with a deadline.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <vector>

namespace ringwise::mpi {

/// Makes the communicator of the processes `members` of MPI's world, of which this one is the member `rank`; blocks
/// until all of them have called it. `tag` distinguishes communicators that are made at the same time. Throws Failure
/// if MPI fails, after `timeout_ns`, and about a second after `stop` is set. In the last two cases a thread stays
/// behind in MPI's function, which cannot be cancelled, so this process can no longer end MPI.
MPI_Comm make_communicator(std::vector<int> members, int tag, int rank, int64_t timeout_ns,
                           const std::atomic<bool>& stop);

}  // namespace ringwise::mpi
