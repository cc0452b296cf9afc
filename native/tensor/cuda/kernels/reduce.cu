// Reductions over any dimensions of any strides. A block works on `lanes` outputs; `ways` threads share the elements of
// each. In rows neighbouring threads share an output, in columns they have neighbouring outputs, so that they read
// neighbouring memory either way. A thread issues several loads before it uses the first: packs of 16 bytes, or single
// elements where memory is not dense and aligned. Float sums and products are taken in double. Long reductions to few
// outputs are cut into chunks, one block each, whose results are reduced by a second launch. The order depends on
// shape, strides, dtype, alignment and device alone.
#include "tensor/cuda/kernels/shared/team.cuh"

namespace ringwise::tensor::cuda {

template <class T>
using SumOf = std::conditional_t<std::is_same_v<T, int64_t>, uint64_t, double>;

// An operation adds the elements of a thread one by one (add; read() is applied to each first), joins the totals of
// threads, and makes the result of a total.
template <class T>
struct Sum {
  using Total = SumOf<T>;
  static constexpr int kElementsInFlight = elements_in_flight(sizeof(T));
  static __device__ Total start() { return 0; }
  static __device__ T read(const ReduceArguments&, T value) { return value; }
  static __device__ Total add(Total total, T value, int64_t) { return total + static_cast<Total>(value); }
  static __device__ Total join(Total a, Total b) { return a + b; }
  static __device__ Total result(const ReduceArguments& x, Total total) {
    return x.has_divisor ? total / static_cast<Total>(x.divisor) : total;
  }
};
template <class T>
struct Prod {
  using Total = SumOf<T>;
  static constexpr int kElementsInFlight = elements_in_flight(sizeof(T));
  static __device__ Total start() { return 1; }
  static __device__ T read(const ReduceArguments&, T value) { return value; }
  static __device__ Total add(Total total, T value, int64_t) { return total * static_cast<Total>(value); }
  static __device__ Total join(Total a, Total b) { return a * b; }
  static __device__ Total result(const ReduceArguments&, Total total) { return total; }
};

/// Returns the value; for minima, one in the reversed order of values, so that the least becomes the largest.
template <class T>
__device__ inline T ordered(const ReduceArguments& x, T value) {
  if constexpr (std::is_integral_v<T>)
    return x.is_min ? ~value : value;
  else
    return x.is_min ? -value : value;
}
/// Finds the most extreme element; NaN is more extreme than any other.
template <class T>
struct Extreme {
  using Total = T;
  static constexpr int kElementsInFlight = 4;  // fewer than of sums: comparisons take registers
  static __device__ T start() {
    using Limits = std::numeric_limits<T>;
    return Limits::has_infinity ? -Limits::infinity() : Limits::min();
  }
  static __device__ T read(const ReduceArguments& x, T value) { return ordered(x, value); }
  static __device__ T add(T best, T value, int64_t) { return join(best, value); }
  static __device__ T join(T best, T value) { return (value > best) | (value != value) ? value : best; }
  static __device__ T result(const ReduceArguments& x, T best) { return ordered(x, best); }
};
template <class T>
struct Found {
  T value;
  int64_t at;  // index among the reduced elements; -1: nothing yet
};
/// Finds the first of the most extreme elements.
template <class T>
struct ArgExtreme {
  using Total = Found<T>;
  static constexpr int kElementsInFlight = elements_in_flight(2 * sizeof(T));
  static __device__ Total start() { return {T{}, -1}; }
  static __device__ T read(const ReduceArguments& x, T value) { return ordered(x, value); }
  /// `at` is larger than that of every element before.
  static __device__ Total add(Total total, T value, int64_t at) {
    const bool is_first_nan = (value != value) & (total.value == total.value);
    return (value > total.value) | is_first_nan | (total.at < 0) ? Total{value, at} : total;
  }
  static __device__ Total join(Total a, Total b) {
    if (a.at < 0 || b.at < 0) return a.at < 0 ? b : a;
    const bool a_is_nan = a.value != a.value, b_is_nan = b.value != b.value;
    const bool a_is_better = (a.value > b.value) | (a_is_nan & !b_is_nan);
    const bool b_is_better = (b.value > a.value) | (b_is_nan & !a_is_nan);
    return b_is_better || (!a_is_better && b.at < a.at) ? b : a;
  }
};

template <class T>
__device__ inline Found<T> exchanged(Found<T> found, int lane_mask) {
  return {exchanged(found.value, lane_mask), exchanged(found.at, lane_mask)};
}

/// Calls use(element of this dtype) for the element types that a computing type loads in packs (launch/reduce.cc).
template <class T, class Use>
__device__ inline void with_packed_type(int dtype, Use use) {
  if constexpr (std::is_same_v<T, float>) {
    if (dtype == static_cast<int>(DType::Float32)) return use(float{});
    if (dtype == static_cast<int>(DType::Float16)) return use(Half{});
    return use(BFloat{});
  } else if constexpr (std::is_same_v<T, double>) {
    return use(double{});
  } else {
    if (dtype == static_cast<int>(DType::Int64)) return use(int64_t{});
    return use(int32_t{});
  }
}

/// What a thread reads: units first, first + step, … below `end`, at these offsets from `from`.
struct Share {
  const char* from;
  int64_t first, end;
  int step;

