// MPI in this process: started with the first group, ended with the process. Which MPI it is was settled when this
// file was compiled; see native/cmake/mpi.cmake.
#pragma once

#include <mpi.h>

#include <string>

namespace ringwise::mpi {

/// This process among those that were started together, whatever their groups.
struct World {
  int rank;
  int size;
  std::string version;  // "Open MPI v4.1.4, …"
};

/// Starts MPI, on the calling thread, unless it runs already; blocks until all processes of the job have done so.
/// Throws Failure where it cannot be used from several threads, which groups need, and after finish().
const World& world();

/// What MPI is still busy with when its group ends: MPI cannot be told to stop. `bytes` are kept until the process
/// ends.
void leave_to_mpi(MPI_Request request, std::string bytes = {});

/// The process can no longer leave in order: others wait for something that it will not do.
void give_up_order();
bool is_in_order();

/// Ends MPI if it runs; blocks until all processes of the job do so. No group may be left. Does nothing after
/// give_up_order(), or where what was left to MPI does not end: the launcher then ends the job.
void finish();

/// Throws Failure if `code` is not MPI_SUCCESS. `what` is the name of the function.
void check(int code, const char* what);

}  // namespace ringwise::mpi
