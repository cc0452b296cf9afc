// Attention of 16-bit types on tensor cores: the same passes as in attention.cu, with fragments in the place of tiles.
// Weights are rounded to 16 bits before they multiply values, keys or queries; all sums are in float32. Each result has
// one writer, and each sum the same order every time.
#include "tensor/cuda/kernels/attention/fragments.cuh"
#include "tensor/cuda/kernels/attention/weights.cuh"

namespace ringwise::tensor::cuda {

/// Returns the end of the keys that causality lets the own queries see.
__device__ inline int64_t seen_keys(const AttentionArguments& x, int64_t begin) {
  return x.causal && begin + kOwnRows < x.keys ? begin + kOwnRows : x.keys;
}

/// Returns whether queries [query, …) see all of keys [key, key + keys), and no mask is added.
__device__ inline bool is_plain(const AttentionArguments& x, int64_t query, int64_t key, int keys) {
  return !x.mask.data && key + keys <= x.keys && !(x.causal && key + keys - 1 > query);
}

/// The maximum and the sum over the keys so far, for each of a thread's two queries. The sum is over the keys of this
/// thread alone.
struct Running {
  float most[2] = {kNever, kNever}, total[2] = {};

  /// Turns scores into 2^(score - maximum), and rescales the sums so far to the new maximum.
  template <int kBlocks, int kSums>
  __device__ void renormalise(Sums (&scores)[kBlocks], Sums (&sums)[kSums]) {
#pragma unroll
    for (int r = 0; r < 2; r++) {
      float high = most[r];
#pragma unroll
      for (int j = 0; j < kBlocks; j++) high = fmaxf(high, fmaxf(scores[j].at[r * 2], scores[j].at[r * 2 + 1]));
      high = over_row(high, [](float a, float b) { return fmaxf(a, b); });
      // If no key has been seen, any finite shift gives 2^-∞ = 0.
      const float shift = high == kNever ? 0.0f : high, shrink = power_of_two(most[r] - shift);
      float part = 0;
#pragma unroll
      for (int j = 0; j < kBlocks; j++) {
#pragma unroll
        for (int e = r * 2; e < r * 2 + 2; e++) part += scores[j].at[e] = power_of_two(scores[j].at[e] - shift);
      }
#pragma unroll
      for (int j = 0; j < kSums; j++) {
        sums[j].at[r * 2] *= shrink;
        sums[j].at[r * 2 + 1] *= shrink;
      }
      total[r] = total[r] * shrink + part;
      most[r] = high;
    }
  }
};

/// Computes the results and lse of a tile of queries.
template <class S, class E>
__device__ void attention(const AttentionArguments& x) {
  __shared__ Memory<S, E> memory;
  const bool use_packs = x.use_packs != 0;
  const TilePosition at = tile_position_of(x, true);
  const auto q = rows_of<const E>(x.q, at.b, at.h, x.queries, x.width),
             k = rows_of<const E>(x.k, at.b, at.h, x.keys, x.width),
             v = rows_of<const E>(x.v, at.b, at.h, x.keys, x.value_width);
  const int64_t begin = at.tile * kOwnRows, col = S::is_sliced ? int64_t{blockIdx.y} * S::kCols : 0;
  const OwnRows<S, E> own(memory, q, begin, use_packs);
  const int64_t of_warp = begin + own.first_row(), first = of_warp + row_of_lane();
  Result<S> sums{};
  Running running;
  visit<S, false>(
      memory, k, v, 0, seen_keys(x, begin), col, use_packs, [&](int64_t key, const E* keys, const E* values) {
        Weights<S> scores;
        multiply(scores, own, keys, memory, k, key);
        set_scores<E, false>(scores, x, at, first, key + col_of_lane(), is_plain(x, begin, key, S::kVisited));
        running.renormalise(scores, sums);
        if (x.limit != 0) {
          const Kept<false, S::kVisited / 8> kept(x, at, of_warp, key);
#pragma unroll
          for (int j = 0; j < S::kVisited / 8; j++) {
#pragma unroll
            for (int e = 0; e < 4; e++) scores[j].at[e] = kept.has(j, e) ? scores[j].at[e] : 0.0f;
          }
        }
        add_weighted<S>(sums, scores, values);
      });
  float factor[2], total[2];
#pragma unroll
  for (int r = 0; r < 2; r++) {
    total[r] = over_row(running.total[r], [](float a, float b) { return a + b; });
    factor[r] = total[r] == 0 ? 0.0f : static_cast<float>(x.keep) / total[r];
  }
  write_result(memory, rows_of<E>(x.out, at.b, at.h, x.queries, x.value_width), sums, factor, begin, col, use_packs);
  if (col_of_lane() != 0 || blockIdx.y != 0) return;
#pragma unroll
  for (int r = 0; r < 2; r++) {
    if (first + r * 8 < x.queries)
      static_cast<float*>(x.lse)[at.head * x.queries + first + r * 8] =
          total[r] == 0 ? -kNever : (running.most[r] + log2f(total[r])) / kLog2E;
  }
}

/// Computes the gradient of a tile of queries.
template <class S, class E>
__device__ void attention_grad_queries(const AttentionArguments& x) {
  __shared__ Memory<S, E> memory;
  const bool use_packs = x.use_packs != 0;
  const TilePosition at = tile_position_of(x, true);
  const auto q = rows_of<const E>(x.q, at.b, at.h, x.queries, x.width),
             k = rows_of<const E>(x.k, at.b, at.h, x.keys, x.width),
             v = rows_of<const E>(x.v, at.b, at.h, x.keys, x.value_width),
             grad = rows_of<const E>(x.grad_out, at.b, at.h, x.queries, x.value_width);
  const int64_t begin = at.tile * kOwnRows, col = S::is_sliced ? int64_t{blockIdx.y} * S::kCols : 0;
  const OwnRows<S, E> own(memory, q, begin, use_packs), own_grad(memory, grad, begin, use_packs);
  const int64_t of_warp = begin + own.first_row(), first = of_warp + row_of_lane();
  float lse[2], dot[2];
#pragma unroll
  for (int r = 0; r < 2; r++) {
    lse[r] = of_query<float>(x.lse, x, at, first + r * 8, -kNever) * kLog2E;
    dot[r] = of_query<float>(x.dots, x, at, first + r * 8, 0.0f);
  }
  Result<S> sums{};
  const auto keep = static_cast<float>(x.keep);
  visit<S, false>(
      memory, v, k, 0, seen_keys(x, begin), col, use_packs, [&](int64_t key, const E* values, const E* keys) {
        Weights<S> scores, slopes;
        multiply(scores, own, keys, memory, k, key);
        set_scores<E, false>(scores, x, at, first, key + col_of_lane(), is_plain(x, begin, key, S::kVisited));
        multiply(slopes, own_grad, values, memory, v, key);
        if (x.limit != 0) {
          const Kept<false, S::kVisited / 8> kept(x, at, of_warp, key);
#pragma unroll
          for (int j = 0; j < S::kVisited / 8; j++) {
#pragma unroll
            for (int e = 0; e < 4; e++) slopes[j].at[e] *= kept.has(j, e) ? keep : 0.0f;
          }
        }
#pragma unroll
        for (int j = 0; j < S::kVisited / 8; j++) {
#pragma unroll
          for (int e = 0; e < 4; e++)
            slopes[j].at[e] = power_of_two(scores[j].at[e] - lse[e / 2]) * (slopes[j].at[e] - dot[e / 2]);
        }
        add_weighted<S>(sums, slopes, keys);
      });
  const auto scale = static_cast<float>(x.scale);
  write_result(memory, rows_of<E>(x.grad_q, at.b, at.h, x.queries, x.width), sums, {scale, scale}, begin, col,
               use_packs);
}

/// Computes the gradients of a tile of keys and their values.
template <class S, class E>
__device__ void attention_grad_keys(const AttentionArguments& x) {
  __shared__ Memory<S, E> memory;
  const bool use_packs = x.use_packs != 0;
  const TilePosition at = tile_position_of(x, false);
  const auto q = rows_of<const E>(x.q, at.b, at.h, x.queries, x.width),
             k = rows_of<const E>(x.k, at.b, at.h, x.keys, x.width),
             v = rows_of<const E>(x.v, at.b, at.h, x.keys, x.value_width),
             grad = rows_of<const E>(x.grad_out, at.b, at.h, x.queries, x.value_width);
  const int64_t begin = at.tile * kOwnRows, col = S::is_sliced ? int64_t{blockIdx.y} * S::kCols : 0;
  const OwnRows<S, E> own(memory, k, begin, use_packs), own_value(memory, v, begin, use_packs);
  const int64_t of_warp = begin + own.first_row(), first = of_warp + row_of_lane();
  Result<S> sums_k{}, sums_v{};
  const auto keep = static_cast<float>(x.keep);
  visit<S, true>(memory, q, grad, x.causal ? begin : 0, x.queries, col, use_packs,
                 [&](int64_t query, const E* queries, const E* grads) {
                   Weights<S> scores, slopes;
                   multiply(scores, own, queries, memory, q, query);
                   // Results of keys behind the last one are not written, so they may see queries.
                   set_scores<E, true>(scores, x, at, query + col_of_lane(), first,
                                       !x.mask.data && !(x.causal && query < begin + kOwnRows - 1));
                   multiply(slopes, own_value, grads, memory, grad, query);
                   const int64_t column = query + col_of_lane(), in_heads = at.head * x.queries + column;
                   const auto* all_lse = static_cast<const float*>(x.lse) + in_heads;
                   const auto* all_dots = static_cast<const float*>(x.dots) + in_heads;
                   const int left = near(x.queries - column);
                   const Kept<true, S::kVisited / 8> kept(x, at, query, of_warp);
#pragma unroll
                   for (int j = 0; j < S::kVisited / 8; j++) {
#pragma unroll
                     for (int i = 0; i < 2; i++) {
                       const bool is_query = j * 8 + i < left;
                       const float lse = is_query ? all_lse[j * 8 + i] * kLog2E : -kNever,
                                   dot = is_query ? all_dots[j * 8 + i] : 0.0f;
#pragma unroll
                       for (int e = i; e < 4; e += 2) {
                         const float weight = power_of_two(scores[j].at[e] - lse),
                                     factor = kept.has(j, e) ? keep : 0.0f;
                         slopes[j].at[e] = weight * (slopes[j].at[e] * factor - dot);
                         scores[j].at[e] = weight * factor;
                       }
                     }
                   }
                   add_weighted<S>(sums_v, scores, grads);
                   add_weighted<S>(sums_k, slopes, queries);
                 });
  const auto scale = static_cast<float>(x.scale);
  write_result(memory, rows_of<E>(x.grad_v, at.b, at.h, x.keys, x.value_width), sums_v, {1, 1}, begin, col, use_packs);
  write_result(memory, rows_of<E>(x.grad_k, at.b, at.h, x.keys, x.width), sums_k, {scale, scale}, begin, col,
               use_packs);
}

// Kernels for heads of up to 64 columns, of up to 128, and of more: the rows of a visited tile for each, and the blocks
// of narrow heads for which a multiprocessor has registers.
#define RINGWISE_ATTENTIONS(pass, name, E, blocks, narrow, middle, wide)            \
  RINGWISE_SIZED_KERNEL(kBlock, blocks, pass##_narrow_##name, AttentionArguments) { \
    pass<Shape<64, narrow>, E>(arguments);                                          \
  }                                                                                 \
  RINGWISE_SIZED_KERNEL(kBlock, 2, pass##_middle_##name, AttentionArguments) {      \
    pass<Shape<128, middle>, E>(arguments);                                         \
  }                                                                                 \
  RINGWISE_SIZED_KERNEL(kBlock, 2, pass##_wide_##name, AttentionArguments) {        \
    pass<Shape<128, wide, true>, E>(arguments);                                     \
  }
RINGWISE_ATTENTIONS(attention, half, Half, 3, 32, 32, 32)
RINGWISE_ATTENTIONS(attention, bfloat, BFloat, 3, 32, 32, 32)
RINGWISE_ATTENTIONS(attention_grad_queries, half, Half, 3, 32, 32, 32)
RINGWISE_ATTENTIONS(attention_grad_queries, bfloat, BFloat, 3, 32, 32, 32)
RINGWISE_ATTENTIONS(attention_grad_keys, half, Half, 2, 32, 16, 32)
RINGWISE_ATTENTIONS(attention_grad_keys, bfloat, BFloat, 2, 32, 16, 32)

}  // namespace ringwise::tensor::cuda
