// Lookups by index, writes to indexed elements, triangles.
#include "tensor/cuda/kernels/shared/functions.cuh"

namespace ringwise::tensor::cuda {

/// Returns whether an index is in range; notes a fault for the host if not.
__device__ inline bool is_inside(const LookupArguments& x, int64_t index) {
  if (index >= 0 && index < x.size) return true;
  *x.fault = kLookupFault;
  return false;
}

RINGWISE_KERNEL(lookup, LookupArguments) {
  const LookupArguments& x = arguments;
  for_each_of_grid(x.outer * x.count * x.inner, [&](int64_t to) {
    const int64_t row = to / x.inner, i = to - row * x.inner, o = row / x.count, j = row - o * x.count;
    const int64_t index = x.index[x.per_element ? to : j];
    if (!is_inside(x, index)) return;
    const int64_t from = (o * x.size + index) * x.inner + i;
    with_type(x.dtype, [&](auto type) {
      using E = decltype(type);
      static_cast<E*>(x.out)[to] = static_cast<const E*>(x.a)[from];
    });
  });
}

/// Returns what the operation makes of two numbers of a computing type.
template <class C>
__device__ inline C combined(int32_t op, C own, C given) {
  switch (static_cast<ScatterOp>(op)) {
    case ScatterOp::Add: return static_cast<C>(wrap(own) + wrap(given));
    case ScatterOp::Replace: return given;
    case ScatterOp::Mul: return static_cast<C>(wrap(own) * wrap(given));
    case ScatterOp::Min: return given < own || given != given ? given : own;
    default: return given > own || given != given ? given : own;
  }
}

/// Combines an element with a value, in the type in which its dtype is computed.
template <class E, class C>
__device__ inline void combine_with(int32_t op, E& element, C value) {
  element = write_as<E>(combined(op, read_as<C>(element), value));
}

/// Writes of few indices: each thread reads one column [outer, ·, inner] in order.
RINGWISE_KERNEL(scatter_few, LookupArguments) {
  const LookupArguments& x = arguments;
  for_each_of_grid(x.outer * x.inner, [&](int64_t column) {
    const int64_t o = column / x.inner, i = column - o * x.inner;
    for (int64_t j = 0; j < x.count; j++) {
      const int64_t from = (o * x.count + j) * x.inner + i;
      const int64_t index = x.index[x.per_element ? from : j];
      if (!is_inside(x, index)) continue;
      with_type(x.dtype, [&](auto type) {
        using E = decltype(type);
        E& element = static_cast<E*>(x.out)[(o * x.size + index) * x.inner + i];
        combine_with(x.op, element, read_as<Computing<E>>(static_cast<const E*>(x.a)[from]));
      });
    }
  });
}

/// The sorted entries of a column (sort.cu). The key of an entry is an index, its position that of an element of `a`.
struct SortedIndices {
  const uint64_t* words;
  int64_t size;
  bool is_narrow;

