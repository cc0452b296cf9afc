// Attention in tiles with an online softmax, so that no matrix of queries × keys is ever in memory (Dao et al.:
// "FlashAttention", 2022; Dao: "FlashAttention-2", 2023). Supports all widths, masks and types, and serves where cuDNN
// does not. Products are computed in float (in double for float64), without tensor cores.
//
// In the forward kernel, a block has a tile of queries and iterates over the keys. Two backward kernels compute the
// probabilities again from log Σ exp: one iterates over keys for a tile of queries, the other over queries for a tile
// of keys. So each result has one writer, and each sum the same order every time. A block writes one tile of a head's
// columns, number blockIdx.y; for heads wider than a tile, the scores are computed once for each of these tiles.
#include "tensor/cuda/kernels/attention/tiles.cuh"

namespace ringwise::tensor::cuda {

/// Returns a query's score for a key, from the product of their rows: -∞ if the query does not see the key.
template <class T>
__device__ inline T score_of(const AttentionArguments& x, const TilePosition& at, int64_t query, int64_t key,
                             T product) {
  constexpr T kNever = -std::numeric_limits<T>::infinity();
  if (key >= x.keys || (x.causal && key > query)) return kNever;
  const T score = product * static_cast<T>(x.scale);
  if (!x.mask.data || query >= x.queries) return score;
  const int64_t offset = at.b * x.mask.batch + at.h * x.mask.head + query * x.mask.row + key * x.mask.col;
  if (x.is_bool_mask) return static_cast<const Bool*>(x.mask.data)[offset].value ? score : kNever;
  return score + static_cast<const T*>(x.mask.data)[offset];
}

/// Factors of dropout for four neighbouring keys: 0 for a probability that is dropped, else 1 / (1 - dropout).
template <class T>
struct Factors {
  T at[4];
};
/// Returns the factors of a query for keys key … key + 3.
template <class T>
__device__ inline Factors<T> factors_of(const AttentionArguments& x, const Position& stream, const TilePosition& at,
                                        int64_t query, int64_t key) {
  const Words words = words_of(x, stream, at, query, key);
  Factors<T> factors;
#pragma unroll
  for (int i = 0; i < 4; i++) factors.at[i] = words.at[i] < x.limit ? T(0) : static_cast<T>(x.keep);
  return factors;
}

/// Computes the results and lse of a tile of queries.
template <class T>
__device__ void attention(const AttentionArguments& x) {
  __shared__ Tiles<T> tiles;
  constexpr int kOwn = Tiles<T>::kOwn, kTile = Tiles<T>::kTile;
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  const bool use_packs = x.use_packs != 0;
  const TilePosition at = tile_position_of(x, true);
  const Position stream = position_of(x.stream);
  const Rows<T> q = rows_of<T>(x.q, at.b, at.h, x.queries, x.width), k = rows_of<T>(x.k, at.b, at.h, x.keys, x.width);
  const Rows<T> v = rows_of<T>(x.v, at.b, at.h, x.keys, x.value_width);
  const int64_t begin = at.tile * kTile, col = static_cast<int64_t>(blockIdx.y) * kTile, first = begin + own_row<T>();
  const int64_t seen = x.causal && begin + kTile < x.keys ? begin + kTile : x.keys;
  Own<T> sums{}, scores;
  T most[kOwn], total[kOwn] = {};
  for (int r = 0; r < kOwn; r++) most[r] = -kInfinity;
  for (int64_t key = 0; key < seen; key += kTile) {
    multiply_rows(scores, tiles, q, begin, k, key, use_packs);
    scores.each([&](int r, int s, T& score) { score = score_of(x, at, first + r, key + own_col<T>() + s, score); });
#pragma unroll
    for (int r = 0; r < kOwn; r++) {
      T high = most[r], part = 0;
      for (int s = 0; s < kOwn; s++) high = max_of(high, scores.at[r][s]);
      high = over_columns(high, [](T a, T b) { return max_of(a, b); });
      // If no key has been seen, any finite shift gives exp(-∞) = 0.
      const T shift = high == -kInfinity ? T(0) : high, shrink = exp(most[r] - shift);
      for (int s = 0; s < kOwn; s++) {
        scores.at[r][s] = exp(scores.at[r][s] - shift);
        part += scores.at[r][s];
        sums.at[r][s] *= shrink;
      }
      total[r] = total[r] * shrink + over_columns(part, [](T a, T b) { return a + b; });
      most[r] = high;
      if (x.limit == 0) continue;
      const Factors<T> factors = factors_of<T>(x, stream, at, first + r, key + own_col<T>());
      for (int s = 0; s < kOwn; s++) scores.at[r][s] *= factors.at[s];
    }
    set_weights(tiles, scores);
    weighted_sum(sums, tiles, v, key, col, use_packs);
  }
  sums.each([&](int r, int, T& sum) { sum = total[r] == T(0) ? T(0) : sum / total[r]; });
  write_own(rows_of<T>(x.out, at.b, at.h, x.queries, x.value_width), sums, begin, col, use_packs);
  if (own_col<T>() != 0 || blockIdx.y != 0) return;
  for (int r = 0; r < kOwn; r++) {
    if (first + r >= x.queries) break;
    static_cast<T*>(x.lse)[at.head * x.queries + first + r] = total[r] == T(0) ? kInfinity : most[r] + log(total[r]);
  }
}

/// Computes Σ grad_out · out of each query; kDotThreads threads for each, which load 16 bytes at once.
template <class E, class T>
__device__ void attention_dots(const AttentionArguments& x) {
  constexpr int kPack = 16 / sizeof(E);
  const int lane = static_cast<int>(threadIdx.x) % kDotThreads;
  const int64_t row = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) / kDotThreads;
  const int64_t head = row / x.queries, i = row - head * x.queries, b = head / x.heads, h = head - b * x.heads;
  const bool is_used = row < x.tiles * x.queries;  // tiles: heads of all batches here
  T dot = 0;
  if (is_used) {
    const auto out = rows_of<const E>(x.out, b, h, x.queries, x.value_width),
               grad = rows_of<const E>(x.grad_out, b, h, x.queries, x.value_width);
    for (int64_t d = lane * kPack; d < x.value_width; d += kDotThreads * kPack) {
      const int64_t left = x.value_width - d;
      const int n = left < kPack ? static_cast<int>(left) : kPack;
      const bool use_packs = x.use_packs && n == kPack;
      const auto p = load_up_to<kPack>(out.data + i * out.step + d, n, use_packs),
                 g = load_up_to<kPack>(grad.data + i * grad.step + d, n, use_packs);
#pragma unroll
      for (int k = 0; k < kPack; k++) dot += read_as<T>(p.at[k]) * read_as<T>(g.at[k]);
    }
  }
#pragma unroll
  for (int mask = kDotThreads / 2; mask > 0; mask /= 2) dot += __shfl_xor_sync(0xffffffffu, dot, mask);
  if (is_used && lane == 0) static_cast<T*>(x.dots)[row] = dot;
}

