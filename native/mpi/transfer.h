// Runs one collective through the MPI function of the same name, after all ranks have agreed about it.
#pragma once

#include <cstddef>
#include <vector>

#include "coll/op.h"
#include "mpi/p2p/request.h"

namespace ringwise::mpi {

class Transfer {
 public:
  Transfer(MPI_Comm comm, int rank, int size) : comm_(comm), rank_(rank), size_(size) {}

  /// Begins `op`. The caller keeps its memory alive until done(). After abandon() it must never free it, because MPI
  /// cannot cancel a collective.
  void begin(const coll::Op& op);
  /// Polls MPI. Returns true if the operation, or a piece of it, has ended.
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
  DType reduced_ = DType::UInt8;  // dtype of the addends: float32 for narrow floats, else the operation's
  bool in_pieces_ = false;        // a vector is moved in several calls, because MPI's counts are ints
  size_t begun_ = 0;              // elements of a vector that have been given to MPI, without the current piece
  std::byte* vector_ = nullptr;   // the memory of allReduce, reduce and broadcast, or copy_
  std::byte* result_ = nullptr;   // result of a reduction; null on ranks that have none
  std::vector<std::byte> copy_;   // copy of the addends, if MPI cannot read or write the input
  std::vector<float> sums_;       // results of reduceScatter for narrow floats
  std::vector<int> lengths_;      // this and the next three by rank; MPI reads them until the operation ends
  std::vector<int> places_;
  std::vector<int> recv_lengths_;
  std::vector<int> recv_places_;
  Request request_;
};

}  // namespace ringwise::mpi
