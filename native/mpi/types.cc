#include "mpi/types.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "mpi/library.h"

namespace ringwise::mpi {

namespace {

/// Returns whether `a` replaces `b` in a min or max. NaN (x != x) wins. The result must not depend on the order of the
/// arguments, or ranks would get different bits: MPI may combine the same two values in a different order on each rank.
template <typename T, bool is_min>
bool wins(T a, T b) {
  if (is_min ? a < b : a > b) return true;
  if constexpr (std::is_floating_point_v<T>) {
    if (a != a && b != b) return std::memcmp(&a, &b, sizeof a) > 0;
    if (a == b) return std::signbit(a) == is_min && std::signbit(b) != is_min;  // of two zeros, -0 is the smaller one
  }
  return a != a;
}

template <typename T, bool is_min>
void extreme(void* in, void* inout, int* count, MPI_Datatype*) {
  const T* const theirs = static_cast<const T*>(in);
  T* const mine = static_cast<T*>(inout);
  for (int i = 0; i < *count; ++i) {
    if (wins<T, is_min>(theirs[i], mine[i])) mine[i] = theirs[i];
  }
}

template <typename T, bool is_min>
MPI_Op extreme_op() {
  static const MPI_Op op = [] {
    MPI_Op made = MPI_OP_NULL;
    check(MPI_Op_create(extreme<T, is_min>, 1, &made), "MPI_Op_create");
    return made;
  }();
  return op;
}

template <bool is_min>
MPI_Op extreme_op(DType dtype) {
  switch (dtype) {
    case DType::Float64: return extreme_op<double, is_min>();
    case DType::Int8: return extreme_op<int8_t, is_min>();
    case DType::Int16: return extreme_op<int16_t, is_min>();
    case DType::Int32: return extreme_op<int32_t, is_min>();
    case DType::Int64: return extreme_op<int64_t, is_min>();
    case DType::UInt8:
    case DType::Bool: return extreme_op<uint8_t, is_min>();
    case DType::UInt16: return extreme_op<uint16_t, is_min>();
    case DType::UInt32: return extreme_op<uint32_t, is_min>();
    case DType::UInt64: return extreme_op<uint64_t, is_min>();
    default: return extreme_op<float, is_min>();
  }
}

}  // namespace

MPI_Datatype type_of(DType dtype) {
  switch (dtype) {
    case DType::Float64: return MPI_DOUBLE;
    case DType::Int8: return MPI_INT8_T;
    case DType::Int16: return MPI_INT16_T;
    case DType::Int32: return MPI_INT32_T;
    case DType::Int64: return MPI_INT64_T;
    case DType::UInt8:
    case DType::Bool: return MPI_UINT8_T;
    case DType::UInt16: return MPI_UINT16_T;
    case DType::UInt32: return MPI_UINT32_T;
    case DType::UInt64: return MPI_UINT64_T;
    default: return MPI_FLOAT;
  }
}

MPI_Datatype copy_type_of(DType dtype) {
  switch (byte_size(dtype)) {
    case 1: return MPI_UINT8_T;
    case 2: return MPI_UINT16_T;
    case 4: return MPI_UINT32_T;
    default: return MPI_UINT64_T;
  }
}

MPI_Op op_of(coll::ReduceOp reduce, DType dtype) {
  switch (reduce) {
    case coll::ReduceOp::Prod: return MPI_PROD;
    case coll::ReduceOp::Min: return extreme_op<true>(dtype);
    case coll::ReduceOp::Max: return extreme_op<false>(dtype);
    case coll::ReduceOp::Band: return MPI_BAND;
    case coll::ReduceOp::Bor: return MPI_BOR;
    case coll::ReduceOp::Bxor: return MPI_BXOR;
    default: return MPI_SUM;
  }
}

}  // namespace ringwise::mpi
