// Sorting: the host's side of kernels/sort.cu. Sorts tiles, then merges pairs of runs until each row is one run.
#include "tensor/cuda/launch/order/sort.h"

#include <algorithm>
#include <bit>
#include <memory>

#include "tensor/cuda/launch/kernels.h"
#include "tensor/cuda/launch/launch.h"

namespace ringwise::tensor::cuda {

namespace {

constexpr int64_t kTile = kSortTile;

int64_t ceil_of(int64_t a, int64_t b) { return (a + b - 1) / b; }

void launch_tiles(KernelId kernel, SortArguments& x, int64_t tiles) {
  x.tiles = tiles;
  const int64_t most = static_cast<int64_t>(current_device().multiprocessors()) * 32;
  current_device().launch(kernel, {static_cast<unsigned>(std::min(tiles, most))}, kThreads, x);
}

}  // namespace

void sort_rows(SortArguments x, int64_t count, bool is_narrow) {
  const KernelId sort_tiles = is_narrow ? KernelId::sort_tiles_narrow : KernelId::sort_tiles_wide;
  const KernelId sort_merge = is_narrow ? KernelId::sort_merge_narrow : KernelId::sort_merge_wide;
  x.slot_bits = std::bit_width(static_cast<uint64_t>(std::clamp<int64_t>(x.cols, 8, kTile) - 1));
  x.to_runs = 1;
  x.to_stride = count;
  if (x.cols <= kTile) return launch_tiles(sort_tiles, x, ceil_of(x.rows, kTile >> x.slot_bits));
  void* const values = x.values;
  void* const result = x.to;
  std::unique_ptr<Scratch> from, to;
  // Lays out the runs that the next launch writes. Entries of a run behind the first `count` cannot be results, so they
  // are dropped.
  const auto begin_runs = [&](int64_t length) {
    x.to_runs = ceil_of(x.cols, length);
    x.to_stride = std::min(length, count);
    const bool is_last = x.to_runs == 1;
    from = std::move(to);
    if (!is_last)
      to = std::make_unique<Scratch>(static_cast<size_t>(x.rows * x.to_runs * x.to_stride) * entry_bytes(is_narrow));
    x.values = is_last ? values : nullptr;
    x.to = is_last ? result : to->data();
  };
  begin_runs(kTile);
  launch_tiles(sort_tiles, x, x.rows * x.to_runs);
  for (x.length = kTile; x.to_runs > 1; x.length *= 2) {
    x.from = x.to;
    x.runs = x.to_runs;
    x.stride = x.to_stride;
    begin_runs(2 * x.length);
    launch_tiles(sort_merge, x, x.rows * x.to_runs * ceil_of(x.to_stride, kTile));
  }
}

void sort(const Sort& given) {
  if (given.count == 0 || given.rows == 0) return;
  SortArguments x{};
  x.a = given.a;
  x.values = given.values;
  x.indices = given.indices;
  x.rows = static_cast<int64_t>(given.rows);
  x.cols = static_cast<int64_t>(given.cols);
  x.inner = 1;
  x.dtype = static_cast<int32_t>(given.dtype);
  x.descending = given.descending;
  sort_rows(x, static_cast<int64_t>(given.count), byte_size(given.dtype) <= 4 && given.cols <= UINT32_MAX);
}

}  // namespace ringwise::tensor::cuda
