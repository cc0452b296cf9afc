// Sorts rows by merging. Blocks sort tiles of 2048 entries in shared memory; then pairs of runs are merged, launch
// after launch, until a row is one run. An entry is a key, an unsigned integer in the order of the elements, with the
// element's position below it. So no two entries are equal, and equal elements keep their order.
#include <bit>

#include "tensor/cuda/kernels/shared/functions.cuh"

namespace ringwise::tensor::cuda {

constexpr int kRun = kSortTile / kThreads;  // entries of a thread
constexpr int kBatch = 4;                   // loads that a thread has in flight

/// An entry of elements with more than 32 bits, or of rows with 2^32 elements or more.
struct WideEntry {
  uint64_t key, at;
  __device__ friend bool operator<(const WideEntry& a, const WideEntry& b) {
    return a.key < b.key || (a.key == b.key && a.at < b.at);
  }
};
/// The other entries: the key in the upper half, the position in the lower one.
using NarrowEntry = uint64_t;

template <class Entry>
__device__ inline Entry entry_of(uint64_t key, int64_t at) {
  if constexpr (std::is_same_v<Entry, WideEntry>)
    return {key, static_cast<uint64_t>(at)};
  else
    return key << 32 | static_cast<uint64_t>(at);
}
/// Returns an entry behind all others.
template <class Entry>
__device__ inline Entry last_entry() {
  if constexpr (std::is_same_v<Entry, WideEntry>)
    return {~uint64_t{0}, ~uint64_t{0}};
  else
    return ~uint64_t{0};
}
__device__ inline int64_t position_in(const WideEntry& entry) { return static_cast<int64_t>(entry.at); }
__device__ inline int64_t position_in(NarrowEntry entry) { return static_cast<int64_t>(entry & 0xffffffffu); }

/// Returns the key of a value: equal for 0 and -0, and the largest for every NaN.
template <class Entry>
__device__ inline uint64_t key_of(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value + 0.0f), sign = uint32_t{1} << 31;
  return value != value ? ~uint32_t{0} : bits & sign ? ~bits : bits | sign;
}
template <class Entry>
__device__ inline uint64_t key_of(double value) {
  const uint64_t bits = std::bit_cast<uint64_t>(value + 0.0), sign = uint64_t{1} << 63;
  return value != value ? ~uint64_t{0} : bits & sign ? ~bits : bits | sign;
}
template <class Entry>
__device__ inline uint64_t key_of(int64_t value) {
  const int sign = std::is_same_v<Entry, WideEntry> ? 63 : 31;
  return static_cast<uint64_t>(value) ^ uint64_t { 1 } << sign;
}

/// Makes the entry of an element, or of an index, which is its own key. An index out of range is noted as a fault and
/// comes last.
template <class Entry, class C>
__device__ inline Entry read_entry(const SortArguments& x, C value, int64_t at) {
  uint64_t key;
  if (x.limit > 0) {
    const auto index = static_cast<int64_t>(value);
    if (index < 0 || index >= x.limit) {
      *x.fault = kLookupFault;
      return last_entry<Entry>();
    }
    key = static_cast<uint64_t>(index);
  } else {
    key = key_of<Entry>(value);
    if (x.descending) key = ~key;
    if constexpr (!std::is_same_v<Entry, WideEntry>) key &= 0xffffffffu;
  }
  return entry_of<Entry>(key, at);
}

/// Returns the place of an entry in shared memory. One unused place after 8 entries keeps the entries of neighbouring
/// threads on different banks.
__device__ inline int place_of(int i) { return i + i / kRun; }
constexpr int kPlaces = kSortTile + kSortTile / kRun;

