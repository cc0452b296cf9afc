// Starts MPI with the first group of this process and ends it with the process. The MPI library is chosen at compile
// time; see native/cmake/mpi.cmake.
#pragma once

#include <mpi.h>

#include <string>

namespace ringwise::mpi {

/// This process among all processes that MPI has started together (MPI_COMM_WORLD).
struct World {
  int rank;
  int size;
  std::string version;  // such as "Open MPI v4.1.4, …"
};

/// Returns this process's place in MPI_COMM_WORLD. Starts MPI on the calling thread if it is not running; that blocks
/// until all processes of the job have done so. Throws Failure if MPI does not support several threads, which groups
/// need, and after finish().
const World& world();

/// Keeps a request that is still active when its group ends, because MPI cannot cancel it. `bytes` stay allocated until
/// the process ends.
void leave_to_mpi(MPI_Request request, std::string bytes = {});

/// Notes that this process cannot end MPI regularly, because other processes wait for an operation that it will not do.
void give_up_order();
bool is_in_order();

/// Ends MPI if it is running; blocks until all processes of the job do so. No group may exist any more. Does nothing
/// after give_up_order(), or if a kept request does not end; the launcher then ends the job.
void finish();

/// Throws Failure if `code` is not MPI_SUCCESS. `what` is the name of the MPI function.
void check(int code, const char* what);

}  // namespace ringwise::mpi
