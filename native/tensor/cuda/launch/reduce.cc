// Reductions: the host's side of kernels/reduce.cu. Lays a reduction out on the device: which dimensions a block
// iterates over, how its threads share them (is_column: neighbouring threads have neighbouring outputs; otherwise they
// share one output), and when a long reduction is cut into chunks.

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <stdexcept>

#include "tensor/cuda/device/device.h"
#include "tensor/cuda/launch/arguments.h"
#include "tensor/cuda/launch/kernels.h"
#include "tensor/cuda/launch/launch.h"

namespace ringwise::tensor::cuda {

namespace {

// By ReduceOp, then by index of the computing type.
constexpr KernelId kReductions[][3] = {
    {KernelId::reduce_sum_float, KernelId::reduce_sum_double, KernelId::reduce_sum_long},
    {KernelId::reduce_sum_float, KernelId::reduce_sum_double, KernelId::reduce_sum_long},  // means
    {KernelId::reduce_prod_float, KernelId::reduce_prod_double, KernelId::reduce_prod_long},
    {KernelId::reduce_most_float, KernelId::reduce_most_double, KernelId::reduce_most_long},  // maxima
    {KernelId::reduce_most_float, KernelId::reduce_most_double, KernelId::reduce_most_long},  // minima
};
constexpr KernelId kArgReductions[] = {KernelId::arg_most_float, KernelId::arg_most_double, KernelId::arg_most_long};

/// Returns the index of a computing type in kReductions and kArgReductions.
int type_index_of(DType compute) {
  if (compute == DType::Float64) return 1;
  return compute == DType::Float32 || is_half(compute) ? 0 : 2;
}

/// A dimension and the strides of input and output, in bytes. Reduced dimensions have the output stride 0.
struct Dimension {
  int64_t size, in, out;
};
struct Dimensions {
  int rank = 0;
  Dimension at[kDims];

