#include "mpi/agreement.h"

#include <string>

namespace ringwise::mpi {

Agreement::Agreement(const coll::Signature& mine, MPI_Comm comm, int rank, int size, Outbox& outbox)
    : mine_(mine), comm_(comm), rank_(rank), size_(size), outbox_(outbox) {
  if (!done()) begin_round();
}

void Agreement::begin_round() {
  const int tag = kCheckTag + round_;
  const int from = (rank_ - distance_ + size_) % size_;
  check(MPI_Irecv(&theirs_, sizeof theirs_, MPI_BYTE, from, tag, comm_, receive_.slot()), "MPI_Irecv");
  outbox_.send((rank_ + distance_) % size_, tag, std::string(reinterpret_cast<const char*>(&mine_), sizeof mine_));
}

bool Agreement::advance() {
  bool moved = false;
  while (!done() && receive_.test()) {
    moved = true;
    if (!coll::same(mine_, theirs_)) {
      throw coll::disagreement(rank_, mine_, (rank_ - distance_ + size_) % size_, theirs_);
    }
    distance_ *= 2;
    ++round_;
    if (!done()) begin_round();
  }
  return moved;
}

}  // namespace ringwise::mpi