/// Returns how many of the first `diagonal` entries of two merged runs come from the first run.
template <class Int, class First, class Second>
__device__ inline Int split_of(Int first_count, Int second_count, Int diagonal, First first, Second second) {
  Int low = diagonal > second_count ? diagonal - second_count : 0;
  Int high = diagonal < first_count ? diagonal : first_count;
  while (low < high) {
    const Int middle = (low + high) / 2;
    if (second(diagonal - 1 - middle) < first(middle))
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

/// Merges two runs, the second behind the first in shared memory, and takes kRun entries from `diagonal` on.
template <class Entry>
__device__ inline void merge(Entry* taken, const Entry* shared, int begin, int first_count, int second_count,
                             int diagonal) {
  const auto first = [&](int i) { return shared[place_of(begin + i)]; };
  const auto second = [&](int j) { return shared[place_of(begin + first_count + j)]; };
  int i = split_of(first_count, second_count, diagonal, first, second), j = diagonal - i;
  Entry one = i < first_count ? first(i) : last_entry<Entry>();
  Entry two = j < second_count ? second(j) : last_entry<Entry>();
#pragma unroll
  for (int k = 0; k < kRun; k++) {
    const bool is_second = two < one;
    taken[k] = is_second ? two : one;
    if (is_second)
      two = ++j < second_count ? second(j) : last_entry<Entry>();
    else
      one = ++i < first_count ? first(i) : last_entry<Entry>();
  }
}

/// Stores the entries of a thread in shared memory. Its first barrier waits until all threads have read the previous
/// content.
template <class Entry>
__device__ inline void put_run(Entry* shared, const Entry* run) {
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kRun; k++) shared[place_of(static_cast<int>(threadIdx.x) * kRun + k)] = run[k];
  __syncthreads();
}

/// Writes the sorted entries of a tile: elements and positions if there is memory for them, else entries.
/// place(i, row, to) sets the row of entry i and the offset in the output, and returns whether the entry exists.
template <class Entry, class Place>
__device__ inline void write_tile(const SortArguments& x, const Entry* shared, Place place) {
  const int thread = static_cast<int>(threadIdx.x);
  int64_t row = 0, to = 0;
  if (!x.values) {
#pragma unroll 4
    for (int i = thread; i < kSortTile; i += kThreads) {
      if (place(i, row, to)) static_cast<Entry*>(x.to)[to] = shared[place_of(i)];
    }
    return;
  }
  with_type(x.dtype, [&](auto type) {
    using E = decltype(type);
#pragma unroll 4
    for (int i = thread; i < kSortTile; i += kThreads) {
      if (!place(i, row, to)) continue;
      const int64_t at = position_in(shared[place_of(i)]);
      static_cast<E*>(x.values)[to] = static_cast<const E*>(x.a)[row * x.cols + at];
      x.indices[to] = at;
    }
  });
}

/// Returns the offset of an element in [rows / inner, cols, inner].
__device__ inline int64_t offset_of(const SortArguments& x, int64_t row, int64_t at) {
  if (x.inner == 1) return row * x.cols + at;
  const int64_t o = row / x.inner;
  return (o * x.cols + at) * x.inner + (row - o * x.inner);
}

/// Sorts tiles. A tile has several short rows, of 2^slot_bits slots each, or a part of a long one.
template <class Entry>
__device__ void sort_tiles(const SortArguments& x) {
  __shared__ Entry shared[kPlaces];
  const int thread = static_cast<int>(threadIdx.x), slots = 1 << x.slot_bits;
  for (int64_t tile = blockIdx.x; tile < x.tiles; tile += gridDim.x) {
    const int64_t part = tile % x.to_runs, first = tile / x.to_runs * (kSortTile >> x.slot_bits);
    const int64_t begin = part * kSortTile;
    Entry run[kRun];
    with_type(x.dtype, [&](auto type) {
      using E = decltype(type);
      using C =
          std::conditional_t<std::is_same_v<E, double>, double,
                             std::conditional_t<std::is_integral_v<E> || std::is_same_v<E, Bool>, int64_t, float>>;
#pragma unroll 1
      for (int i = thread; i < kSortTile; i += kBatch * kThreads) {
        C loaded[kBatch];
#pragma unroll
        for (int k = 0; k < kBatch; k++) {
          const int slot = i + k * kThreads;
          const int64_t row = first + (slot >> x.slot_bits), at = begin + (slot & (slots - 1));
          const bool exists = row < x.rows && at < x.cols;
          loaded[k] = exists ? read_as<C>(static_cast<const E*>(x.a)[offset_of(x, row, at)]) : C(0);
        }
#pragma unroll
        for (int k = 0; k < kBatch; k++) {
          const int slot = i + k * kThreads;
          const int64_t at = begin + (slot & (slots - 1));
          const bool exists = first + (slot >> x.slot_bits) < x.rows && at < x.cols;
          shared[place_of(slot)] = exists ? read_entry<Entry>(x, loaded[k], at) : last_entry<Entry>();
        }
      }
    });
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kRun; k++) run[k] = shared[place_of(thread * kRun + k)];
    // Odd-even transposition sort.
#pragma unroll
    for (int round = 0; round < kRun; round++) {
#pragma unroll
      for (int k = round % 2; k + 1 < kRun; k += 2) {
        const Entry low = run[k], high = run[k + 1];
        const bool is_swapped = high < low;
        run[k] = is_swapped ? high : low;
        run[k + 1] = is_swapped ? low : high;
      }
    }
    for (int width = kRun; width < slots; width *= 2) {
      put_run(shared, run);
      const int pair = thread * kRun & ~(2 * width - 1);
      merge(run, shared, pair, width, width, thread * kRun - pair);
    }
    put_run(shared, run);
    write_tile(x, shared, [&](int i, int64_t& row, int64_t& to) {
      const int64_t at = i & (slots - 1);
      row = first + (i >> x.slot_bits);
      to = (row * x.to_runs + part) * x.to_stride + at;
      return row < x.rows && at < x.to_stride && begin + at < x.cols;
    });
    __syncthreads();  // before the next tile is loaded
  }
}

