// The gradients of attention. Probabilities are computed again from the scores and the saved log Σ exp, block by block
// and transposed as in attention.h. The gradients of a head's keys and values are sums over its blocks of queries.
// With D = Σ grad_out · out of each query, grad_scores = P · (V gᵀ - D), element by element. Included only by
// families/.
namespace ringwise::tensor::RINGWISE_LEVEL {

// Returns `count`, rounded up to whole vectors.
inline size_t whole_vecs(size_t count) { return (count + kLanes - 1) / kLanes * kLanes; }

// Computes c[m, n] += a[m, kQueries] · b[kQueries, n], all dense; n is a multiple of kLanes.
inline void add_product(float* c, const float* a, const float* b, size_t m, size_t n) {
  const Split tiles(m, kTileRows);
  for (size_t j = 0; j < n; j += kTileCols) {
    const size_t vecs = std::min<size_t>((n - j) / kLanes, kTileVecs);
    for (size_t i = 0; i < tiles.parts; i++) {
      const Tile tile{a + tiles[i].begin * kQueries, kQueries, 1,        b + j, n,
                      c + tiles[i].begin * n + j,    n,        kQueries, true};
      kTileKernels[vecs - 1][false][tiles[i].size - 1](tile);
    }
  }
}

// Working space of one head.
struct GradSpace {
  size_t width, value_width;        // floats, rounded up to whole vectors
  float *queries, *grads;           // a block of queries and of grad_out, as columns: [width, kQueries]
  float *query_rows, *grad_rows;    // the same as rows: [kQueries, width]
  float *probs, *dropped, *slopes;  // [kKeys, kQueries]
  float* grad_q;                    // [width, kQueries]
  float *grad_k, *grad_v;           // [keys, width]