/// Computes the gradient of a tile of queries.
template <class T>
__device__ void attention_grad_queries(const AttentionArguments& x) {
  __shared__ Tiles<T> tiles;
  constexpr int kOwn = Tiles<T>::kOwn, kTile = Tiles<T>::kTile;
  const bool use_packs = x.use_packs != 0;
  const TilePosition at = tile_position_of(x, true);
  const Position stream = position_of(x.stream);
  const Rows<T> q = rows_of<T>(x.q, at.b, at.h, x.queries, x.width), k = rows_of<T>(x.k, at.b, at.h, x.keys, x.width);
  const Rows<T> v = rows_of<T>(x.v, at.b, at.h, x.keys, x.value_width);
  const Rows<T> grad = rows_of<T>(x.grad_out, at.b, at.h, x.queries, x.value_width);
  const int64_t begin = at.tile * kTile, col = static_cast<int64_t>(blockIdx.y) * kTile, first = begin + own_row<T>();
  const int64_t seen = x.causal && begin + kTile < x.keys ? begin + kTile : x.keys;
  T lse[kOwn], dot[kOwn];
  for (int r = 0; r < kOwn; r++) {
    lse[r] = of_query<T>(x.lse, x, at, first + r, std::numeric_limits<T>::infinity());
    dot[r] = of_query<T>(x.dots, x, at, first + r, T(0));
  }
  Own<T> sums{}, scores, slopes;
  for (int64_t key = 0; key < seen; key += kTile) {
    multiply_rows(scores, tiles, q, begin, k, key, use_packs);
    multiply_rows(slopes, tiles, grad, begin, v, key, use_packs);
#pragma unroll
    for (int r = 0; r < kOwn; r++) {
      Factors<T> factors{{1, 1, 1, 1}};
      if (x.limit != 0) factors = factors_of<T>(x, stream, at, first + r, key + own_col<T>());
      for (int s = 0; s < kOwn; s++) {
        const T p = exp(score_of(x, at, first + r, key + own_col<T>() + s, scores.at[r][s]) - lse[r]);
        slopes.at[r][s] = static_cast<T>(x.scale) * p * (slopes.at[r][s] * factors.at[s] - dot[r]);
      }
    }
    set_weights(tiles, slopes);
    weighted_sum(sums, tiles, k, key, col, use_packs);
  }
  write_own(rows_of<T>(x.grad_q, at.b, at.h, x.queries, x.width), sums, begin, col, use_packs);
}