  __device__ SortedIndices(const ScatterArguments& x, int64_t column) : size(x.lookup.size), is_narrow(x.is_narrow) {
    const int64_t list = x.lookup.per_element ? column * x.lookup.count : 0;
    words = static_cast<const uint64_t*>(x.entries) + (is_narrow ? list : 2 * list);
  }
  /// Returns the index, or `size` if it is out of range; such entries come last.
  __device__ int64_t index(int64_t at) const {
    const uint64_t key = is_narrow ? words[at] >> 32 : words[2 * at];
    return key < static_cast<uint64_t>(size) ? static_cast<int64_t>(key) : size;
  }
  __device__ int64_t position(int64_t at) const {
    return static_cast<int64_t>(is_narrow ? words[at] & 0xffffffffu : words[2 * at + 1]);
  }
};

constexpr int kBatch = 8;  // elements that a thread loads before it combines them

/// Combines runs of equal indices, in order. A thread reads a piece of the entries of a column. It combines the totals
/// of runs that lie inside the piece with their targets, and keeps the others: first that of a run which began in an
/// earlier piece, then that of a run which begins here and ends in a later one.
template <class E, class C>
__device__ void combine_pieces(const ScatterArguments& x) {
  const LookupArguments& own = x.lookup;
  const int64_t columns = own.outer * own.inner;
  for_each_of_grid(x.pieces * columns, [&](int64_t thread) {
    const int64_t piece = thread / columns, column = thread - piece * columns;
    const int64_t o = column / own.inner, i = column - o * own.inner;
    const SortedIndices entries(x, column);
    const int64_t begin = piece * x.piece, end = begin + x.piece < own.count ? begin + x.piece : own.count;
    const E* const a = static_cast<const E*>(own.a) + o * own.count * own.inner + i;
    E* const out = static_cast<E*>(own.out) + o * own.size * own.inner + i;
    C* const kept = static_cast<C*>(x.partial) + piece * 2 * columns + column;
    int64_t current = entries.index(begin);
    bool is_continued = begin > 0 && entries.index(begin - 1) == current;
    C total = C(0);
    bool is_empty = true;  // the run has no element yet
    const auto end_run = [&](bool continues) {
      if (current == own.size) return;
      if (is_continued)
        kept[0] = total;
      else if (continues)
        kept[columns] = total;
      else
        combine_with(own.op, out[current * own.inner], total);
    };
    for (int64_t at = begin; at < end; at += kBatch) {
      int64_t index[kBatch];
      C value[kBatch];
#pragma unroll
      for (int k = 0; k < kBatch; k++) {
        index[k] = at + k < end ? entries.index(at + k) : own.size;
        value[k] = index[k] < own.size ? read_as<C>(a[entries.position(at + k) * own.inner]) : C(0);
      }
#pragma unroll
      for (int k = 0; k < kBatch; k++) {
        if (at + k >= end) break;
        if (index[k] != current) {
          end_run(false);
          is_continued = false;
          current = index[k];
          is_empty = true;
        }
        total = is_empty ? value[k] : combined(own.op, total, value[k]);
        is_empty = false;
      }
    }
    end_run(end < own.count && entries.index(end) == current);
  });
}

/// Combines the totals of the runs that begin in a piece and end in a later one.
template <class E, class C>
__device__ void join_pieces(const ScatterArguments& x) {
  const LookupArguments& own = x.lookup;
  const int64_t columns = own.outer * own.inner;
  for_each_of_grid((x.pieces - 1) * columns, [&](int64_t thread) {
    const int64_t piece = thread / columns, column = thread - piece * columns;
    const SortedIndices entries(x, column);
    const int64_t begin = piece * x.piece, end = begin + x.piece, index = entries.index(end - 1);
    if (index == own.size || entries.index(end) != index || (begin > 0 && entries.index(begin - 1) == index)) return;
    int64_t last = piece + 1;  // the last piece that begins with this index
    for (int64_t high = x.pieces - 1; last < high;) {
      const int64_t middle = (last + high + 1) / 2;
      if (entries.index(middle * x.piece) == index)
        last = middle;
      else
        high = middle - 1;
    }
    const C* const kept = static_cast<const C*>(x.partial) + column;
    C total = kept[(2 * piece + 1) * columns];
#pragma unroll 8
    for (int64_t next = piece + 1; next <= last; next++) total = combined(own.op, total, kept[2 * next * columns]);
    const int64_t o = column / own.inner, i = column - o * own.inner;
    combine_with(own.op, static_cast<E*>(own.out)[(o * own.size + index) * own.inner + i], total);
  });
}

RINGWISE_KERNEL(scatter_runs, ScatterArguments) {
  with_type(arguments.lookup.dtype,
            [&](auto type) { combine_pieces<decltype(type), Computing<decltype(type)>>(arguments); });
}

RINGWISE_KERNEL(scatter_join, ScatterArguments) {
  with_type(arguments.lookup.dtype,
            [&](auto type) { join_pieces<decltype(type), Computing<decltype(type)>>(arguments); });
}

template <class E>
__device__ void triangle_of(const Triangle& x) {
  const auto rows = static_cast<int64_t>(x.rows), cols = static_cast<int64_t>(x.cols);
  for_each_of_grid(static_cast<int64_t>(x.batch) * rows * cols, [&](int64_t i) {
    const int64_t row = i / cols, distance = i - row * cols - row % rows;
    const bool is_kept = x.upper ? distance >= x.diagonal : distance <= x.diagonal;
    static_cast<E*>(x.out)[i] = is_kept ? static_cast<const E*>(x.a)[i] : E(0);
  });
}

RINGWISE_KERNEL(triangle, Triangle) {
  switch (arguments.dtype) {
    case DType::Float64:
    case DType::Int64: return triangle_of<uint64_t>(arguments);
    case DType::Float32:
    case DType::Int32: return triangle_of<uint32_t>(arguments);
    case DType::Float16:
    case DType::BFloat16: return triangle_of<uint16_t>(arguments);
    default: return triangle_of<uint8_t>(arguments);
  }
}

}  // namespace ringwise::tensor::cuda
