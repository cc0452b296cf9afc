// The inner kernel of the matrix product: a tile of C, R rows by V vectors, stays in registers while the k loop
// adds outer products of a column of A and a row of B. Included only by families/.
namespace ringwise::tensor::RINGWISE_LEVEL {

#if RINGWISE_VECTOR_BYTES == 64
constexpr int kTileRows = 12;  // 24 of 32 registers hold C
#elif RINGWISE_VECTOR_BYTES == 32
constexpr int kTileRows = 6;  // 12 of 16
#elif defined(__aarch64__)
constexpr int kTileRows = 10;  // 20 of 32
#else
constexpr int kTileRows = 4;  // 8 of 16
#endif
constexpr int kTileVecs = 2;
constexpr int kTileCols = kTileVecs * kLanes;
constexpr size_t kShortLoop = 96;  // most steps of k for which prefetching C costs more than it saves
constexpr int kPrefetchSteps = 8;  // rows of B fetched ahead, from L2 into L1

// The operands of a tile kernel. Element (r, p) of A is a[r * a_row + p * a_step], one of the two steps being 1;
// row p of B starts at b + p * b_step and row r of C at c + r * c_row, both V whole vectors long.
struct Tile {
  const float* a;
  size_t a_row;
  size_t a_step;
  const float* b;
  size_t b_step;
  float* c;
  size_t c_row;
  size_t k;
  bool accumulate;
};

// kUnitRow: a_row is 1; else a_step is 1.
template <int R, int V, bool kUnitRow>
void tile_kernel(const Tile& t) {
  constexpr int kNear = 3;  // rows that one pointer reaches: an address is a pointer plus 0, 1 or 2 times the step
  constexpr int kPointers = kUnitRow ? 1 : (R + kNear - 1) / kNear;
  const size_t a_row = kUnitRow ? 1 : t.a_row, c_row = t.c_row;
  const size_t a_step = kUnitRow ? t.a_step : 1, b_step = t.b_step, k = t.k;
  const bool accumulate = t.accumulate;
  const float* a[kPointers];
  unrolled<kPointers>([&](auto i) RINGWISE_INLINE { a[i] = t.a + i * kNear * a_row; });
  const float* b = t.b;
  float* c = t.c;

  // Prefetches C, which arrives while the loop runs.
  if (k > kShortLoop) {
    for (int r = 0; r < R; r++) {
      for (int v = 0; v < V; v++) __builtin_prefetch(c + r * c_row + v * kLanes, 1);
    }
  }
  Vec sum[R * V];
  unrolled<R * V>([&](auto i) RINGWISE_INLINE { sum[i] = Vec{}; });
#pragma GCC unroll 4
  for (size_t p = 0; p < k; p++) {
    Vec row[V];
    unrolled<V>([&](auto v) RINGWISE_INLINE {
      row[v] = load(b + v * kLanes);
      if constexpr (v * kLanes % 16 == 0) __builtin_prefetch(b + kPrefetchSteps * b_step + v * kLanes);
    });
    unrolled<R>([&](auto r) RINGWISE_INLINE {
      const Vec value = splat(kUnitRow ? a[0][r] : a[r / kNear][r % kNear * a_row]);
      unrolled<V>([&](auto v) RINGWISE_INLINE { sum[r * V + v] += value * row[v]; });
    });
    unrolled<kPointers>([&](auto i) RINGWISE_INLINE { a[i] += a_step; });
    b += b_step;
  }
  unrolled<R>([&](auto r) RINGWISE_INLINE {
    unrolled<V>([&](auto v) RINGWISE_INLINE {
      float* to = c + v * kLanes;
      store(to, accumulate ? load(to) + sum[r * V + v] : sum[r * V + v]);
    });
    c += c_row;
  });
}

using TileKernel = void (*)(const Tile&);

template <int V, bool kUnitRow, size_t... R>
constexpr std::array<TileKernel, sizeof...(R)> tile_kernels(std::index_sequence<R...>) {
  return {&tile_kernel<static_cast<int>(R) + 1, V, kUnitRow>...};
}

// kTileKernels[V - 1][a_row == 1][R - 1]
constexpr std::array<TileKernel, kTileRows> kTileKernels[kTileVecs][2] = {
    {tile_kernels<1, false>(std::make_index_sequence<kTileRows>{}),
     tile_kernels<1, true>(std::make_index_sequence<kTileRows>{})},
    {tile_kernels<2, false>(std::make_index_sequence<kTileRows>{}),
     tile_kernels<2, true>(std::make_index_sequence<kTileRows>{})},
};

}  // namespace ringwise::tensor::RINGWISE_LEVEL
