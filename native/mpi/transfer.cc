#include "mpi/transfer.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/float8.h"
#include "base/half.h"
#include "coll/op.h"
#include "mpi/types.h"

namespace ringwise::mpi {

using coll::ReduceOp;
using coll::Verb;

namespace {

template <typename T>
void scale(std::byte* memory, size_t count, double factor) {
  T* const elements = reinterpret_cast<T*>(memory);
  const T by = static_cast<T>(factor);
  for (size_t i = 0; i < count; ++i) elements[i] *= by;
}

template <typename T>
void divide(std::byte* memory, size_t count, int size) {
  T* const elements = reinterpret_cast<T*>(memory);
  for (size_t i = 0; i < count; ++i) elements[i] /= static_cast<T>(size);
}

void scale(DType dtype, std::byte* memory, size_t count, double factor) {
  if (dtype == DType::Float64)
    scale<double>(memory, count, factor);
  else
    scale<float>(memory, count, factor);
}

template <typename T>
void widen(const std::byte* from, float* to, size_t count) {
  const T* const elements = reinterpret_cast<const T*>(from);
  for (size_t i = 0; i < count; ++i) to[i] = to_float(elements[i]);
}

void widen(DType dtype, const std::byte* from, float* to, size_t count) {
  switch (dtype) {
    case DType::BFloat16: return widen<BFloat>(from, to, count);
    case DType::Float8E4M3: return widen<Float8E4M3>(from, to, count);
    case DType::Float8E5M2: return widen<Float8E5M2>(from, to, count);
    default: return widen<Half>(from, to, count);
  }
}

template <typename T>
void narrow(T (*rounded)(float), const float* from, std::byte* to, size_t count) {
  T* const elements = reinterpret_cast<T*>(to);
  for (size_t i = 0; i < count; ++i) elements[i] = rounded(from[i]);
}

void narrow(DType dtype, const float* from, std::byte* to, size_t count) {
  switch (dtype) {
    case DType::BFloat16: return narrow(to_bfloat, from, to, count);
    case DType::Float8E4M3: return narrow(to_float8_e4m3, from, to, count);
    case DType::Float8E5M2: return narrow(to_float8_e5m2, from, to, count);
    default: return narrow(to_half, from, to, count);
  }
}

void divide(DType dtype, std::byte* memory, size_t count, int size) {
  if (dtype == DType::Float64)
    divide<double>(memory, count, size);
  else
    divide<float>(memory, count, size);
}

/// Returns where each part begins: the sum of the lengths before it.
std::vector<int> places_of(const std::vector<int>& lengths) {
  std::vector<int> displacements(lengths.size());
  std::exclusive_scan(lengths.begin(), lengths.end(), displacements.begin(), 0);
  return displacements;
}

}  // namespace

/// Returns the addends for MPI: the input, or a copy as float32 for narrow floats and scaled for premulSum.
const std::byte* Transfer::addends(size_t count) {
  reduced_ = is_narrow(op_.dtype) ? DType::Float32 : op_.dtype;
  const bool is_scaled = op_.reduce == ReduceOp::PremulSum;
  if (!is_narrow(op_.dtype) && !is_scaled) return op_.input;
  copy_.resize(count * byte_size(reduced_));
  if (is_narrow(op_.dtype))
    widen(op_.dtype, op_.input, reinterpret_cast<float*>(copy_.data()), count);
  else
    std::memcpy(copy_.data(), op_.input, copy_.size());
  if (is_scaled) scale(reduced_, copy_.data(), count, op_.factor);
  return copy_.data();
}

void Transfer::begin(const coll::Op& op) {
  op_ = op;
  switch (op.verb) {
    case Verb::Barrier:
      done_ = true;  // the agreement was the barrier
      return;
    case Verb::AllReduce:
    case Verb::Reduce:
    case Verb::Broadcast: begin_vector(); return;
    case Verb::ReduceScatter: begin_reduce_scatter(); return;
    default: begin_parts();
  }
}

void Transfer::begin_vector() {
  in_pieces_ = true;
  const bool is_reduced = op_.verb != Verb::Broadcast;
  // On ranks without a result, MPI only reads the addends, so the input does not change there.
  vector_ = is_reduced ? const_cast<std::byte*>(addends(op_.count)) : op_.output;
  if (is_reduced && op_.output != nullptr) result_ = vector_;
  begin_piece();
}

/// Returns the number of elements of the current piece of a vector.
size_t Transfer::piece() const {
  return std::min(max_count(op_.verb == Verb::Broadcast ? op_.dtype : reduced_), op_.count - moved_);
}

void Transfer::begin_piece() {
  const int count = static_cast<int>(piece());
  if (op_.verb == Verb::Broadcast) {
    std::byte* const memory = vector_ + moved_ * byte_size(op_.dtype);
    check(MPI_Ibcast(memory, count, copy_type_of(op_.dtype), op_.root, comm_, request_.slot()), "MPI_Ibcast");
    return;
  }
  const MPI_Datatype type = type_of(reduced_);
  const MPI_Op reduce = op_of(op_.reduce, reduced_);
  std::byte* const memory = vector_ + moved_ * byte_size(reduced_);
  if (op_.verb == Verb::AllReduce) {
    check(MPI_Iallreduce(MPI_IN_PLACE, memory, count, type, reduce, comm_, request_.slot()), "MPI_Iallreduce");
    return;
  }
  const bool is_root = rank_ == op_.root;
  const void* const from = is_root ? MPI_IN_PLACE : memory;
  check(MPI_Ireduce(from, is_root ? memory : nullptr, count, type, reduce, op_.root, comm_, request_.slot()),
        "MPI_Ireduce");
}

void Transfer::begin_parts() {
  const int count = static_cast<int>(op_.count);
  const bool is_even = op_.counts == nullptr;
  const MPI_Datatype type = copy_type_of(op_.dtype);
  const bool is_root = rank_ == op_.root;
  if (!is_even) lengths_.assign(op_.counts, op_.counts + size_);
  places_ = places_of(lengths_);
  switch (op_.verb) {
    case Verb::AllGather:
      if (is_even)
        check(MPI_Iallgather(op_.input, count, type, op_.output, count, type, comm_, request_.slot()),
              "MPI_Iallgather");
      else
        check(MPI_Iallgatherv(op_.input, lengths_[static_cast<size_t>(rank_)], type, op_.output, lengths_.data(),
                              places_.data(), type, comm_, request_.slot()),
              "MPI_Iallgatherv");
      return;
    case Verb::Gather: {
      void* const output = is_root ? op_.output : nullptr;
      if (is_even)
        check(MPI_Igather(op_.input, count, type, output, count, type, op_.root, comm_, request_.slot()),
              "MPI_Igather");
      else
        check(MPI_Igatherv(op_.input, lengths_[static_cast<size_t>(rank_)], type, output, lengths_.data(),
                           places_.data(), type, op_.root, comm_, request_.slot()),
              "MPI_Igatherv");
      return;
    }
    case Verb::Scatter: {
      const void* const input = is_root ? op_.input : nullptr;
      if (is_even)
        check(MPI_Iscatter(input, count, type, op_.output, count, type, op_.root, comm_, request_.slot()),
              "MPI_Iscatter");
      else
        check(MPI_Iscatterv(input, lengths_.data(), places_.data(), type, op_.output,
                            lengths_[static_cast<size_t>(rank_)], type, op_.root, comm_, request_.slot()),
              "MPI_Iscatterv");
      return;
    }
    default:
      if (is_even) {
        check(MPI_Ialltoall(op_.input, count, type, op_.output, count, type, comm_, request_.slot()), "MPI_Ialltoall");
        return;
      }
      recv_lengths_.assign(op_.recv_counts, op_.recv_counts + size_);
      recv_places_ = places_of(recv_lengths_);
      check(MPI_Ialltoallv(op_.input, lengths_.data(), places_.data(), type, op_.output, recv_lengths_.data(),
                           recv_places_.data(), type, comm_, request_.slot()),
            "MPI_Ialltoallv");
  }
}

void Transfer::begin_reduce_scatter() {
  if (op_.counts != nullptr)
    lengths_.assign(op_.counts, op_.counts + size_);
  else
    lengths_.assign(static_cast<size_t>(size_), static_cast<int>(op_.count));
  const std::byte* const input = addends(std::accumulate(lengths_.begin(), lengths_.end(), size_t{0}));
  result_ = op_.output;
  if (is_narrow(op_.dtype)) {
    sums_.resize(op_.count);
    result_ = reinterpret_cast<std::byte*>(sums_.data());
  }
  const MPI_Datatype type = type_of(reduced_);
  const MPI_Op reduce = op_of(op_.reduce, reduced_);
  check(MPI_Ireduce_scatter(input, result_, lengths_.data(), type, reduce, comm_, request_.slot()),
        "MPI_Ireduce_scatter");
}

bool Transfer::advance() {
  if (done_ || !request_.test()) return false;
  if (in_pieces_) moved_ += piece();
  if (in_pieces_ && moved_ < op_.count)
    begin_piece();
  else
    finish();
  return true;
}

void Transfer::finish() {
  done_ = true;
  if (result_ == nullptr) return;
  if (op_.reduce == ReduceOp::Avg) divide(reduced_, result_, op_.count, size_);
  if (is_narrow(op_.dtype))
    narrow(op_.dtype, reinterpret_cast<const float*>(result_), op_.output, op_.count);
  else if (result_ != op_.output)
    std::memcpy(op_.output, result_, op_.count * byte_size(op_.dtype));
}

}  // namespace ringwise::mpi