/// Computes the gradients of a tile of keys and their values. The rows of a tile are keys here, its columns queries.
template <class T>
__device__ void attention_grad_keys(const AttentionArguments& x) {
  __shared__ Tiles<T> tiles;
  constexpr int kOwn = Tiles<T>::kOwn, kTile = Tiles<T>::kTile;
  const bool use_packs = x.use_packs != 0;
  const TilePosition at = tile_position_of(x, false);
  const Position stream = position_of(x.stream);
  const Rows<T> q = rows_of<T>(x.q, at.b, at.h, x.queries, x.width), k = rows_of<T>(x.k, at.b, at.h, x.keys, x.width);
  const Rows<T> v = rows_of<T>(x.v, at.b, at.h, x.keys, x.value_width);
  const Rows<T> grad = rows_of<T>(x.grad_out, at.b, at.h, x.queries, x.value_width);
  const int64_t begin = at.tile * kTile, col = static_cast<int64_t>(blockIdx.y) * kTile, first = begin + own_row<T>();
  Own<T> sums_k{}, sums_v{}, scores, slopes;
  for (int64_t query = x.causal ? begin : 0; query < x.queries; query += kTile) {
    multiply_rows(scores, tiles, k, begin, q, query, use_packs);
    multiply_rows(slopes, tiles, v, begin, grad, query, use_packs);
#pragma unroll
    for (int s = 0; s < kOwn; s++) {
      const int64_t i = query + own_col<T>() + s;
      const T lse = of_query<T>(x.lse, x, at, i, std::numeric_limits<T>::infinity()),
              dot = of_query<T>(x.dots, x, at, i, T(0));
      Factors<T> factors{{1, 1, 1, 1}};
      if (x.limit != 0) factors = factors_of<T>(x, stream, at, i, first);
      for (int r = 0; r < kOwn; r++) {
        const T p = exp(score_of(x, at, i, first + r, scores.at[r][s]) - lse);
        scores.at[r][s] = p * factors.at[r];
        slopes.at[r][s] = static_cast<T>(x.scale) * p * (slopes.at[r][s] * factors.at[r] - dot);
      }
    }
    set_weights(tiles, scores);
    weighted_sum(sums_v, tiles, grad, query, col, use_packs);
    set_weights(tiles, slopes);
    weighted_sum(sums_k, tiles, q, query, col, use_packs);
  }
  write_own(rows_of<T>(x.grad_k, at.b, at.h, x.keys, x.width), sums_k, begin, col, use_packs);
  write_own(rows_of<T>(x.grad_v, at.b, at.h, x.keys, x.value_width), sums_v, begin, col, use_packs);
}

#define RINGWISE_ATTENTIONS(name, T)                                                                                \
  RINGWISE_TILE_KERNEL(attention_##name, AttentionArguments) { attention<T>(arguments); }                           \
  RINGWISE_TILE_KERNEL(attention_grad_queries_##name, AttentionArguments) { attention_grad_queries<T>(arguments); } \
  RINGWISE_TILE_KERNEL(attention_grad_keys_##name, AttentionArguments) { attention_grad_keys<T>(arguments); }
RINGWISE_ATTENTIONS(float, float)
RINGWISE_ATTENTIONS(double, double)

RINGWISE_BLOCK_KERNEL(attention_dots_float, AttentionArguments) { attention_dots<float, float>(arguments); }
RINGWISE_BLOCK_KERNEL(attention_dots_double, AttentionArguments) { attention_dots<double, double>(arguments); }
RINGWISE_BLOCK_KERNEL(attention_dots_half, AttentionArguments) { attention_dots<Half, float>(arguments); }
RINGWISE_BLOCK_KERNEL(attention_dots_bfloat, AttentionArguments) { attention_dots<BFloat, float>(arguments); }

}  // namespace ringwise::tensor::cuda
