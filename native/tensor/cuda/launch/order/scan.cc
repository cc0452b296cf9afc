// Running sums: the host's side of kernels/scan.cu. Chooses how many columns a block sums, and cuts long columns into
// chunks where there are too few columns for the whole device.
#include <algorithm>
#include <bit>
#include <stdexcept>

#include "tensor/cuda/launch/kernels.h"
#include "tensor/cuda/launch/launch.h"

namespace ringwise::tensor::cuda {

namespace {

/// Lays out the columns over blocks, in one chunk.
ScanArguments scan_arguments(const Cumsum& x) {
  ScanArguments result{};
  result.out = x.out;
  result.a = x.a;
  result.columns = static_cast<int64_t>(x.outer * x.inner);
  result.size = result.chunk = static_cast<int64_t>(x.size);
  result.inner = static_cast<int64_t>(x.inner);
  result.chunks = 1;
  result.dtype = static_cast<int32_t>(x.dtype);
  result.reverse = x.reverse;
  // A warp reads neighbouring columns. If columns are short, a block takes more of them.
  size_t lanes = std::bit_ceil(std::min<size_t>(x.inner, 32));
  while (lanes < std::min<size_t>(kThreads, x.outer * x.inner) && kScanTile / lanes >= 2 * x.size) lanes *= 2;
  result.lane_bits = std::countr_zero(lanes);
  return result;
}

unsigned blocks_of(const ScanArguments& x) {
  const int64_t lanes = int64_t{1} << x.lane_bits, blocks = (x.columns + lanes - 1) / lanes;
  if (blocks > INT32_MAX) throw std::invalid_argument("cumsum: the tensor has too many columns for one launch.");
  return static_cast<unsigned>(blocks);
}

/// Returns the number of positions of a chunk. Chunks are whole tiles, at least four unless there is one chunk, and as
/// many as keep the device busy.
int64_t chunk_of(const ScanArguments& x) {
  constexpr int64_t kLeastTiles = 4, kMostChunks = 1024;
  const int64_t tile = kScanTile >> x.lane_bits, tiles = (x.size + tile - 1) / tile;
  const int64_t wanted = 4 * static_cast<int64_t>(current_device().multiprocessors()) / blocks_of(x);
  const int64_t chunks = std::clamp<int64_t>(std::min(wanted, tiles / kLeastTiles), 1, kMostChunks);
  return (tiles + chunks - 1) / chunks * tile;
}

void launch(const ScanArguments& x) {
  const auto dtype = static_cast<DType>(x.dtype);
  const KernelId kernel = dtype == DType::Float64                     ? KernelId::cumsum_double
                          : dtype == DType::Float32 || is_half(dtype) ? KernelId::cumsum_float
                                                                      : KernelId::cumsum_long;
  current_device().launch(kernel, {blocks_of(x), static_cast<unsigned>(x.chunks)}, kThreads, x);
}

}  // namespace

void cumsum(const Cumsum& given) {
  if (given.outer == 0 || given.size == 0 || given.inner == 0) return;
  ScanArguments x = scan_arguments(given);
  x.chunk = chunk_of(x);
  x.chunks = (x.size + x.chunk - 1) / x.chunk;
  if (x.chunks == 1) return launch(x);
  // The totals of all chunks, then the running sums of these, then the chunks, each from where the last one ended.
  const bool is_integer = given.dtype >= DType::Int8;
  const Scratch totals(static_cast<size_t>(x.columns * x.chunks) * sizeof(double));
  x.totals = totals.data();
  x.out = nullptr;
  launch(x);
  Cumsum of_totals = given;
  of_totals.dtype = is_integer ? DType::Int64 : DType::Float64;
  of_totals.a = of_totals.out = x.totals;
  of_totals.size = static_cast<size_t>(x.chunks);
  of_totals.reverse = false;
  launch(scan_arguments(of_totals));
  x.out = given.out;
  launch(x);
}

}  // namespace ringwise::tensor::cuda
