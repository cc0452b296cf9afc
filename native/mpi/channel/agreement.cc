#include "mpi/channel/agreement.h"

#include <cstring>
#include <string>
#include <string_view>

namespace ringwise::mpi {

Agreement::Agreement(const coll::Signature& mine, MPI_Comm comm, int rank, int size, Outbox& outbox)
    : mine_(mine), comm_(comm), rank_(rank), size_(size), outbox_(outbox) {
  if (!done()) begin_round();
}

void Agreement::begin_round() {
  const int tag = kCheckTag + round_;
  const int from = (rank_ - distance_ + size_) % size_;
  theirs_ = {};
  check(MPI_Irecv(&theirs_, sizeof theirs_, MPI_BYTE, from, tag, comm_, receive_.slot()), "MPI_Irecv");
  outbox_.send((rank_ + distance_) % size_, tag,
               std::string(reinterpret_cast<const char*>(&mine_), sizeof mine_) + coll::text_of_label(mine_.label));
}

bool Agreement::advance() {
  bool moved = false;
  while (!done() && receive_.test()) {
    moved = true;
    const coll::Signature& theirs = theirs_.signature;
    if (!coll::same(mine_, theirs)) {
      coll::remember_label(theirs.label, std::string_view(theirs_.label, strnlen(theirs_.label, sizeof theirs_.label)));
      throw coll::disagreement(rank_, mine_, (rank_ - distance_ + size_) % size_, theirs);
    }
    distance_ *= 2;
    ++round_;
    if (!done()) begin_round();
  }
  return moved;
}

}  // namespace ringwise::mpi
