#include "tensor/cuda/launch/optimizer.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "tensor/cuda/device/captured_step.h"
#include "tensor/cuda/device/device.h"
#include "tensor/cuda/launch/arguments.h"
#include "tensor/cuda/launch/kernels.h"

namespace ringwise::tensor::cuda {

namespace {

int64_t blocks_for(const OptimizerTensor& t) {
  return (static_cast<int64_t>(t.count) + kOptimizerChunk - 1) / kOptimizerChunk;
}

OptimizerRow row_of(const OptimizerTensor& t) {
  OptimizerRow row{};
  row.param = t.param;
  row.grad = t.grad;
  row.count = static_cast<int64_t>(t.count);
  row.is_vector = 1;
  const auto look_at = [&](const void* data) {
    if (reinterpret_cast<uintptr_t>(data) % 16 != 0) row.is_vector = 0;
  };
  look_at(t.param);
  look_at(t.grad);
  for (size_t i = 0; i < kOptimizerStates; i++) {
    row.state[i] = t.state[i];
    look_at(t.state[i]);
  }
  return row;
}

/// Launches over all tensors of a dtype, as many at a time as the arguments have rows for. `complete` finishes a row;
/// `before` sees each launch and the number of blocks that the ones before it had.
template <class Complete, class Before>
void launch_rows(KernelId kernel, DType dtype, const OptimizerTensor* tensors, size_t count, OptimizerArguments& x,
                 Complete complete, Before before) {
  int64_t blocks = 0;
  const auto flush = [&] {
    if (blocks == 0) return;
    if (blocks > INT32_MAX) throw std::invalid_argument("optimize: the tensors have too many elements for one launch.");
    before(blocks);
    current_device().launch(kernel, {static_cast<unsigned>(blocks)}, kThreads, x);
    blocks = x.row_count = 0;
  };
  x.row_count = 0;
  for (size_t i = 0; i < count; i++) {
    const OptimizerTensor& t = tensors[i];
    if (t.dtype != dtype || t.count == 0) continue;
    if (x.row_count == kOptimizerRows) flush();
    OptimizerRow& row = x.rows[x.row_count++];
    row = row_of(t);
    complete(row, t);
    row.first_block = blocks;
    blocks += blocks_for(t);
  }
  flush();
}

constexpr auto kNothing = [](auto&&...) {};

}  // namespace

std::vector<double> optimizer_numbers(const OptimizerRule& rule, const double* steps, size_t count) {
  std::vector<double> numbers{rule.lr, rule.weight_decay, rule.momentum, rule.smoothing, rule.epsilon};
  numbers.reserve(numbers.size() + kOptimizerRowNumbers * count);
  for (size_t i = 0; i < count; i++) {
    numbers.push_back(rule.lr / (1 - std::pow(rule.momentum, steps[i])));
    numbers.push_back(std::sqrt(1 - std::pow(rule.smoothing, steps[i])));
    numbers.push_back(steps[i] == 1);
  }
  return numbers;
}

void optimize(const Optimize& given) {
  const auto& [rule, tensors, count] = given;
  OptimizerArguments x{};
  x.kind = static_cast<int32_t>(rule.kind);
  x.variant = rule.variant;
  x.maximize = rule.maximize;
  std::vector<double> steps(count);
  for (size_t i = 0; i < count; i++) steps[i] = tensors[i].steps;
  const std::vector<double> numbers = optimizer_numbers(rule, steps.data(), count);
  std::copy_n(numbers.begin(), kOptimizerNumbers, x.numbers);
  if (CapturedStep* step = step_being_captured(current_device().index())) {
    x.live = step->address(step->put(numbers.data(), numbers.size()));
  }
  const auto complete = [&](OptimizerRow& row, const OptimizerTensor& t) {
    row.live_at = static_cast<int32_t>(kOptimizerNumbers + kOptimizerRowNumbers * (&t - tensors));
    std::copy_n(numbers.begin() + row.live_at, kOptimizerRowNumbers, row.numbers);
  };
  launch_rows(KernelId::optimize_float, DType::Float32, tensors, count, x, complete, kNothing);
  launch_rows(KernelId::optimize_double, DType::Float64, tensors, count, x, complete, kNothing);
}

void total_norm(const TotalNorm& given) {
  const auto& [tensors, count, norm] = given;
  int64_t blocks = 0;
  for (size_t i = 0; i < count; i++) blocks += blocks_for(tensors[i]);
  Device& device = current_device();
  auto* partial = static_cast<double*>(device.allocate(static_cast<size_t>(blocks) * sizeof(double)));
  OptimizerArguments x{};
  double* next = partial;
  const auto before = [&](int64_t launched) {
    x.partial = next;
    next += launched;
  };
  try {
    launch_rows(KernelId::squares_float, DType::Float32, tensors, count, x, kNothing, before);
    launch_rows(KernelId::squares_double, DType::Float64, tensors, count, x, kNothing, before);
    device.launch(KernelId::root_of_sum, {}, kThreads, NormArguments{partial, norm, blocks});
  } catch (...) {
    device.free(partial);
    throw;
  }
  device.free(partial);
}

void scale(const Scale& given) {
  const auto& [tensors, count, factor, number, not_finite] = given;
  OptimizerArguments x{};
  x.factor = factor;
  x.number = number;
  x.not_finite = not_finite;
  launch_rows(KernelId::scale_float, DType::Float32, tensors, count, x, kNothing, kNothing);
  launch_rows(KernelId::scale_double, DType::Float64, tensors, count, x, kNothing, kNothing);
}

}  // namespace ringwise::tensor::cuda