  void add(const Dimension& dimension) { at[rank++] = dimension; }
  const Dimension& last() const { return at[rank - 1]; }
  int64_t count() const {
    int64_t count = 1;
    for (int d = 0; d < rank; d++) count *= at[d].size;
    return count;
  }
  /// Sorts the dimensions so that the input is read in the order of its memory, and merges neighbours that are
  /// contiguous in input and output. Dimensions whose input stride is 0 come first.
  void sort() {
    const auto distance = [](const Dimension& x) { return x.in == 0 ? INT64_MAX : std::abs(x.in); };
    std::sort(at, at + rank, [&](const Dimension& a, const Dimension& b) { return distance(a) > distance(b); });
    int merged = 0;
    for (int d = 0; d < rank; d++) {
      const bool extends =
          merged > 0 && at[merged - 1].in == at[d].in * at[d].size && at[merged - 1].out == at[d].out * at[d].size;
      if (extends)
        at[merged - 1] = {at[merged - 1].size * at[d].size, at[d].in, at[d].out};
      else
        at[merged++] = at[d];
    }
    rank = merged;
  }
};

struct Reduction {
  const void* in;
  void* out;
  DType in_dtype, out_dtype;
  Dimensions kept, reduced;
};

/// Splits the dimensions of a simplified walk: those with an output stride other than 0 are kept, the others are
/// reduced. `keeps_order`: does not sort the reduced dimensions, because the result is an index into them.
Reduction reduction_of(const Walk& simple, bool keeps_order) {
  const Operand &out = simple.operand[0], &in = simple.operand[1];
  Reduction r{in.data, out.data, in.dtype, out.dtype, {}, {}};
  for (int d = 0; d < simple.rank; d++) {
    (out.strides[d] != 0 ? r.kept : r.reduced)
        .add({static_cast<int64_t>(simple.shape[d]), in.strides[d], out.strides[d]});
  }
  r.kept.sort();
  if (!keeps_order) r.reduced.sort();
  return r;
}

/// Returns whether the kernels of a computing type load this dtype in packs.
bool has_packs(int type_index, DType dtype) {
  if (type_index == 0) return dtype == DType::Float32 || is_half(dtype);
  return type_index == 1 ? dtype == DType::Float64 : dtype == DType::Int64 || dtype == DType::Int32;
}

/// Returns whether memory is dense and aligned, so that `pack` elements along the last dimension of kept (is_column) or
/// reduced dimensions can be loaded at once. In rows (not columns) with a single reduced
/// dimension, the last pack may be incomplete.
bool takes_packs(const Reduction& r, bool is_column, int64_t pack) {
  const Dimensions &along = is_column ? r.kept : r.reduced, &others = is_column ? r.reduced : r.kept;
  const auto element = static_cast<int64_t>(byte_size(r.in_dtype)), bytes = pack * element;
  const bool may_have_tail = !is_column && along.rank == 1;
  if (along.rank == 0 || along.last().in != element || along.last().size < pack) return false;
  if (along.last().size % pack != 0 && !may_have_tail) return false;
  if (reinterpret_cast<uintptr_t>(r.in) % static_cast<uintptr_t>(bytes) != 0) return false;
  const auto is_aligned = [&](const Dimension& x) { return x.in % bytes == 0; };
  return std::all_of(along.at, along.at + along.rank - 1, is_aligned) &&
         std::all_of(others.at, others.at + others.rank, is_aligned);
}

/// Returns the work of a launch. `type_index`: index in a row of kReductions.
TeamWork work_of(const ReduceArguments& x, int type_index) {
  const int elements = elements_in_flight(type_index == 0 ? sizeof(float) : sizeof(double));
  return {x.kept_count, x.reduced_count, x.is_column != 0, x.use_packs != 0, x.use_packs ? kPacksInFlight : elements};
}

/// Lays a reduction out, in one chunk. `total_bytes`: size of an accumulator of the kernel.
ReduceArguments arguments_of(const Reduction& r, int type_index, int total_bytes) {
  ReduceArguments x{};
  const auto element = static_cast<int64_t>(byte_size(r.in_dtype));
  x.in = r.in;
  x.out = r.out;
  x.in_dtype = static_cast<int32_t>(r.in_dtype);
  x.out_dtype = static_cast<int32_t>(r.out_dtype);
  x.is_column =
      r.kept.count() > 1 && (r.reduced.rank == 0 || std::abs(r.kept.last().in) < std::abs(r.reduced.last().in));
  const int64_t pack = reduced_pack(static_cast<int>(element), total_bytes, x.is_column);
  Dimensions kept = r.kept, reduced = r.reduced;
  Dimensions& along = x.is_column ? kept : reduced;
  x.use_packs = has_packs(type_index, r.in_dtype) && takes_packs(r, x.is_column, pack);
  x.pack = x.use_packs && x.is_column ? static_cast<int32_t>(pack) : 1;
  if (x.use_packs) {
    Dimension& packed = along.at[along.rank - 1];
    x.pack_out = packed.out;
    x.tail = static_cast<int32_t>(packed.size % pack);
    packed = {packed.size / pack, packed.in * pack, packed.out * pack};
  }
  x.kept_rank = kept.rank;
  for (int d = 0; d < kept.rank; d++) {
    x.kept_shape[d] = kept.at[d].size;
    x.kept_in[d] = kept.at[d].in;
    x.kept_out[d] = kept.at[d].out;
  }
  x.reduced_rank = reduced.rank;
  for (int d = 0; d < reduced.rank; d++) x.reduced[d] = reduced_dimension(reduced.at[d].size, reduced.at[d].in);
  x.kept_count = kept.count();
  x.reduced_count = x.chunk = reduced.count();
  x.lanes = work_of(x, type_index).lanes();
  return x;
}

void launch(KernelId kernel, const ReduceArguments& x, int64_t chunks = 1) {
  if (x.kept_count == 0) return;
  const int64_t blocks = (x.kept_count + x.lanes - 1) / x.lanes;
  if (blocks > INT32_MAX) throw std::invalid_argument("reduce: the result has too many elements for one launch.");
  current_device().launch(kernel, {static_cast<unsigned>(blocks), static_cast<unsigned>(chunks)}, kThreads, x);
}

/// Returns the type of the totals that a kernel joins (Total of kernels/reduce.cu).
DType total_of(ReduceOp op, int type_index) {
  const bool is_extreme = op == ReduceOp::Max || op == ReduceOp::Min;
  if (type_index == 2) return DType::Int64;
  return is_extreme && type_index == 0 ? DType::Float32 : DType::Float64;
}

/// Computes the totals of all chunks, [chunks, kept], then reduces these.
void reduce_in_chunks(ReduceOp op, int type_index, const Reduction& whole, int64_t chunks, int64_t divisor) {
  const DType total = total_of(op, type_index);
  const int bytes = static_cast<int>(byte_size(total));
  Reduction parts = whole, rest = whole;
  int64_t stride = bytes;
  for (int d = whole.kept.rank - 1; d >= 0; d--) {
    parts.kept.at[d].out = rest.kept.at[d].in = stride;
    stride *= whole.kept.at[d].size;
  }
  const int64_t units = arguments_of(whole, type_index, bytes).reduced_count, chunk = (units + chunks - 1) / chunks;
  chunks = (units + chunk - 1) / chunk;
  rest.reduced = {};
  rest.reduced.add({chunks, stride, 0});
  const Scratch partial(static_cast<size_t>(stride * chunks));
  rest.in = parts.out = partial.data();
  rest.in_dtype = parts.out_dtype = total;
  ReduceArguments first = arguments_of(parts, type_index, bytes),
                  second = arguments_of(rest, type_index_of(total), bytes);
  first.chunk = chunk;
  first.chunk_stride = stride;
  first.is_min = second.is_min = op == ReduceOp::Min;
  second.has_divisor = op == ReduceOp::Mean;
  second.divisor = divisor;
  launch(kReductions[static_cast<int>(op)][type_index], first, chunks);
  launch(kReductions[static_cast<int>(op)][type_index_of(total)], second);
}

}  // namespace

void reduce(const Reduce& given) {
  const auto& [op, walk] = given;
  const bool is_extreme = op == ReduceOp::Max || op == ReduceOp::Min;
  const DType in = walk.operand[1].dtype, compute = is_extreme ? in : converting_type(walk.operand[0].dtype, in);
  const int type_index = type_index_of(compute);
  const Reduction whole = reduction_of(simplified(walk), false);
  ReduceArguments x = arguments_of(whole, type_index, static_cast<int>(byte_size(total_of(op, type_index))));
  if (x.kept_count == 0) return;
  x.is_min = op == ReduceOp::Min;
  x.has_divisor = op == ReduceOp::Mean;
  x.divisor = whole.reduced.count();
  const int64_t chunks = work_of(x, type_index).chunks();
  if (chunks > 1)
    reduce_in_chunks(op, type_index, whole, chunks, x.divisor);
  else
    launch(kReductions[static_cast<int>(op)][type_index], x);
}

void arg_reduce(const ArgReduce& given) {
  const auto& [is_max, walk] = given;
  const int type_index = type_index_of(walk.operand[1].dtype);
  constexpr int kFoundBytes = 16;  // of Found in kernels/reduce.cu
  ReduceArguments x = arguments_of(reduction_of(simplified(walk), true), type_index, kFoundBytes);
  x.is_min = !is_max;
  launch(kArgReductions[type_index], x);
}

}  // namespace ringwise::tensor::cuda
