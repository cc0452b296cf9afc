// Owns an active MPI request: a send, a receive or a collective.
#pragma once

#include <mpi.h>

#include <utility>

#include "mpi/library.h"

namespace ringwise::mpi {

/// Cancels a receive that has not ended when it goes out of scope. A send or a collective must have ended by then, or
/// be `abandon`ed.
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

  /// Returns the address at which an MPI function stores the request that it starts.
  MPI_Request* slot() { return &request_; }
  bool is_active() const { return request_ != MPI_REQUEST_NULL; }

  /// Advances MPI and returns whether the request has ended or there is none. It is no longer active then.
  bool test(MPI_Status* status = MPI_STATUS_IGNORE) {
    int done = 0;
    check(MPI_Test(&request_, &done, status), "MPI_Test");
    return done != 0;
  }

  /// Gives up the request, whose memory MPI goes on using.
  void abandon() { leave_to_mpi(std::exchange(request_, MPI_REQUEST_NULL)); }

 private:
  MPI_Request request_ = MPI_REQUEST_NULL;
};

}  // namespace ringwise::mpi
