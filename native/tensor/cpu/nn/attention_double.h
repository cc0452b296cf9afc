// Attention in float64, which gradient checks use: query by query, with one row of scores at a time.
// Included only by families/.
namespace ringwise::tensor::RINGWISE_LEVEL {

// Returns a row of one head in float64.
inline double* doubles_of(const HeadRows& rows, size_t b, size_t h, size_t row) {
  return reinterpret_cast<double*>(rows.data) + static_cast<ptrdiff_t>(b) * rows.batch +
         static_cast<ptrdiff_t>(h) * rows.head + static_cast<ptrdiff_t>(row) * rows.row;
}

inline double dot(const double* a, const double* b, size_t count) {
  double sum = 0;
  for (size_t i = 0; i < count; i++) sum += a[i] * b[i];
  return sum;
}

struct QueryAt {
  size_t b, h, i;
};

// Computes the scores of one query for the keys that causality lets it see, and returns the number of these keys.
inline size_t score_row(double* scores, const Attention& x, const QueryAt& at) {
  const size_t seen = keys_seen(x, at.i, 1);
  const double* q = doubles_of(x.q, at.b, at.h, at.i);
  const ptrdiff_t first = static_cast<ptrdiff_t>(at.b) * x.mask.batch + static_cast<ptrdiff_t>(at.h) * x.mask.head +
                          static_cast<ptrdiff_t>(at.i) * x.mask.row;
  for (size_t j = 0; j < seen; j++) {
    scores[j] = x.scale * dot(q, doubles_of(x.k, at.b, at.h, j), x.width);
    if (x.mask.data == nullptr) continue;
    const ptrdiff_t place = first + static_cast<ptrdiff_t>(j) * x.mask.col;
    if (x.mask.dtype != DType::Bool)
      scores[j] += reinterpret_cast<const double*>(x.mask.data)[place];
    else if (x.mask.data[place] == 0)
      scores[j] = -std::numeric_limits<double>::infinity();
  }
  return seen;
}

// Writes the factors of dropout for one query.
inline void keep_row(double* factors, size_t count, const Attention& x, const QueryAt& at) {
  std::fill_n(factors, count, 1.0);
  if (x.dropout == 0) return;
  const uint64_t first = (uint64_t{at.b * x.heads + at.h} * x.queries + at.i) * x.keys;
  uint32_t words[kPhiloxWords];
  for (size_t j = 0; j < count; j += kPhiloxWords) {
    const size_t part = std::min(count - j, kPhiloxWords);
    random_words(words, x.stream, first + j, part);
    for (size_t i = 0; i < part; i++) factors[j + i] = words[i] < drop_limit(x.dropout) ? 0 : 1 / (1 - x.dropout);
  }
}

inline double& lse_at(const Attention& x, const QueryAt& at) {
  return static_cast<double*>(x.lse)[(at.b * x.heads + at.h) * x.queries + at.i];
}

template <class Body>
inline void for_each_query(const Attention& x, Body body) {
  for (size_t b = 0; b < x.batch; b++) {
    for (size_t h = 0; h < x.heads; h++) {
      for (size_t i = 0; i < x.queries; i++) body(QueryAt{b, h, i});
    }
  }
}

void attention_double(const Attention& x) {
  const auto space = std::make_unique<double[]>(2 * x.keys);
  double *scores = space.get(), *factors = scores + x.keys;
  for_each_query(x, [&](const QueryAt& at) {
    const size_t seen = score_row(scores, x, at);
    keep_row(factors, seen, x, at);
    const double most = Extreme<double, true>::run(-std::numeric_limits<double>::infinity(), scores, seen);
    const bool is_blind = most == -std::numeric_limits<double>::infinity();
    double total = 0;
    for (size_t j = 0; j < seen && !is_blind; j++) total += std::exp(scores[j] - most);
    double* out = doubles_of(x.out, at.b, at.h, at.i);
    std::fill_n(out, x.value_width, 0.0);
    lse_at(x, at) = is_blind ? std::numeric_limits<double>::infinity() : most + std::log(total);
    for (size_t j = 0; j < seen && !is_blind; j++) {
      const double p = std::exp(scores[j] - most) / total * factors[j];
      const double* v = doubles_of(x.v, at.b, at.h, j);
      for (size_t d = 0; d < x.value_width; d++) out[d] += p * v[d];
    }
  });
}

inline void clear_rows(const Attention& x, const HeadRows& rows, size_t width) {
  for (size_t b = 0; b < x.batch; b++) {
    for (size_t h = 0; h < x.heads; h++) {
      for (size_t j = 0; j < x.keys; j++) std::fill_n(doubles_of(rows, b, h, j), width, 0.0);
    }
  }
}

void attention_grad_double(const AttentionGrad& g) {
  const Attention& x = g;
  const auto space = std::make_unique<double[]>(2 * x.keys);
  double *scores = space.get(), *factors = scores + x.keys;
  clear_rows(x, g.grad_k, x.width);
  clear_rows(x, g.grad_v, x.value_width);
  for_each_query(x, [&](const QueryAt& at) {
    const auto& [b, h, i] = at;
    const size_t seen = score_row(scores, x, at);
    keep_row(factors, seen, x, at);
    const double* q = doubles_of(x.q, b, h, i);
    const double* grad = doubles_of(g.grad_out, b, h, i);
    double* grad_q = doubles_of(g.grad_q, b, h, i);
    std::fill_n(grad_q, x.width, 0.0);
    const double mean = dot(grad, doubles_of(x.out, b, h, i), x.value_width), lse = lse_at(x, at);
    for (size_t j = 0; j < seen; j++) {
      const double p = std::exp(scores[j] - lse);
      const double slope = x.scale * p * (factors[j] * dot(grad, doubles_of(x.v, b, h, j), x.value_width) - mean);
      const double* k = doubles_of(x.k, b, h, j);
      double* grad_k = doubles_of(g.grad_k, b, h, j);
      double* grad_v = doubles_of(g.grad_v, b, h, j);
      for (size_t d = 0; d < x.width; d++) {
        grad_q[d] += slope * k[d];
        grad_k[d] += slope * q[d];
      }
      for (size_t d = 0; d < x.value_width; d++) grad_v[d] += factors[j] * p * grad[d];
    }
  });
}

}  // namespace ringwise::tensor::RINGWISE_LEVEL
