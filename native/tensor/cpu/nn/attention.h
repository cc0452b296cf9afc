// Attention in blocks with an online softmax, so that no matrix of queries × keys is ever in memory (Milakov and
// Gimelshein: "Online normalizer calculation for softmax", 2018; Rabe and Staats: "Self-attention Does Not Need O(n²)
// Memory", 2021; Dao et al.: "FlashAttention", 2022; Dao: "FlashAttention-2", 2023).
//
// A block is kQueries queries, as many as a panel of the matrix product has columns, against kKeys keys. Scores are
// kept transposed, a row for each key and a lane for each query. So maxima and sums over keys need no work across
// lanes, and both products run on the tile kernel (gemm_kernel.h) with keys, values and probabilities read where they
// lie: scores[keys, queries] = K · Qᵀ and result[width, queries] += Vᵀ · P. Only Qᵀ is packed. Included only by
// families/.
namespace ringwise::tensor::RINGWISE_LEVEL {

constexpr size_t kQueries = kTileCols;
constexpr size_t kKeys = 128;

// Where the memory of one head begins.
struct Head {
  const float* q;
  const float* k;
  const float* v;
  float* out;
  float* lse;
  const char* mask;     // null: none
  uint64_t first_word;  // word of the stream for query 0 and key 0, for dropout
};

inline float* rows_of(const HeadRows& rows, size_t b, size_t h) {
  return reinterpret_cast<float*>(rows.data) + static_cast<ptrdiff_t>(b) * rows.batch +
         static_cast<ptrdiff_t>(h) * rows.head;
}

inline Head head_of(const Attention& x, size_t b, size_t h) {
  Head head{};
  head.q = rows_of(x.q, b, h);
  head.k = rows_of(x.k, b, h);
  head.v = rows_of(x.v, b, h);
  head.out = rows_of(x.out, b, h);
  const size_t at = b * x.heads + h;
  head.lse = static_cast<float*>(x.lse) + at * x.queries;
  if (x.mask.data) {
    const ptrdiff_t offset = static_cast<ptrdiff_t>(b) * x.mask.batch + static_cast<ptrdiff_t>(h) * x.mask.head;
    head.mask = x.mask.data + offset * static_cast<ptrdiff_t>(byte_size(x.mask.dtype));
  }
  head.first_word = uint64_t{at} * x.queries * x.keys;
  return head;
}

// Computes c[m, kQueries] (+)= A[m, k] · b[k, kQueries]; element (r, p) of A is a[r * a_row + p * a_step].
inline void multiply_lanes(float* c, const float* a, size_t a_row, size_t a_step, const float* b, size_t m, size_t k,
                           bool accumulate) {
  const Split tiles(m, kTileRows);
  Tile tile{a, a_row, a_step, b, kQueries, c, kQueries, k, accumulate};
  for (size_t i = 0; i < tiles.parts; i++) {
    tile.a = a + tiles[i].begin * a_row;
    tile.c = c + tiles[i].begin * kQueries;
    kTileKernels[kTileVecs - 1][a_row == 1][tiles[i].size - 1](tile);
  }
}

// A part of the matrix of scores, stored as [keys, kQueries].
struct Block {
  size_t query, queries;  // the first one, and the number of lanes in use
  size_t key, keys;       // the first one, and their number
};

// Returns the numbers of the queries of a vector: first + l in lane l.
inline IntVec lane_numbers(int32_t first) {
  IntVec lane;
  for (int i = 0; i < kLanes; i++) lane[i] = first + i;
  return lane;
}

// Adds the mask to scores. Sets scores to -∞ where a bool mask is false, or causality hides the key.
inline void hide(float* scores, const Attention& x, const Head& head, const Block& block) {
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  if (x.causal && block.key + block.keys > block.query + 1) {
    for (size_t j = 0; j < block.keys; j++) {
      // The lanes of queries before the key: these do not see it.
      const int32_t behind =
          static_cast<int32_t>(static_cast<ptrdiff_t>(block.key + j) - static_cast<ptrdiff_t>(block.query));
      if (behind <= 0) continue;
      for (int v = 0; v < kTileVecs; v++) {
        float* to = scores + j * kQueries + v * kLanes;
        store(to, lane_numbers(v * kLanes) < splat_int(behind) ? splat(kNever) : load(to));
      }
    }
  }
  if (head.mask == nullptr) return;
  for (size_t l = 0; l < block.queries; l++) {
    for (size_t j = 0; j < block.keys; j++) {
      const ptrdiff_t at =
          static_cast<ptrdiff_t>(block.query + l) * x.mask.row + static_cast<ptrdiff_t>(block.key + j) * x.mask.col;
      float& score = scores[j * kQueries + l];
      if (x.mask.dtype != DType::Bool)
        score += reinterpret_cast<const float*>(head.mask)[at];
      else if (head.mask[at] == 0)
        score = kNever;
    }
  }
}

// Sets dropped probabilities to 0 and scales the others up. Does the same to `second`, unless it is null.
inline void drop(float* probs, float* second, const Attention& x, const Head& head, const Block& block) {
  const uint32_t limit = drop_limit(x.dropout);
  const float scale = static_cast<float>(1 / (1 - x.dropout));
  uint32_t words[kKeys];
  for (size_t l = 0; l < block.queries; l++) {
    random_words(words, x.stream, head.first_word + (block.query + l) * x.keys + block.key, block.keys);
    for (size_t j = 0; j < block.keys; j++) {
      const float factor = words[j] < limit ? 0 : scale;
      probs[j * kQueries + l] *= factor;
      if (second) second[j * kQueries + l] *= factor;
    }
  }
}

// Computes scores[keys, kQueries] of a block from the packed and scaled queries.
inline void score(float* scores, const float* queries, const Attention& x, const Head& head, const Block& block) {
  const size_t step = static_cast<size_t>(x.k.row);
  multiply_lanes(scores, head.k + block.key * step, step, 1, queries, block.keys, x.width, false);
  hide(scores, x, head, block);
}

// Packs rows [begin, begin + count) of `from`, times `factor`, as columns [width, kQueries]; other lanes become 0.
inline void pack_lanes(float* out, const float* from, size_t step, size_t begin, size_t count, size_t width,
                       float factor) {
  pack_columns(out, kQueries, from + begin * step, step, count, width);
  if (factor != 1)
    for (size_t i = 0; i < width * kQueries; i += kLanes) store(out + i, load(out + i) * splat(factor));
}

// The maximum and the sum over the keys so far, for each query.
struct Running {
  Vec most[kTileVecs], total[kTileVecs];
};

// Converts scores to exp(score - maximum), and rescales `sums`, the results so far, to the new maximum.
inline void renormalise(float* scores, size_t keys, float* sums, size_t width, Running& running) {
  for (int v = 0; v < kTileVecs; v++) {
    float* lane = scores + v * kLanes;
    const Vec before = running.most[v];
    Vec most = before;
    for (size_t j = 0; j < keys; j++) most = max_vec(most, load(lane + j * kQueries));
    // If no key has been seen, any finite shift gives exp(-∞) = 0.
    const Vec shift = most == splat(-std::numeric_limits<float>::infinity()) ? Vec{} : most;
    Vec total = {};
    for (size_t j = 0; j < keys; j++) {
      const Vec p = exp_vec(load(lane + j * kQueries) - shift);
      total += p;
      store(lane + j * kQueries, p);
    }
    const Vec shrink = exp_vec(before - shift);
    running.most[v] = most;
    running.total[v] = running.total[v] * shrink + total;
    for (size_t d = 0; d < width; d++) {
      float* sum = sums + d * kQueries + v * kLanes;
      store(sum, load(sum) * shrink);
    }
  }
}

// Returns the number of keys, from the first one on, that causality lets the queries of a block see.
inline size_t keys_seen(const Attention& x, size_t query, size_t queries) {
  return x.causal ? std::min(x.keys, query + queries) : x.keys;
}

// Writes sums / total to the rows of the result, and log Σ exp.
inline void finish(const Attention& x, const Head& head, float* sums, size_t query, size_t queries,
                   const Running& running) {
  float lse[kQueries];
  for (int v = 0; v < kTileVecs; v++) {
    const Vec total = running.total[v];
    const IntVec is_blind = total == Vec{};
    const Vec factor = is_blind ? Vec{} : splat(1) / total;
    store(lse + v * kLanes,
          is_blind ? splat(std::numeric_limits<float>::infinity()) : running.most[v] + log_vec(total));
    for (size_t d = 0; d < x.value_width; d++) {
      float* sum = sums + d * kQueries + v * kLanes;
      store(sum, load(sum) * factor);
    }
  }
  std::copy_n(lse, queries, head.lse + query);
  const size_t step = static_cast<size_t>(x.out.row);
  write_turned(head.out + query * step, step, sums, x.value_width, queries, false);
}

// Computes the results of the block of queries that begins with query i.
inline void attend(const Attention& x, const Head& head, size_t i, float* space) {
  float* queries = space;
  float* sums = queries + x.width * kQueries;
  float* scores = sums + x.value_width * kQueries;
  const size_t v_step = static_cast<size_t>(x.v.row);
  const size_t count = std::min(x.queries - i, kQueries);
  pack_lanes(queries, head.q, static_cast<size_t>(x.q.row), i, count, x.width, static_cast<float>(x.scale));
  Running running;
  for (int v = 0; v < kTileVecs; v++) {
    running.most[v] = splat(-std::numeric_limits<float>::infinity());
    running.total[v] = Vec{};
  }
  std::fill_n(sums, x.value_width * kQueries, 0.0f);
  const size_t seen = keys_seen(x, i, count);
  for (size_t j = 0; j < seen; j += kKeys) {
    const Block block{i, count, j, std::min(seen - j, kKeys)};
    score(scores, queries, x, head, block);
    renormalise(scores, block.keys, sums, x.value_width, running);
    if (x.dropout > 0) drop(scores, nullptr, x, head, block);
    multiply_lanes(sums, head.v + j * v_step, 1, v_step, scores, x.value_width, block.keys, true);
  }
  finish(x, head, sums, i, count, running);
}

void attention_double(const Attention& x);

void attention(const Attention& x) {
  if (x.dtype == DType::Float64) return attention_double(x);
  const size_t blocks = (x.queries + kQueries - 1) / kQueries;
  const size_t products = kQueries * x.keys * (x.width + x.value_width);
  parallel_for(x.batch * x.heads * blocks, kGrainProducts / (products + 1) + 1, [&](size_t begin, size_t end) {
    thread_local PackBuffer buffer;
    float* space = buffer.reserve((x.width + x.value_width + kKeys) * kQueries);
    for (size_t i = begin; i < end; i++) {
      const size_t head = i / blocks;
      attend(x, head_of(x, head / x.heads, head % x.heads), i % blocks * kQueries, space);
    }
  });
}

}  // namespace ringwise::tensor::RINGWISE_LEVEL
