// Kernels that take many tensors in one call. The tensors come as rows of a Float64Array: count, steps, then a handle
// and an offset for the parameter, its gradient and each state; handle 0 where there is none.
#include "node/tensor/tensor_call.h"

#include <vector>

namespace ringwise::node {

namespace {

using tensor::OptimizerTensor;

constexpr size_t kRow = 2 + 2 * (2 + tensor::kOptimizerStates);

/// Returns the memory of one column; its dtype and device must be those of the parameter.
void* dense_at(const Call& call, const double* cell, DType dtype, int device, size_t count) {
  const auto handle = static_cast<int32_t>(cell[0]);
  if (handle != 0 && call.block_of(handle).device != device)
    call.throw_different_devices(call.block_of(handle).device, device);
  return handle == 0 ? nullptr : call.dense_at(handle, cell[1], dtype, count);
}

/// The rows of a table, all of one device.
struct Tensors : std::vector<OptimizerTensor> {
  using std::vector<OptimizerTensor>::vector;
  int device = -1;
};

Tensors tensors_of(const Call& call, size_t table, size_t rows) {
  const double* cell = call.numbers(table, product(rows, kRow));
  Tensors tensors(rows);
  if (rows > 0) tensors.device = call.block_of(static_cast<int32_t>(cell[2])).device;
  for (OptimizerTensor& t : tensors) {
    t.count = static_cast<size_t>(cell[0]);
    t.steps = cell[1];
    t.dtype = call.block_of(static_cast<int32_t>(cell[2])).dtype;
    if (t.dtype != DType::Float32 && t.dtype != DType::Float64) {
      throw std::invalid_argument("optimize: a parameter is neither float32 nor float64.");
    }
    t.param = dense_at(call, cell + 2, t.dtype, tensors.device, t.count);
    t.grad = dense_at(call, cell + 4, t.dtype, tensors.device, t.count);
    for (size_t i = 0; i < tensor::kOptimizerStates; i++) {
      t.state[i] = dense_at(call, cell + 6 + 2 * i, t.dtype, tensors.device, t.count);
    }
    cell += kRow;
  }
  return tensors;
}

/// (table, rows, kind, lr, weight decay, momentum, smoothing, epsilon, flags: variant 1, maximize 2)
void optimize(Call& call) {
  const Tensors tensors = tensors_of(call, 0, call.size_argument(1));
  tensor::OptimizerRule rule;
  const double kind = call.argument(2);
  if (!(kind >= 0 && kind < static_cast<int>(tensor::OptimizerKind::Count))) {
    throw std::invalid_argument("optimize: unknown kind.");
  }
  rule.kind = static_cast<tensor::OptimizerKind>(static_cast<int>(kind));
  rule.lr = call.argument(3);
  rule.weight_decay = call.argument(4);
  rule.momentum = call.argument(5);
  rule.smoothing = call.argument(6);
  rule.epsilon = call.argument(7);
  const int flags = static_cast<int>(call.argument(8));
  rule.variant = flags & 1;
  rule.maximize = flags & 2;
  for (const OptimizerTensor& t : tensors) {
    const bool needs_first = rule.kind != tensor::OptimizerKind::Sgd;
    const bool needs_second = rule.kind == tensor::OptimizerKind::Adam;
    const bool is_complete = t.grad && (!needs_first || t.state[0]) && (!needs_second || t.state[1]);
    if (!is_complete) throw std::invalid_argument("optimize: a tensor that the rule needs is absent.");
  }
  call.kernels_on(tensors.device).optimize({rule, tensors.data(), tensors.size()});
}

/// (table, rows); operand 0 gets the root of the sum of the squares of all elements in the parameters' column
void total_norm(Call& call) {
  const Tensors tensors = tensors_of(call, 0, call.size_argument(1));
  float* out = call.floats(0, 1);
  if (call.block(0).device != tensors.device && !tensors.empty())
    call.throw_different_devices(call.block(0).device, tensors.device);
  call.kernels().total_norm({tensors.data(), tensors.size(), out});
}

/// (table, rows); operand 0: what to multiply the parameters' column by; operand 1, which may be absent, becomes 1 if
/// anything there was not finite
void scale(Call& call) {
  const Tensors tensors = tensors_of(call, 0, call.size_argument(1));
  for (const size_t i : {0, 1}) {
    if (call.has(i) && call.block(i).device != tensors.device)
      call.throw_different_devices(call.block(i).device, tensors.device);
  }
  call.kernels_on(tensors.device)
      .scale({tensors.data(), tensors.size(), call.has(0) ? call.floats(0, 1) : nullptr, call.value(0),
              call.has(1) ? call.floats(1, 1) : nullptr});
}

}  // namespace

void define_optimizer(napi_env env, napi_value exports, TensorState* state) {
  define_function(env, exports, state, "optimize", &entry<optimize>);
  define_function(env, exports, state, "totalNorm", &entry<total_norm>);
  define_function(env, exports, state, "scale", &entry<scale>);
}

}  // namespace ringwise::node
