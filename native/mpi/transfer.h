// One collective on the memory of all ranks, by the MPI function of that name. Begun once all ranks agree about it.
#pragma once

#include <cstddef>
#include <vector>

#include "coll/op.h"
#include "mpi/p2p/request.h"

namespace ringwise::mpi {

class Transfer {
 public:
  Transfer(MPI_Comm comm, int rank, int size) : comm_(comm), rank_(rank), size_(size) {}

  /// `op` and its memory stay the caller's, until it is done or for ever: MPI cannot be told to stop.
  void begin(const coll::Op& op);
  /// True if it has ended, or a piece of it has.
  bool advance();
  bool done() const { return done_; }
  void abandon() { request_.abandon(); }

 private:
  void begin_vector();
  void begin_piece();
  void begin_parts();
  void begin_reduce_scatter();
  const std::byte* addends(size_t count);
  void finish();

  MPI_Comm comm_;
  int rank_;
  int size_;
  coll::Op op_;
  bool done_ = false;
  DType reduced_ = DType::UInt8;  // what is added up: float32 for narrow floats, else the operation's
  bool in_pieces_ = false;        // MPI's counts are ints: a long vector takes several calls
  size_t begun_ = 0;              // elements of a vector that MPI was given, less the last piece
  std::byte* vector_ = nullptr;   // the memory of allReduce, reduce and broadcast, or copy_
  std::byte* result_ = nullptr;   // of a reduction; null on ranks that have none
  std::vector<std::byte> copy_;   // of the addends, where these are not MPI's to change or to read
  std::vector<float> sums_;       // of reduceScatter, for narrow floats
  std::vector<int> lengths_;      // by rank; MPI reads them until the end
  std::vector<int> places_;
  std::vector<int> recv_lengths_;
  std::vector<int> recv_places_;
  Request request_;
};

}  // namespace ringwise::mpi
