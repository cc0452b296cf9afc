// Runs one collective through the MPI function for its verb, after all ranks have agreed on it.
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
  /// Gives up the operation. The caller must then never destroy this object, because MPI goes on using it.
  void abandon() { request_.abandon(); }

 private:
  void begin_vector();
  void begin_piece();
  size_t piece() const;
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
  size_t moved_ = 0;              // elements of a vector that MPI has moved, without the current piece
  std::byte* vector_ = nullptr;   // what MPI works on in allReduce, reduce and broadcast: the buffer or copy_
  std::byte* result_ = nullptr;   // result of a reduction; null on ranks that have none
  std::vector<std::byte> copy_;   // copy of the addends, if they differ from the input: narrow floats, premulSum
  std::vector<float> sums_;       // results of reduceScatter for narrow floats
  std::vector<int> lengths_;      // this and the next three by rank; MPI reads them until the operation ends
  std::vector<int> places_;
  std::vector<int> recv_lengths_;
  std::vector<int> recv_places_;
  Request request_;
};

}  // namespace ringwise::mpi