/// Merges pairs of runs of each row. A block makes a part of the result of a pair, as long as a tile.
template <class Entry>
__device__ void sort_merge(const SortArguments& x) {
  __shared__ Entry shared[kPlaces];
  __shared__ int64_t split[2];
  const int thread = static_cast<int>(threadIdx.x);
  const int64_t parts = (x.to_stride + kSortTile - 1) / kSortTile;
  const auto least = [](int64_t a, int64_t b) { return a < b ? a : b; };
  for (int64_t tile = blockIdx.x; tile < x.tiles; tile += gridDim.x) {
    const int64_t merged = tile / parts, row = merged / x.to_runs, pair = merged - row * x.to_runs;
    // Entries of a row before the pair, and of either run. Only the first `stride` entries of a run can be results.
    const int64_t before = 2 * pair * x.length, rest = x.cols - before - x.length;
    const int64_t first_count = least(x.stride, x.cols - before), second_count = rest > 0 ? least(x.stride, rest) : 0;
    const int64_t total = least(first_count + second_count, x.to_stride);
    const int64_t begin = (tile - merged * parts) * kSortTile, end = least(begin + kSortTile, total);
    if (begin >= total) continue;
    const Entry *first = static_cast<const Entry*>(x.from) + (row * x.runs + 2 * pair) * x.stride,
                *second = first + x.stride;
    if (thread == 0 || thread == kWarp) {
      split[thread / kWarp] = split_of(
          first_count, second_count, thread == 0 ? begin : end, [&](int64_t i) { return first[i]; },
          [&](int64_t j) { return second[j]; });
    }
    __syncthreads();
    const int64_t i = split[0], j = begin - i;
    const int first_part = static_cast<int>(split[1] - i), all = static_cast<int>(end - begin);
    Entry run[kRun];
#pragma unroll
    for (int k = 0; k < kRun; k++) {
      const int e = k * kThreads + thread;
      if (e < all) run[k] = e < first_part ? first[i + e] : second[j + (e - first_part)];
    }
#pragma unroll
    for (int k = 0; k < kRun; k++) {
      if (k * kThreads + thread < all) shared[place_of(k * kThreads + thread)] = run[k];
    }
    __syncthreads();
    const int diagonal = thread * kRun < all ? thread * kRun : all;
    merge(run, shared, 0, first_part, all - first_part, diagonal);
    put_run(shared, run);
    write_tile(x, shared, [&](int e, int64_t& of_row, int64_t& to) {
      of_row = row;
      to = merged * x.to_stride + begin + e;
      return e < all;
    });
    __syncthreads();  // before the next tile is loaded
  }
}

RINGWISE_BLOCK_KERNEL(sort_tiles_narrow, SortArguments) { sort_tiles<NarrowEntry>(arguments); }
RINGWISE_BLOCK_KERNEL(sort_tiles_wide, SortArguments) { sort_tiles<WideEntry>(arguments); }
RINGWISE_BLOCK_KERNEL(sort_merge_narrow, SortArguments) { sort_merge<NarrowEntry>(arguments); }
RINGWISE_BLOCK_KERNEL(sort_merge_wide, SortArguments) { sort_merge<WideEntry>(arguments); }

}  // namespace ringwise::tensor::cuda
