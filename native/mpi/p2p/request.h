// A receive or a collective under way in MPI, which cannot be forgotten.
#pragma once

#include <mpi.h>

#include <utility>

#include "mpi/library.h"

namespace ringwise::mpi {

/// Cancels a receive that has not ended when it goes out of scope. A collective must have ended, or be `abandon`ed.
class Request {
 public:
  Request() = default;
  Request(Request&& other) noexcept : request_(std::exchange(other.request_, MPI_REQUEST_NULL)) {}
  Request& operator=(Request&& other) noexcept {
    std::swap(request_, other.request_);
    return *this;
  }
  ~Request() {
    if (request_ == MPI_REQUEST_NULL) return;
    MPI_Cancel(&request_);
    MPI_Wait(&request_, MPI_STATUS_IGNORE);
  }

  /// Where an MPI function puts the request that it starts.
  MPI_Request* slot() { return &request_; }
  bool is_active() const { return request_ != MPI_REQUEST_NULL; }

  /// Drives MPI; whether it has ended. Then it is no longer active.
  bool test(MPI_Status* status = MPI_STATUS_IGNORE) {
    int done = 0;
    check(MPI_Test(&request_, &done, status), "MPI_Test");
    return done != 0;
  }

  /// Leaves it to MPI, which goes on using its memory.
  void abandon() { leave_to_mpi(std::exchange(request_, MPI_REQUEST_NULL)); }

 private:
  MPI_Request request_ = MPI_REQUEST_NULL;
};

}  // namespace ringwise::mpi
