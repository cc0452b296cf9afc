// Optimiser steps over many tensors at once, in the order of operations of torch.optim, as in cpu/optimizer.h; norms
// and scaling of many tensors. A step reads every array once, and writes parameters and states once.
#include "tensor/cuda/kernels/shared/functions.cuh"

namespace ringwise::tensor::cuda {

/// The numbers that a step reads beside its tensors. size: lr / (1 - beta1^t); correction: sqrt(1 - beta2^t).
struct Numbers {
  double lr, weight_decay, momentum, smoothing, epsilon, size, correction;
  bool is_first, variant, maximize;
};

__device__ inline Numbers numbers_of(const OptimizerArguments& x, const OptimizerRow& row) {
  const double* rule = x.live ? x.live : x.numbers;
  const double* own = x.live ? x.live + row.numbers_at : row.numbers;
  return {rule[0], rule[1], rule[2], rule[3], rule[4], own[0], own[1], own[2] != 0, x.variant != 0, x.maximize != 0};
}

/// An element: its parameter, gradient and states. States that a rule lacks are neither read nor written.
template <class T>
struct Cell {
  T param, grad, state[3];
};

/// The gradient with the decay of its parameter. A rate of 0 adds nothing, where 0 times infinity would add NaN.
template <class T>
__device__ inline T decayed(const Numbers& x, T grad, double rate, T param) {
  const T step = T(x.maximize ? -1 : 1) * grad;
  return rate == 0 ? step : step + T(rate) * param;
}

template <class T>
__device__ inline void sgd_step(const Numbers& x, const OptimizerRow& row, Cell<T>& at) {
  T step = decayed(x, at.grad, x.weight_decay, at.param);
  if (row.state[0]) {
    const T speed = x.is_first ? step : T(x.momentum) * at.state[0] + T(1 - x.smoothing) * step;
    at.state[0] = speed;
    step = x.variant ? step + T(x.momentum) * speed : speed;
  }
  at.param -= T(x.lr) * step;
}

/// Moves `from` towards `to` by the share 1 - `kept`, as torch.lerp does.
template <class T>
__device__ inline T moved(T from, T to, double kept) {
  return 1 - kept < 0.5 ? from + T(1 - kept) * (to - from) : to - T(kept) * (to - from);
}

template <class T>
__device__ inline void adam_step(const Numbers& x, const OptimizerRow& row, Cell<T>& at) {
  const T value = T(x.variant ? 1 - x.lr * x.weight_decay : 1.0) * at.param;
  const T grad = decayed(x, at.grad, x.variant ? 0.0 : x.weight_decay, value);
  const T mean = moved(at.state[0], grad, x.momentum);
  T square = T(x.smoothing) * at.state[1] + T(1 - x.smoothing) * grad * grad;
  at.state[0] = mean;
  at.state[1] = square;
  if (row.state[2]) at.state[2] = square = max_of(at.state[2], square);
  at.param = value - T(x.size) * mean / (sqrt(square) / T(x.correction) + T(x.epsilon));
}

template <class T>
__device__ inline void rmsprop_step(const Numbers& x, const OptimizerRow& row, Cell<T>& at) {
  const T grad = decayed(x, at.grad, x.weight_decay, at.param);
  const T square = T(x.smoothing) * at.state[0] + T(1 - x.smoothing) * grad * grad;
  at.state[0] = square;
  T spread = square;
  if (row.state[2]) {
    const T now = moved(at.state[2], grad, x.smoothing);
    at.state[2] = now;
    spread = square - now * now;
  }
  T step = grad / (sqrt(spread) + T(x.epsilon));
  if (row.state[1]) at.state[1] = step = T(x.momentum) * at.state[1] + step;
  at.param -= T(x.lr) * step;
}

template <class T>
__device__ inline void lion_step(const Numbers& x, Cell<T>& at) {
  const T grad = T(x.maximize ? -1 : 1) * at.grad, mean = at.state[0];
  const T blend = T(x.momentum) * mean + T(1 - x.momentum) * grad;
  const T step = blend > T(0) ? T(x.lr) : blend < T(0) ? -T(x.lr) : blend;
  at.param = T(1 - x.lr * x.weight_decay) * at.param - step;
  at.state[0] = T(x.smoothing) * mean + T(1 - x.smoothing) * grad;
}

template <class T>
__device__ inline void step_cell(OptimizerKind kind, const Numbers& x, const OptimizerRow& row, Cell<T>& at) {
  switch (kind) {
    case OptimizerKind::Sgd: return sgd_step(x, row, at);
    case OptimizerKind::Adam: return adam_step(x, row, at);
    case OptimizerKind::Rmsprop: return rmsprop_step(x, row, at);
    default: return lion_step(x, at);
  }
}

/// Calls body(row, begin, n) for every group of up to four elements of the block's chunk that this thread has.
template <class Body>
__device__ inline void for_each_group(const OptimizerArguments& x, Body body) {
  int own = 0;
  while (own + 1 < x.row_count && x.rows[own + 1].first_block <= static_cast<int64_t>(blockIdx.x)) own++;
  const OptimizerRow& row = x.rows[own];
  const int64_t begin = (static_cast<int64_t>(blockIdx.x) - row.first_block) * kOptimizerChunk;
  const int64_t end = begin + kOptimizerChunk < row.count ? begin + kOptimizerChunk : row.count;
  for (int64_t i = begin + 4 * static_cast<int64_t>(threadIdx.x); i < end; i += 4 * static_cast<int64_t>(blockDim.x)) {
    body(row, i, static_cast<int>(end - i < 4 ? end - i : 4));
  }
}

template <class T>
__device__ inline void load_group(T* values, const void* data, int64_t begin, int n, bool use_packs) {
  const T* from = static_cast<const T*>(data) + begin;
  if (use_packs && n == 4) {
    const Pack<T> pack = *reinterpret_cast<const Pack<T>*>(from);
    for (int k = 0; k < 4; k++) values[k] = pack.at[k];
  } else {
    for (int k = 0; k < 4; k++) values[k] = k < n ? from[k] : T(0);
  }
}

template <class T>
__device__ inline void store_group(const T* values, void* data, int64_t begin, int n, bool use_packs) {
  T* to = static_cast<T*>(data) + begin;
  if (use_packs && n == 4) {
    Pack<T> pack;
    for (int k = 0; k < 4; k++) pack.at[k] = values[k];
    *reinterpret_cast<Pack<T>*>(to) = pack;
  } else {
    for (int k = 0; k < 4; k++) {
      if (k < n) to[k] = values[k];
    }
  }
}

template <class T>
__device__ void optimize(const OptimizerArguments& x) {
  for_each_group(x, [&](const OptimizerRow& row, int64_t begin, int n) {
    const Numbers numbers = numbers_of(x, row);
    const bool use_packs = row.use_packs != 0;
    T param[4], grad[4], state[3][4] = {};
    load_group(param, row.param, begin, n, use_packs);
    load_group(grad, row.grad, begin, n, use_packs);
#pragma unroll
    for (int s = 0; s < 3; s++) {
      if (row.state[s]) load_group(state[s], row.state[s], begin, n, use_packs);
    }
#pragma unroll
    for (int k = 0; k < 4; k++) {
      Cell<T> at{param[k], grad[k], {state[0][k], state[1][k], state[2][k]}};
      step_cell(static_cast<OptimizerKind>(x.kind), numbers, row, at);
      param[k] = at.param;
      for (int s = 0; s < 3; s++) state[s][k] = at.state[s];
    }
    store_group(param, row.param, begin, n, use_packs);
#pragma unroll
    for (int s = 0; s < 3; s++) {
      if (row.state[s]) store_group(state[s], row.state[s], begin, n, use_packs);
    }
  });
}

/// Computes the sum of the squares of a block's chunk.
template <class T>
__device__ void squares(const OptimizerArguments& x) {
  __shared__ double shared[kThreads];
  double sum = 0;
  for_each_group(x, [&](const OptimizerRow& row, int64_t begin, int n) {
    T values[4];
    load_group(values, row.param, begin, n, row.use_packs != 0);
    for (int k = 0; k < 4; k++) sum += static_cast<double>(values[k]) * values[k];
  });
  sum = over_block(sum, shared, [](double a, double b) { return a + b; });
  if (threadIdx.x == 0) x.partial[blockIdx.x] = sum;
}

template <class T>
__device__ void scale(const OptimizerArguments& x) {
  const T factor = x.factor ? static_cast<T>(*x.factor) : static_cast<T>(x.number);
  for_each_group(x, [&](const OptimizerRow& row, int64_t begin, int n) {
    T values[4], odd = 0;
    load_group(values, row.param, begin, n, row.use_packs != 0);
    for (int k = 0; k < 4; k++) {
      odd += values[k] * T(0);  // 0 × NaN and 0 × ∞ are not 0
      values[k] *= factor;
    }
    store_group(values, row.param, begin, n, row.use_packs != 0);
    if (x.not_finite && !(odd == T(0))) *x.not_finite = 1;
  });
}

RINGWISE_KERNEL(optimize_float, OptimizerArguments) { optimize<float>(arguments); }
RINGWISE_KERNEL(optimize_double, OptimizerArguments) { optimize<double>(arguments); }
RINGWISE_BLOCK_KERNEL(squares_float, OptimizerArguments) { squares<float>(arguments); }
RINGWISE_BLOCK_KERNEL(squares_double, OptimizerArguments) { squares<double>(arguments); }
RINGWISE_KERNEL(scale_float, OptimizerArguments) { scale<float>(arguments); }
RINGWISE_KERNEL(scale_double, OptimizerArguments) { scale<double>(arguments); }

/// Computes the root of the total of all sums, in one block.
RINGWISE_BLOCK_KERNEL(root_of_sum, NormArguments) {
  __shared__ double shared[kThreads];
  double sum = 0;
  for (int64_t i = threadIdx.x; i < arguments.count; i += blockDim.x) sum += arguments.partial[i];
  sum = over_block(sum, shared, [](double a, double b) { return a + b; });
  if (threadIdx.x == 0) *arguments.norm = static_cast<float>(sqrt(sum));
}

}  // namespace ringwise::tensor::cuda
