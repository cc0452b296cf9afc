// Starts MPI before the first group of this process is made, and ends it when the last JavaScript thread that used it
// ends. The MPI library is chosen at compile time; see native/cmake/mpi.cmake.
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
/// need, and after MPI has ended.
const World& world();

/// Keeps a request that is still active when its group ends, because MPI cannot cancel it. `bytes` stay allocated until
/// the process ends.
void leave_to_mpi(MPI_Request request, std::string bytes = {});

/// Notes that this process cannot end MPI regularly, because other processes may wait for an operation that it will not
/// do.
void forbid_finalize();
/// Returns whether this process has started MPI and can still end it regularly.
bool can_finalize();

/// Ends MPI if world() has started it; blocks until all processes of the job do so. No group may exist any more. Does
/// nothing after forbid_finalize(), or if a kept request does not end within 10 s; the launcher then ends the job.
void finish();

/// Throws Failure if `code` is not MPI_SUCCESS. `what` is the name of the MPI function.
void check(int code, const char* what);

}  // namespace ringwise::mpi
