// All ranks compare what they call before any of them touches a buffer. Whoever ends well knows that every rank has
// called the same: rank r compares with rank r - 1, then with r - 2, r - 4, …, and goes on only while all is well. So
// what a rank hears from r - 2^k says that 2^k ranks have called what that one has called; after log2(size) rounds it
// has heard of all. This is the dissemination barrier (Hensgen, Finkel, Manber: Two algorithms for barrier
// synchronization, 1988), with signatures in its messages.
#pragma once

#include "coll/handshake/labels.h"
#include "coll/handshake/signature.h"
#include "mpi/p2p/outbox.h"
#include "mpi/p2p/request.h"

namespace ringwise::mpi {

class Agreement {
 public:
  /// `outbox` is the group's, and outlives this object.
  Agreement(const coll::Signature& mine, MPI_Comm comm, int rank, int size, Outbox& outbox);

  /// Goes on as far as the others have come; true if it moved. Throws Failure when another rank has called something
  /// else.
  bool advance();
  bool done() const { return distance_ >= size_; }

 private:
  void begin_round();

  /// As it travels. The text only follows where there is one; without its end.
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
  Request receive_;  // last member: cancelled before theirs_ goes
};

}  // namespace ringwise::mpi
