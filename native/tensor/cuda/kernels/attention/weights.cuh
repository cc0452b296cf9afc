// The weights of 16-bit attention, as a warp holds them in fragments (shared/mma.cuh): from products of rows to scores,
// and the random choice of dropout. The rows of fragments are queries and their columns keys, or the other way round
// (is_turned). Scores count in powers of two, because devices have an instruction for these alone.
#pragma once

#include "tensor/cuda/kernels/attention/heads.cuh"
#include "tensor/cuda/kernels/shared/mma.cuh"

namespace ringwise::tensor::cuda {

constexpr float kLog2E = 1.4426950408889634f, kNever = -std::numeric_limits<float>::infinity();

/// Returns 2^x, with an error of 2 units in the last place.
__device__ inline float power_of_two(float x) {
#ifdef __CUDACC__
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
#else
  return exp2f(x);
#endif
}

/// Calls body(sum, query, key) for each element that a thread has of 16 × 8 · kBlocks, with distances from its first
/// query and its first key.
template <bool is_turned, int kBlocks, class Body>
__device__ inline void for_each_weight(Sums (&sums)[kBlocks], Body body) {
#pragma unroll
  for (int j = 0; j < kBlocks; j++) {
#pragma unroll
    for (int e = 0; e < 4; e++) {
      const int row = e / 2 * 8, col = j * 8 + e % 2;
      body(sums[j].at[e], is_turned ? col : row, is_turned ? row : col);
    }
  }
}

/// Returns n, or a limit that is farther than the end of any tile.
__device__ inline int near(int64_t n) { return static_cast<int>(n < -1024 ? -1024 : n > 1024 ? 1024 : n); }

/// Returns a score with the mask's element for it.
template <class E>
__device__ inline float masked(float score, E element) {
  if constexpr (std::is_same_v<E, Bool>)
    return element.value ? score : kNever;
  else
    return score + read_as<float>(element) * kLog2E;
}

/// Adds the mask, whose elements have type E. `queries` and `keys` are left from the thread's first one on.
template <class E, bool is_turned, int kBlocks>
__device__ inline void add_mask(Sums (&scores)[kBlocks], const AttentionArguments& x, const TilePosition& at,
                                int64_t query, int64_t key, int queries, int keys) {
  const E* const mask = static_cast<const E*>(x.mask.data) + at.b * x.mask.batch + at.h * x.mask.head +
                        query * x.mask.row + key * x.mask.col;
  if constexpr (!is_turned) {
    if (x.mask_pairs) {
      struct alignas(2 * sizeof(E)) Pair {
        E at[2];
      };
#pragma unroll
      for (int j = 0; j < kBlocks; j++) {
#pragma unroll
        for (int r = 0; r < 2; r++) {
          if (r * 8 >= queries || j * 8 >= keys) continue;
          const Pair pair = *reinterpret_cast<const Pair*>(mask + r * 8 * x.mask.row + j * 8);
#pragma unroll
          for (int i = 0; i < 2; i++) scores[j].at[r * 2 + i] = masked(scores[j].at[r * 2 + i], pair.at[i]);
        }
      }
      return;
    }
  }
  for_each_weight<is_turned>(scores, [&](float& score, int q, int k) {
    if (q < queries && k < keys) score = masked(score, mask[q * x.mask.row + k * x.mask.col]);
  });
}

/// Turns products of rows into scores; -∞ where a query does not see a key. `query` and `key`: the thread's first ones.
/// Nothing is hidden and no mask is added if the tile `is_plain`.
template <class E, bool is_turned, int kBlocks>
__device__ inline void set_scores(Sums (&products)[kBlocks], const AttentionArguments& x, const TilePosition& at,
                                  int64_t query, int64_t key, bool is_plain) {
  const float scale = static_cast<float>(x.scale) * kLog2E;
  for_each_weight<is_turned>(products, [&](float& score, int, int) { score *= scale; });
  if (is_plain) return;
  const int queries = near(x.queries - query), keys = near(x.keys - key);
  if (x.mask.data) {
    if (x.is_bool_mask)
      add_mask<Bool, is_turned>(products, x, at, query, key, queries, keys);
    else
      add_mask<E, is_turned>(products, x, at, query, key, queries, keys);
  }
  const int ahead = x.causal ? near(query - key) : 1024;  // of the first key, the first query
  for_each_weight<is_turned>(products, [&](float& score, int q, int k) {
    if (k >= keys || k - q > ahead) score = kNever;
  });
}

/// The weights of a thread that dropout keeps, a bit each. Philox gives the words of four neighbouring keys, of which a
/// thread has two in a row, or one in a column. So the threads that have the others compute a part each, and exchange
/// bits. All threads of a warp must call the constructor.
template <bool is_turned, int kBlocks>
class Kept {
 public:
  /// `query` and `key`: the warp's first ones in the tile.
  __device__ Kept(const AttentionArguments& x, const TilePosition& at, int64_t query, int64_t key) {
    const int lane = lane_of_thread(), g = row_of_lane(), pair = col_of_lane();
    const int member = is_turned ? g % 4 : lane % 2;
    uint32_t own = x.limit == 0 ? 0xffffffffu : 0;
    if (x.limit != 0) {
      const Position stream = position_of(x.stream);  // read again for each tile, because registers are few
#pragma unroll 1                                      // for the same reason
      for (int j = 0; j < kBlocks; j++) {
        const int q = is_turned ? j * 8 + pair + member % 2 : g + member * 8,
                  k = is_turned ? member / 2 * 8 + g / 4 * 4 : j * 8 + pair / 4 * 4;
        const Words words = words_of(x, stream, at, query + q, key + k);
#pragma unroll
        for (int i = 0; i < 4; i++) own |= uint32_t{words.at[i] >= x.limit} << (j * 4 + i);
      }
    }
#pragma unroll
    for (int i = 0; i < kMembers; i++)
      bits_[i] = __shfl_sync(0xffffffffu, own, is_turned ? (lane & ~12) | i << 2 : (lane & ~1) | i) >>
                 (is_turned ? g % 4 : pair % 4);
  }

  /// Tells whether element e of block j is kept.
  __device__ bool has(int j, int e) const {
    return bits_[is_turned ? e : e / 2] >> (j * 4 + (is_turned ? 0 : e % 2)) & 1;
  }

 private:
  static_assert(kBlocks * 4 <= 32);
  static constexpr int kMembers = is_turned ? 4 : 2;
  uint32_t bits_[kMembers];
};

}  // namespace ringwise::tensor::cuda
