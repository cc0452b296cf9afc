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
  row.use_packs = 1;
  // The kernel loads 16 bytes at once only if every pointer of the row is aligned; null counts as aligned.
  const auto require_alignment = [&](const void* data) {
    if (reinterpret_cast<uintptr_t>(data) % 16 != 0) row.use_packs = 0;
  };
  require_alignment(t.param);
  require_alignment(t.grad);
  for (size_t i = 0; i < kOptimizerStates; i++) {
    row.state[i] = t.state[i];
    require_alignment(t.state[i]);
  }
  return row;
}

/// Launches `kernel` over all tensors of `dtype` that are not empty, at most kOptimizerRows of them at a time.
/// complete(row, i) fills the members of a row that depend on the operation, for tensor i; before(blocks) is called
/// right before each launch, with its number of blocks.
template <class Complete, class Before>
void launch_rows(KernelId kernel, DType dtype, const OptimizerTensor* tensors, size_t count, OptimizerArguments& x,
                 Complete complete, Before before) {
  int64_t blocks = 0;
  const auto flush = [&] {
    if (blocks == 0) return;
    if (blocks > INT32_MAX) {
      throw std::invalid_argument("an optimizer's tensors have too many elements for one launch of a CUDA kernel.");
    }
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
    complete(row, i);
    row.first_block = blocks;
    blocks += blocks_for(t);
  }
  flush();
}

constexpr auto kNothing = [](auto&&...) {};

}  // namespace

// Per tensor, after the rule's own numbers: lr / (1 - beta1^t), sqrt(1 - beta2^t), and whether t is 1. t counts the
// steps with the current one; `momentum` is Adam's beta1 and `smoothing` its beta2.
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
  // In a captured step the kernel reads the numbers from device memory of the step, because they change from replay to
  // replay; else it reads the copies in its arguments.
  if (CapturedStep* step = step_being_captured(current_device().index())) {
    x.live = step->address(step->put(numbers.data(), numbers.size()));
  }
  const auto complete = [&](OptimizerRow& row, size_t i) {
    row.numbers_at = static_cast<int32_t>(kOptimizerNumbers + kOptimizerRowNumbers * i);
    std::copy_n(numbers.begin() + row.numbers_at, kOptimizerRowNumbers, row.numbers);
  };
  launch_rows(KernelId::optimize_float, DType::Float32, tensors, count, x, complete, kNothing);
  launch_rows(KernelId::optimize_double, DType::Float64, tensors, count, x, complete, kNothing);
}

void total_norm(const TotalNorm& given) {
  const auto& [tensors, count, norm] = given;
  int64_t blocks = 0;
  for (size_t i = 0; i < count; i++) blocks += blocks_for(tensors[i]);
  Device& device = current_device();
  // One partial sum for each block. All tensors are float32 or float64.
  auto* partial = static_cast<double*>(device.allocate(static_cast<size_t>(blocks) * sizeof(double)));
  OptimizerArguments x{};
  double* next = partial;
  const auto before = [&](int64_t launch_blocks) {
    x.partial = next;
    next += launch_blocks;
  };
  try {
    launch_rows(KernelId::squares_float, DType::Float32, tensors, count, x, kNothing, before);
    launch_rows(KernelId::squares_double, DType::Float64, tensors, count, x, kNothing, before);
    device.launch(KernelId::root_of_sum, {}, kThreads, NormArguments{partial, norm, blocks});
  } catch (...) {
    device.free(partial);
    throw;
  }
  device.free(partial);  // on the stream, so after the launches
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