  static size_t count(const Attention& x) {
    const size_t both = whole_vecs(x.width) + whole_vecs(x.value_width);
    return (2 * both + whole_vecs(x.width) + 3 * kKeys) * kQueries + x.keys * both;
  }
  GradSpace(const Attention& x, float* at) : width(whole_vecs(x.width)), value_width(whole_vecs(x.value_width)) {
    const auto take = [&](size_t count) {
      float* begin = at;
      at += count;
      return begin;
    };
    queries = take(width * kQueries);
    grads = take(value_width * kQueries);
    query_rows = take(width * kQueries);
    grad_rows = take(value_width * kQueries);
    probs = take(kKeys * kQueries);
    dropped = take(kKeys * kQueries);
    slopes = take(kKeys * kQueries);
    grad_q = take(width * kQueries);
    grad_k = take(x.keys * width);
    grad_v = take(x.keys * value_width);
  }
};

// A block of queries, with the saved numbers of each. GradSpace has their packed rows.
struct QueryBlock {
  size_t begin, count;
  alignas(64) float lse[kQueries];
  alignas(64) float dots[kQueries];  // Σ grad_out · out
};

// Packs a block of queries and of grad_out in both orders, and loads the saved numbers. Scales the queries.
inline void load_queries(QueryBlock& queries, GradSpace& space, const AttentionGrad& g, const Head& head,
                         const float* grad_out) {
  const Attention& x = g;
  const size_t begin = queries.begin, count = queries.count;
  const size_t q_step = static_cast<size_t>(x.q.row), g_step = static_cast<size_t>(g.grad_out.row);
  const size_t out_step = static_cast<size_t>(x.out.row);
  const float scale = static_cast<float>(x.scale);
  pack_lanes(space.queries, head.q, q_step, begin, count, x.width, scale);
  pack_lanes(space.grads, grad_out, g_step, begin, count, x.value_width, 1);
  std::fill_n(space.query_rows, kQueries * space.width, 0.0f);
  std::fill_n(space.grad_rows, kQueries * space.value_width, 0.0f);
  for (size_t l = 0; l < kQueries; l++) {
    // exp(score - ∞) is 0, so that lanes behind the last query add nothing.
    queries.lse[l] = std::numeric_limits<float>::infinity();
    queries.dots[l] = 0;
    if (l >= count) continue;
    const float* q = head.q + (begin + l) * q_step;
    const float* grad = grad_out + (begin + l) * g_step;
    const float* out = head.out + (begin + l) * out_step;
    float* q_row = space.query_rows + l * space.width;
    float* grad_row = space.grad_rows + l * space.value_width;
    for_each_vec(x.width,
                 [&](size_t d, auto io) RINGWISE_INLINE { io.store(q_row + d, io.load(q + d) * splat(scale)); });
    Vec dot = {};
    for_each_vec(x.value_width, [&](size_t d, auto io) RINGWISE_INLINE {
      const Vec value = io.load(grad + d);
      io.store(grad_row + d, value);
      dot += value * io.load(out + d);
    });
    queries.lse[l] = head.lse[begin + l];
    queries.dots[l] = lane_sum(dot);
  }
}

// Computes probs = exp(probs - lse).
inline void probabilities(float* probs, size_t keys, const QueryBlock& queries) {
  for (int v = 0; v < kTileVecs; v++) {
    const Vec lse = load(queries.lse + v * kLanes);
    for (size_t j = 0; j < keys; j++) {
      float* to = probs + j * kQueries + v * kLanes;
      store(to, exp_vec(load(to) - lse));
    }
  }
}

// Computes slopes = probs * (slopes - dots).
inline void score_slopes(float* slopes, const float* probs, size_t keys, const QueryBlock& queries) {
  for (int v = 0; v < kTileVecs; v++) {
    const Vec dots = load(queries.dots + v * kLanes);
    for (size_t j = 0; j < keys; j++) {
      float* to = slopes + j * kQueries + v * kLanes;
      store(to, load(probs + j * kQueries + v * kLanes) * (load(to) - dots));
    }
  }
}

// Adds one block to all three gradients.
inline void attend_back(const Attention& x, const Head& head, const QueryBlock& queries, GradSpace& space,
                        const Block& block) {
  const size_t k_step = static_cast<size_t>(x.k.row), v_step = static_cast<size_t>(x.v.row);
  score(space.probs, space.queries, x, head, block);
  probabilities(space.probs, block.keys, queries);
  multiply_lanes(space.slopes, head.v + block.key * v_step, v_step, 1, space.grads, block.keys, x.value_width, false);
  // Values were multiplied by the probabilities after dropout; the slopes are multiplied by the same factors.
  const float* applied = space.probs;
  if (x.dropout > 0) {
    std::copy_n(space.probs, block.keys * kQueries, space.dropped);
    drop(space.dropped, space.slopes, x, head, block);
    applied = space.dropped;
  }
  add_product(space.grad_v + block.key * space.value_width, applied, space.grad_rows, block.keys, space.value_width);
  score_slopes(space.slopes, space.probs, block.keys, queries);
  add_product(space.grad_k + block.key * space.width, space.slopes, space.query_rows, block.keys, space.width);
  multiply_lanes(space.grad_q, head.k + block.key * k_step, 1, k_step, space.slopes, x.width, block.keys, true);
}

// Writes the gradient of a head's keys or values to its rows.
inline void write_rows(float* to, size_t step, const float* from, size_t from_step, size_t rows, size_t width) {
  for (size_t r = 0; r < rows; r++) std::copy_n(from + r * from_step, width, to + r * step);
}

// Computes the gradients of one head.
inline void attend_back(const AttentionGrad& g, size_t b, size_t h, float* at) {
  const Attention& x = g;
  const Head head = head_of(x, b, h);
  GradSpace space(x, at);
  std::fill_n(space.grad_k, x.keys * space.width, 0.0f);
  std::fill_n(space.grad_v, x.keys * space.value_width, 0.0f);
  const size_t q_step = static_cast<size_t>(g.grad_q.row);
  QueryBlock queries;
  for (size_t i = 0; i < x.queries; i += kQueries) {
    queries.begin = i;
    queries.count = std::min(x.queries - i, kQueries);
    load_queries(queries, space, g, head, rows_of(g.grad_out, b, h));
    std::fill_n(space.grad_q, x.width * kQueries, 0.0f);
    const size_t seen = keys_seen(x, i, queries.count);
    for (size_t j = 0; j < seen; j += kKeys) {
      attend_back(x, head, queries, space, {i, queries.count, j, std::min(seen - j, kKeys)});
    }
    for (size_t d = 0; d < x.width * kQueries; d += kLanes) {
      store(space.grad_q + d, load(space.grad_q + d) * splat(static_cast<float>(x.scale)));
    }
    write_turned(rows_of(g.grad_q, b, h) + i * q_step, q_step, space.grad_q, x.width, queries.count, false);
  }
  write_rows(rows_of(g.grad_k, b, h), static_cast<size_t>(g.grad_k.row), space.grad_k, space.width, x.keys, x.width);
  write_rows(rows_of(g.grad_v, b, h), static_cast<size_t>(g.grad_v.row), space.grad_v, space.value_width, x.keys,
             x.value_width);
}

void attention_grad_double(const AttentionGrad& g);

void attention_grad(const AttentionGrad& g) {
  if (g.dtype == DType::Float64) return attention_grad_double(g);
  const Attention& x = g;
  // Threads share heads, not queries, because all queries of a head add to the gradients of the same keys.
  const size_t products = 5 * x.queries * x.keys * x.width / (x.causal ? 2 : 1);
  parallel_for(x.batch * x.heads, kGrainProducts / (products + 1) + 1, [&](size_t begin, size_t end) {
    thread_local PackBuffer buffer;
    float* space = buffer.reserve(GradSpace::count(x));
    for (size_t i = begin; i < end; i++) attend_back(g, i / x.heads, i % x.heads, space);
  });
}

}  // namespace ringwise::tensor::RINGWISE_LEVEL
