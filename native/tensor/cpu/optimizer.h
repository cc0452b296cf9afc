// Optimiser steps, in the order of operations of torch.optim, and the norm and scaling of many tensors. A step reads
// and writes every array once. Each rule has one implementation, for vectors of float and for single doubles. Included
// only by families/.
namespace ringwise::tensor::RINGWISE_LEVEL {

inline Vec root(Vec v) { return sqrt_vec(v); }
inline double root(double v) { return __builtin_sqrt(v); }
inline Vec larger(Vec a, Vec b) { return max_vec(a, b); }
inline double larger(double a, double b) { return a > b || a != a ? a : b; }

/// Moves `from` towards `to` by the share 1 - `kept`, as torch.lerp does: with the form that rounds the larger part of
/// the result less, so that a share of 1 gives `to`.
template <class V>
inline V moved(V from, V to, V kept, V share, bool is_most_kept) {
  return is_most_kept ? from + share * (to - from) : to - kept * (to - from);
}

/// Visits arrays of T in values of type V, in which rules compute.
template <class T>
struct Elements;

template <>
struct Elements<float> {
  using V = Vec;
  static V all(double value) { return splat(static_cast<float>(value)); }
  template <class Body>
  RINGWISE_INLINE static void each(size_t count, Body body) {
    for_each_vec(count, body);
  }
};

template <>
struct Elements<double> {
  using V = double;
  struct One {
    static double load(const double* p) { return *p; }
    static void store(double* p, double v) { *p = v; }
  };
  static V all(double value) { return value; }
  template <class Body>
  RINGWISE_INLINE static void each(size_t count, Body body) {
    for (size_t i = 0; i < count; i++) body(i, One{});
  }
};

/// The arrays of a tensor, with their type.
template <class T>
struct Arrays {
  explicit Arrays(const OptimizerTensor& t)
      : param(static_cast<T*>(t.param)), grad(static_cast<const T*>(t.grad)), state{} {
    for (size_t i = 0; i < kOptimizerStates; i++) state[i] = static_cast<T*>(t.state[i]);
  }
  T* param;
  const T* grad;
  T* state[kOptimizerStates];
};

/// Whether the decay is added to the gradient: with a rate of 0, an infinite parameter would add NaN.
inline bool adds_decay(const OptimizerRule& rule) { return rule.weight_decay != 0; }

template <class T>
void step_sgd(const OptimizerRule& rule, const OptimizerTensor& t) {
  using E = Elements<T>;
  using V = typename E::V;
  const Arrays<T> at(t);
  const V lr = E::all(rule.lr), decay = E::all(rule.weight_decay), momentum = E::all(rule.momentum);
  const V fresh = E::all(1 - rule.smoothing), direction = E::all(rule.maximize ? -1 : 1);
  T* velocity = at.state[0];
  const bool is_first = t.steps == 1, has_decay = adds_decay(rule);
  E::each(t.count, [&](size_t i, auto io) RINGWISE_INLINE {
    const V value = io.load(at.param + i);
    V step = direction * io.load(at.grad + i);
    if (has_decay) step = step + decay * value;
    if (velocity) {
      const V speed = is_first ? step : momentum * io.load(velocity + i) + fresh * step;
      io.store(velocity + i, speed);
      step = rule.variant ? step + momentum * speed : speed;
    }
    io.store(at.param + i, value - lr * step);
  });
}

template <class T>
void step_adam(const OptimizerRule& rule, const OptimizerTensor& t) {
  using E = Elements<T>;
  using V = typename E::V;
  const Arrays<T> at(t);
  const V keep = E::all(rule.variant ? 1 - rule.lr * rule.weight_decay : 1);
  const V decay = E::all(rule.weight_decay), direction = E::all(rule.maximize ? -1 : 1);
  const V kept = E::all(rule.momentum), fresh = E::all(1 - rule.momentum);
  const V old = E::all(rule.smoothing), fresh_square = E::all(1 - rule.smoothing);
  const bool is_most_kept = 1 - rule.momentum < 0.5, has_decay = !rule.variant && adds_decay(rule);
  const V size = E::all(rule.lr / (1 - __builtin_pow(rule.momentum, t.steps)));
  const V correction = E::all(__builtin_sqrt(1 - __builtin_pow(rule.smoothing, t.steps))),
          epsilon = E::all(rule.epsilon);
  T* most = at.state[2];
  E::each(t.count, [&](size_t i, auto io) RINGWISE_INLINE {
    V value = keep * io.load(at.param + i);
    V grad = direction * io.load(at.grad + i);
    if (has_decay) grad = grad + decay * value;
    const V before = io.load(at.state[0] + i);
    const V mean = moved(before, grad, kept, fresh, is_most_kept);
    V square = old * io.load(at.state[1] + i) + fresh_square * grad * grad;
    io.store(at.state[0] + i, mean);
    io.store(at.state[1] + i, square);
    if (most) {
      square = larger(io.load(most + i), square);
      io.store(most + i, square);
    }
    io.store(at.param + i, value - size * mean / (root(square) / correction + epsilon));
  });
}

template <class T>
void step_rmsprop(const OptimizerRule& rule, const OptimizerTensor& t) {
  using E = Elements<T>;
  using V = typename E::V;
  const Arrays<T> at(t);
  const V lr = E::all(rule.lr), decay = E::all(rule.weight_decay), momentum = E::all(rule.momentum);
  const V old = E::all(rule.smoothing), fresh = E::all(1 - rule.smoothing), epsilon = E::all(rule.epsilon);
  const V direction = E::all(rule.maximize ? -1 : 1);
  const bool is_most_kept = 1 - rule.smoothing < 0.5, has_decay = adds_decay(rule);
  T* velocity = at.state[1];
  T* mean = at.state[2];
  E::each(t.count, [&](size_t i, auto io) RINGWISE_INLINE {
    const V value = io.load(at.param + i);
    V grad = direction * io.load(at.grad + i);
    if (has_decay) grad = grad + decay * value;
    const V square = old * io.load(at.state[0] + i) + fresh * grad * grad;
    io.store(at.state[0] + i, square);
    V spread = square;
    if (mean) {
      const V now = moved(io.load(mean + i), grad, old, fresh, is_most_kept);
      io.store(mean + i, now);
      spread = square - now * now;
    }
    V step = grad / (root(spread) + epsilon);
    if (velocity) {
      step = momentum * io.load(velocity + i) + step;
      io.store(velocity + i, step);
    }
    io.store(at.param + i, value - lr * step);
  });
}

template <class T>
void step_lion(const OptimizerRule& rule, const OptimizerTensor& t) {
  using E = Elements<T>;
  using V = typename E::V;
  const Arrays<T> at(t);
  const V keep = E::all(1 - rule.lr * rule.weight_decay), lr = E::all(rule.lr), zero = E::all(0);
  const V direction = E::all(rule.maximize ? -1 : 1);
  const V beta = E::all(rule.momentum), rest = E::all(1 - rule.momentum);
  const V old = E::all(rule.smoothing), fresh = E::all(1 - rule.smoothing);
  E::each(t.count, [&](size_t i, auto io) RINGWISE_INLINE {
    const V grad = direction * io.load(at.grad + i), mean = io.load(at.state[0] + i);
    const V blend = beta * mean + rest * grad;
    const V step = blend > zero ? lr : blend < zero ? -lr : blend;
    io.store(at.param + i, keep * io.load(at.param + i) - step);
    io.store(at.state[0] + i, old * mean + fresh * grad);
  });
}

template <class T>
void step_tensor(const OptimizerRule& rule, const OptimizerTensor& t) {
  switch (rule.kind) {
    case OptimizerKind::Sgd: return step_sgd<T>(rule, t);
    case OptimizerKind::Adam: return step_adam<T>(rule, t);
    case OptimizerKind::Rmsprop: return step_rmsprop<T>(rule, t);
    default: return step_lion<T>(rule, t);
  }
}

// Returns elements [begin, begin + count) of a tensor, its gradient and its states.
inline OptimizerTensor piece_of(OptimizerTensor t, size_t begin, size_t count) {
  const size_t bytes = begin * byte_size(t.dtype);
  t.count = count;
  t.param = static_cast<char*>(t.param) + bytes;
  if (t.grad) t.grad = static_cast<const char*>(t.grad) + bytes;
  for (void*& state : t.state)
    if (state) state = static_cast<char*>(state) + bytes;
  return t;
}

// Calls body(piece) with pieces that cover all tensors, on several threads.
template <class Body>
void for_each_piece(const OptimizerTensor* tensors, size_t count, Body body) {
  size_t total = 0;
  for (size_t i = 0; i < count; i++) total += tensors[i].count;
  parallel_for(total, kGrain, [&](size_t begin, size_t end) {
    for (size_t i = 0, first = 0; i < count && first < end; first += tensors[i++].count) {
      const size_t from = std::max(begin, first), to = std::min(end, first + tensors[i].count);
      if (from < to) body(piece_of(tensors[i], from - first, to - from));
    }
  });
}

void optimize(const Optimize& x) {
  const OptimizerRule& rule = x.rule;
  for_each_piece(x.tensors, x.count, [&](const OptimizerTensor& t) {
    if (t.dtype == DType::Float64)
      step_tensor<double>(rule, t);
    else
      step_tensor<float>(rule, t);
  });
}

template <class T>
double sum_of_squares(const T* values, size_t count) {
  // Four sums, so that an addition does not wait for the previous one.
  double sum[4] = {};
  size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    for (size_t j = 0; j < 4; j++) sum[j] += static_cast<double>(values[i + j]) * values[i + j];
  }
  for (; i < count; i++) sum[0] += static_cast<double>(values[i]) * values[i];
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

void total_norm(const TotalNorm& x) {
  double sum = 0;
  for (size_t i = 0; i < x.count; i++) {
    const OptimizerTensor& t = x.tensors[i];
    sum += t.dtype == DType::Float64 ? sum_of_squares(static_cast<const double*>(t.param), t.count)
                                     : sum_of_squares(static_cast<const float*>(t.param), t.count);
  }
  *x.norm = static_cast<float>(__builtin_sqrt(sum));
}

/// Multiplies by `factor`. Returns whether all values were finite before: 0 × NaN and 0 × ∞ are not 0.
template <class T>
bool scale_tensor(const OptimizerTensor& t, double factor) {
  using E = Elements<T>;
  using V = typename E::V;
  T* values = static_cast<T*>(t.param);
  const V by = E::all(factor), zero = E::all(0);
  V odd = zero;
  E::each(t.count, [&](size_t i, auto io) RINGWISE_INLINE {
    const V value = io.load(values + i);
    odd = odd + value * zero;
    io.store(values + i, value * by);
  });
  if constexpr (sizeof(V) == sizeof(T))
    return odd == 0;
  else
    return over_lanes(odd, [](auto x, auto y) RINGWISE_INLINE { return x + y; }) == 0;
}

void scale(const Scale& x) {
  const double factor = x.factor ? static_cast<double>(*x.factor) : x.number;
  std::atomic<bool> are_finite{true};
  for_each_piece(x.tensors, x.count, [&](const OptimizerTensor& t) {
    const bool is_finite = t.dtype == DType::Float64 ? scale_tensor<double>(t, factor) : scale_tensor<float>(t, factor);
    if (!is_finite) are_finite.store(false, std::memory_order_relaxed);
  });
  if (x.not_finite && !are_finite.load(std::memory_order_relaxed)) *x.not_finite = 1;
}

}  // namespace ringwise::tensor::RINGWISE_LEVEL
