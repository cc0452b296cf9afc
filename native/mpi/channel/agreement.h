// Compares the signatures of all ranks before any of them touches a buffer. Rank r compares its signature with that of
// rank r - 1, then r - 2, r - 4, …, and stops at the first difference. A message from r - 2^k confirms that the 2^k
// ranks up to that one have made the same call, so after ⌈log2(size)⌉ rounds a rank knows that all ranks agree. This is
// the dissemination barrier (Hensgen, Finkel, Manber: Two algorithms for barrier synchronization, 1988), with
// signatures in its messages.
#pragma once

#include "coll/handshake/labels.h"
#include "coll/handshake/signature.h"
#include "mpi/p2p/outbox.h"
#include "mpi/p2p/request.h"

namespace ringwise::mpi {

class Agreement {
 public:
  /// Begins the first round. `outbox` belongs to the group and outlives this object.
  Agreement(const coll::Signature& mine, MPI_Comm comm, int rank, int size, Outbox& outbox);

  /// Handles the messages that have arrived; returns true if there were any. Throws Failure when another rank has made
  /// a different call.
  bool advance();
  bool done() const { return distance_ >= size_; }

 private:
  void begin_round();

  /// The format of a message. The label's text is sent only if there is one, and without a final 0.
  struct Message {
    coll::Signature signature;
    char label[coll::kMaxLabelBytes];
  };

  coll::Signature mine_;
  Message theirs_{};  // MPI writes here while receive_ is active
  MPI_Comm comm_;
  int rank_;
  int size_;
  Outbox& outbox_;
  int distance_ = 1;
  int round_ = 0;
  Request receive_;  // last member: cancelled before theirs_ is destroyed
};

}  // namespace ringwise::mpi