  /// Returns where unit j + u · step lies, or unit j if that is not before `end`.
  __device__ const char* place(const ReduceArguments& x, int64_t j, int u) const {
    return from + reduced_offset(x.reduced, x.reduced_rank, j + u * step < end ? j + u * step : j);
  }
};

/// Adds packs to totals[0] in rows, and to one total for each element of a pack in columns.
template <class T, class Op, class E, bool kIsColumn>
__device__ inline void add_packs(const ReduceArguments& x, const Share& share, typename Op::Total* totals) {
  constexpr int kPack = reduced_pack(sizeof(E), sizeof(typename Op::Total), kIsColumn);
  for (int64_t j = share.first; j < share.end; j += kPacksInFlight * share.step) {
    Elements<E, kPack> packs[kPacksInFlight];
#pragma unroll
    for (int u = 0; u < kPacksInFlight; u++) packs[u] = load_elements<E, kPack>(share.place(x, j, u));
#pragma unroll
    for (int u = 0; u < kPacksInFlight; u++) {
      const int64_t at = j + u * share.step;
      if (at < share.end) {
#pragma unroll
        for (int k = 0; k < kPack; k++) {
          auto& total = totals[kIsColumn ? k : 0];
          total = Op::add(total, Op::read(x, read_as<T>(packs[u].at[k])), kIsColumn ? at : at * kPack + k);
        }
      }
    }
  }
}

/// Adds elements of any dtype. All loads of a batch are in one branch of the switch over dtypes.
template <class T, class Op>
__device__ inline void add_elements(const ReduceArguments& x, const Share& share, typename Op::Total& total) {
  constexpr int kInFlight = Op::kElementsInFlight;
  for (int64_t j = share.first; j < share.end; j += kInFlight * share.step) {
    const char* places[kInFlight];
    T values[kInFlight];
#pragma unroll
    for (int u = 0; u < kInFlight; u++) places[u] = share.place(x, j, u);
    with_type(x.in_dtype, [&](auto type) {
#pragma unroll
      for (int u = 0; u < kInFlight; u++) values[u] = read_as<T>(*reinterpret_cast<const decltype(type)*>(places[u]));
    });
#pragma unroll
    for (int u = 0; u < kInFlight; u++) {
      const int64_t at = j + u * share.step;
      if (at < share.end) total = Op::add(total, Op::read(x, values[u]), at);
    }
  }
}

template <class T, class Op, class E>
__device__ inline void reduce_column_packs(const ReduceArguments& x, const Team& team, const Share& share,
                                           typename Op::Total* shared) {
  constexpr int kPack = reduced_pack(sizeof(E), sizeof(typename Op::Total), true);
  typename Op::Total totals[kPack];
#pragma unroll
  for (int k = 0; k < kPack; k++) totals[k] = Op::start();
  add_packs<T, Op, E, true>(x, share, totals);
  join_in_warp<kPack>(team, totals, shared, Op::join);
}

template <class T, class Op, class E>
__device__ inline void reduce_row_packs(const ReduceArguments& x, const Team& team, const Share& share,
                                        typename Op::Total* shared) {
  typename Op::Total total = Op::start();
  add_packs<T, Op, E, false>(x, share, &total);
  if (share.end == x.reduced_count) {
    const int64_t begin = x.reduced_count * (16 / sizeof(E));
    for (int64_t at = begin + team.way; at < begin + x.tail; at += team.ways)
      total = Op::add(total, Op::read(x, read_as<T>(reinterpret_cast<const E*>(share.from)[at])), at);
  }
  join_in_warp<1>(team, &total, shared, Op::join);
}

/// Calls finish(offset of an output, its total) for each output of the block.
template <class T, class Op, class Finish>
__device__ inline void reduce_with(const ReduceArguments& x, Finish finish) {
  using Total = typename Op::Total;
  constexpr int kMostTotals = sizeof(Total) < 8 ? 8 : 64 / sizeof(Total);
  __shared__ Total shared[kThreads * kMostTotals];
  const Team team(x.lanes, x.is_column);
  const int64_t unit = static_cast<int64_t>(blockIdx.x) * team.lanes + team.lane;
  const int64_t begin = static_cast<int64_t>(blockIdx.y) * x.chunk;
  Share share{static_cast<const char*>(x.in), begin + team.way, 0, team.ways};
  if (unit < x.kept_count) {
    share.end = begin + x.chunk < x.reduced_count ? begin + x.chunk : x.reduced_count;
    for_each_dimension(unit, x.kept_rank, x.kept_shape,
                       [&](int d, int64_t index) { share.from += index * x.kept_in[d]; });
  }
  if (x.use_packs) {
    with_packed_type<T>(x.in_dtype, [&](auto type) {
      if (x.is_column)
        reduce_column_packs<T, Op, decltype(type)>(x, team, share, shared);
      else
        reduce_row_packs<T, Op, decltype(type)>(x, team, share, shared);
    });
  } else {
    Total total = Op::start();
    add_elements<T, Op>(x, share, total);
    join_in_warp<1>(team, &total, shared, Op::join);
  }
  __syncthreads();
  const int outputs = team.lanes * x.pack;
  for (int o = static_cast<int>(threadIdx.x); o < outputs; o += kThreads) {
    const int64_t of = static_cast<int64_t>(blockIdx.x) * team.lanes + o / x.pack;
    if (of >= x.kept_count) return;
    int64_t to = static_cast<int64_t>(blockIdx.y) * x.chunk_stride + o % x.pack * x.pack_out;
    for_each_dimension(of, x.kept_rank, x.kept_shape, [&](int d, int64_t index) { to += index * x.kept_out[d]; });
    finish(to, joined(team, shared, x.pack, o, Op::join));
  }
}

template <class T, class Op>
__device__ void reduce(const ReduceArguments& x) {
  using Total = typename Op::Total;
  reduce_with<T, Op>(x, [&](int64_t to, Total total) {
    total = Op::result(x, total);
    // Totals of chunks keep their type; results are converted to the computing type, then to the stored dtype.
    if constexpr (std::is_same_v<Total, double>) {
      if (x.out_dtype == static_cast<int>(DType::Float64)) return store<double>(x.out_dtype, x.out, to, total);
    }
    store<T>(x.out_dtype, x.out, to, static_cast<T>(total));
  });
}

template <class T>
__device__ void arg_reduce(const ReduceArguments& x) {
  reduce_with<T, ArgExtreme<T>>(
      x, [&](int64_t to, Found<T> found) { *reinterpret_cast<int64_t*>(static_cast<char*>(x.out) + to) = found.at; });
}

#define RINGWISE_REDUCTIONS(name, T)                                                               \
  RINGWISE_BLOCK_KERNEL(reduce_sum_##name, ReduceArguments) { reduce<T, Sum<T>>(arguments); }      \
  RINGWISE_BLOCK_KERNEL(reduce_prod_##name, ReduceArguments) { reduce<T, Prod<T>>(arguments); }    \
  RINGWISE_BLOCK_KERNEL(reduce_most_##name, ReduceArguments) { reduce<T, Extreme<T>>(arguments); } \
  RINGWISE_BLOCK_KERNEL(arg_most_##name, ReduceArguments) { arg_reduce<T>(arguments); }
RINGWISE_REDUCTIONS(float, float)
RINGWISE_REDUCTIONS(double, double)
RINGWISE_REDUCTIONS(long, int64_t)

}  // namespace ringwise::tensor::cuda
