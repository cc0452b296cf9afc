// Cross entropy of scores and labels: the losses and weights of all rows in one visit to each row, and the gradient in
// another. Included only by families/.
namespace ringwise::tensor::RINGWISE_LEVEL {

// The operands and numbers that the row kernels share, by type.
template <class T>
struct ScoreRows {
  const LabelledScores& x;
  const T* weight = static_cast<const T*>(x.weight);
  T spread = x.cols ? static_cast<T>(x.smoothing / static_cast<double>(x.cols)) : T{};
  T kept_share = static_cast<T>(1 - x.smoothing);

  const T* scores(size_t r) const { return static_cast<const T*>(x.scores) + r * x.cols; }
  T* kept(size_t r) const { return static_cast<T*>(x.kept) + 2 * r; }
  T weight_of(size_t c) const { return weight ? weight[c] : T{1}; }
};

// Sums the weighted distances of all log-probabilities from 0; several sums at a time, so that the compiler uses
// vectors.
template <class T>
inline T distances(const ScoreRows<T>& rows, const T* a, T shift, T norm) {
  constexpr size_t kSums = 16;
  T sums[kSums] = {};
  const size_t cols = rows.x.cols;
  for (size_t c = 0; c < cols; c += kSums) {
    for (size_t i = 0; i < std::min(kSums, cols - c); i++)
      sums[i] += rows.weight_of(c + i) * (norm - (a[c + i] - shift));
  }
  for (size_t i = 1; i < kSums; i++) sums[0] += sums[i];
  return sums[0];
}

template <class T, class Label>
void cross_entropy_rows(const CrossEntropy& x, size_t begin, size_t end) {
  const ScoreRows<T> rows{x};
  const Label* labels = static_cast<const Label*>(x.labels);
  T *losses = static_cast<T*>(x.losses), *counts = static_cast<T*>(x.counts);
  for (size_t r = begin; r < end; r++) {
    T* kept = rows.kept(r);
    const bool is_ignored = labels[r] == x.ignore_index;
    const size_t label = is_ignored ? 0 : static_cast<size_t>(labels[r]);
    if (counts) counts[r] = is_ignored ? T{} : rows.weight_of(label);
    losses[r] = kept[0] = kept[1] = T{};
    if (is_ignored) continue;
    const T* a = rows.scores(r);
    const T shift = kept[0] = largest_score(a, x.cols), norm = kept[1] = log_of(exp_sum(a, x.cols, shift));
    losses[r] = rows.kept_share * rows.weight_of(label) * (norm - (a[label] - shift));
    if (x.smoothing > 0) losses[r] += rows.spread * distances(rows, a, shift, norm);
  }
}

template <class T, class Label>
void cross_entropy_grad_rows(const CrossEntropyGrad& g, size_t begin, size_t end) {
  const LabelledScores& x = g;
  const ScoreRows<T> rows{x};
  const Label* labels = static_cast<const Label*>(x.labels);
  const T divisor = g.divisor ? *static_cast<const T*>(g.divisor) : static_cast<T>(g.divisor_number);
  const T* grad = static_cast<const T*>(g.grad);
  T* into = static_cast<T*>(g.grad_scores) + begin * x.cols;
  double total = 0;  // of all weights
  for (size_t c = 0; c < x.cols && x.smoothing > 0; c++) total += static_cast<double>(rows.weight_of(c));
  for (size_t r = begin; r < end; r++, into += x.cols) {
    if (labels[r] == x.ignore_index) {
      std::fill_n(into, x.cols, T{});
      continue;
    }
    const size_t label = static_cast<size_t>(labels[r]);
    const T scale = grad[g.is_per_row ? r : 0] / divisor;
    const T own = rows.kept_share * rows.weight_of(label) * scale, spread = rows.spread * scale;
    write_probabilities(into, rows.scores(r), x.cols, rows.kept(r), own + spread * static_cast<T>(total));
    if (x.smoothing > 0) {
      for (size_t c = 0; c < x.cols; c++) into[c] -= spread * rows.weight_of(c);
    }
    into[label] -= own;
  }
}

void cross_entropy(const CrossEntropy& x) {
  with_float(x.dtype, [&](auto type) {
    with_label(x.labels_dtype, [&](auto label) {
      for_row_blocks(x.rows, x.cols, [&](size_t first, size_t count) {
        cross_entropy_rows<decltype(type), decltype(label)>(x, first, first + count);
      });
    });
  });
}

void cross_entropy_grad(const CrossEntropyGrad& g) {
  with_float(g.dtype, [&](auto type) {
    with_label(g.labels_dtype, [&](auto label) {
      for_row_blocks(g.rows, g.cols, [&](size_t first, size_t count) {
        cross_entropy_grad_rows<decltype(type), decltype(label)>(g, first, first + count);
      });
    });
  });
}

}  // namespace ringwise::tensor::RINGWISE_LEVEL
