// One call from JavaScript into a kernel, by the plain Node-API: it costs about 60 ns and 10 ns an argument, where the
// object wrappers would cost several times that. Operands, shapes and strides come in the scratch array
// (tensor_state.h); sizes and flags too, in calls that are made for every op, else as arguments. backends/native.ts
// writes both. Sizes are checked against the memory that the handles name, because a wrong one would corrupt memory far
// away from its cause.
#pragma once

#include <node_api.h>

#include <algorithm>
#include <cstdint>
#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "node/tensor/tensor_state.h"
#include "tensor/cuda/device/captured_step.h"
#include "tensor/cuda/device/device.h"
#include "tensor/cuda/launch/kernels.h"

namespace ringwise::node {

/// A product of sizes that sticks at the largest value, where no memory reaches.
inline size_t area(size_t a, size_t b) {
  size_t product;
  return __builtin_mul_overflow(a, b, &product) ? SIZE_MAX : product;
}

class Call {
 public:
  Call(napi_env env, napi_callback_info info) : env_(env) {
    void* data = nullptr;
    napi_get_cb_info(env, info, &count_, values_, nullptr, &data);
    state_ = static_cast<TensorState*>(data);
  }

  /// The kernels of the device that operand 0 lies on, which the calling thread enters.
  const tensor::Kernels& kernels() const { return kernels_on(device_of(0)); }
  const tensor::Kernels& kernels_on(int device) const {
    if (device < 0) return *state_->kernels;
    tensor::cuda::Device::get(device).enter();
    return tensor::cuda::kernels();
  }
  /// Returns whether the operands are in host memory.
  bool is_on_host() const { return device_of(0) < 0; }

  // Numbers come as arguments or, for a call without any, in the scratch array.
  double number(size_t i) const {
    if (count_ == 0) return state_->scratch[kNumbersAt + i];
    double value;
    if (i >= count_ || napi_get_value_double(env_, values_[i], &value) != napi_ok) wrong(i, "a number");
    return value;
  }
  int32_t integer(size_t i) const {
    if (count_ == 0) return static_cast<int32_t>(state_->scratch[kNumbersAt + i]);
    int32_t value;
    if (i >= count_ || napi_get_value_int32(env_, values_[i], &value) != napi_ok) wrong(i, "an integer");
    return value;
  }
  size_t size(size_t i) const {
    const double value = number(i);
    if (!(value >= 0 && value <= 0x1p53)) wrong(i, "a size");
    return static_cast<size_t>(value);
  }
  bool flag(size_t i) const { return integer(i) != 0; }

  /// A number that JavaScript wrote to the scratch array.
  double scratch(size_t i) const { return state_->scratch[i]; }

  /// Returns whether operand i exists and is memory.
  bool has(size_t i) const { return handle(i) != 0; }
  /// The memory that operand i lies in.
  const tensor::Block& block(size_t i) const {
    const tensor::Block& block = block_of(handle(i));
    if (handle(0) != 0 && block.device != device_of(0)) apart(block.device, device_of(0));
    return block;
  }
  const tensor::Block& block_of(int32_t handle) const {
    const tensor::Block* block = state_->blocks.find(handle);
    if (block == nullptr)
      throw std::invalid_argument("kernel call: a handle names no memory in use. This is a bug in @ringwise/tensor.");
    if (block->device >= 0) tensor::cuda::touch(*block);
    return *block;
  }
  /// Operand i, which is no memory.
  double value(size_t i) const { return state_->scratch[2 * i + 1]; }
  /// `count` dense elements of operand i, which must be of this type.
  void* dense(size_t i, DType dtype, size_t count) const {
    block(i);
    return dense_at(handle(i), state_->scratch[2 * i + 1], dtype, count);
  }
  /// `count` dense elements of this memory, which must be of this type.
  void* dense_at(int32_t handle, double begin, DType dtype, size_t count) const {
    const tensor::Block& found = block_of(handle);
    if (found.dtype != dtype) {
      throw std::invalid_argument(std::string("kernel call: expected memory of ") + name_of(dtype) + ", got " +
                                  name_of(found.dtype) + ". This is a bug in @ringwise/tensor.");
    }
    if (!(begin >= 0) || begin + static_cast<double>(count) > static_cast<double>(found.count)) {
      throw std::out_of_range("kernel call: an operand is too small; expected at least " + std::to_string(count) +
                              " elements, got " + std::to_string(found.count) + ". This is a bug in @ringwise/tensor.");
    }
    return static_cast<char*>(found.data) + static_cast<size_t>(begin) * byte_size(dtype);
  }
  float* floats(size_t i, size_t count) const { return static_cast<float*>(dense(i, DType::Float32, count)); }
  int64_t* indices(size_t i, size_t count) const { return static_cast<int64_t*>(dense(i, DType::Int64, count)); }

  /// Argument i: a Float64Array with at least `count` numbers.
  const double* numbers(size_t i, size_t count) const {
    napi_typedarray_type type = napi_uint8_array;
    size_t length = 0;
    void* data = nullptr;
    const bool is_array =
        i < count_ && napi_get_typedarray_info(env_, values_[i], &type, &length, &data, nullptr, nullptr) == napi_ok;
    if (!is_array || type != napi_float64_array || length < count) wrong(i, "a table of numbers");
    return static_cast<const double*>(data);
  }

  /// Number i of the sizes that a call with more of them than arguments puts where a walk has its shape.
  size_t listed(size_t i) const {
    const double value = state_->scratch[2 * tensor::kMaxOperands + i];
    if (!(value >= 0 && value <= 0x1p53)) wrong(i, "a size");
    return static_cast<size_t>(value);
  }

  [[noreturn]] void apart(int device, int other) const {
    throw std::invalid_argument("kernel call: expected memory on one device, got " +
                                tensor::cuda::name_of_device(device) + " and " + tensor::cuda::name_of_device(other) +
                                ". Move one with to().");
  }

  /// The first `operands` operands as the shape in the scratch array sees them; what they reach is checked.
  tensor::Walk walk(int operands) const {
    tensor::Walk walk;
    const double* next = state_->scratch + 2 * tensor::kMaxOperands;
    walk.rank = static_cast<int>(*next++);
    walk.operands = operands;
    if (walk.rank < 0 || walk.rank > tensor::kMaxRank) {
      throw std::out_of_range("kernel call: expected at most " + std::to_string(tensor::kMaxRank) +
                              " dimensions, got " + std::to_string(walk.rank) + ".");
    }
    for (int d = 0; d < walk.rank; d++) walk.shape[d] = static_cast<size_t>(*next++);
    for (int i = 0; i < operands; i++, next += walk.rank) set_operand(walk, i, next);
    return walk;
  }

 private:
  int32_t handle(size_t i) const { return static_cast<int32_t>(state_->scratch[2 * i]); }
  /// Returns the device of the memory of operand i; -1 for host memory.
  int device_of(size_t i) const {
    const tensor::Block* block = state_->blocks.find(handle(i));
    return block == nullptr ? -1 : block->device;
  }

  void set_operand(tensor::Walk& walk, int i, const double* strides) const {
    tensor::Operand& operand = walk.operand[i];
    const double* begin = state_->scratch + 2 * i + 1;
    if (i > 0 && !has(i)) {  // a number: the same everywhere
      operand.dtype = DType::Float64;
      operand.is_number = true;
      operand.data = reinterpret_cast<char*>(const_cast<double*>(begin));
      std::fill_n(operand.strides, walk.rank, 0);
      return;
    }
    const tensor::Block& found = block(i);
    double lowest = *begin, highest = *begin;
    bool is_empty = false;
    for (int d = 0; d < walk.rank; d++) {
      operand.strides[d] = static_cast<ptrdiff_t>(strides[d]);
      const double reach = (static_cast<double>(walk.shape[d]) - 1) * strides[d];
      (reach < 0 ? lowest : highest) += reach;
      is_empty |= walk.shape[d] == 0;
    }
    if (!is_empty && !(lowest >= 0 && highest < static_cast<double>(found.count))) {
      throw std::out_of_range("kernel call: strides reach outside of operand " + std::to_string(i) +
                              ". This is a bug in @ringwise/tensor.");
    }
    operand.dtype = found.dtype;
    operand.data = static_cast<char*>(found.data);
    if (!is_empty) operand.data += static_cast<size_t>(*begin) * byte_size(found.dtype);
  }

  [[noreturn]] void wrong(size_t i, const char* expected) const {
    throw std::invalid_argument("kernel call: argument or operand " + std::to_string(i) + " is not " + expected +
                                ". This is a bug in @ringwise/tensor.");
  }
  napi_env env_;
  size_t count_ = kMostArguments;
  static constexpr size_t kMostArguments = 10;
  napi_value values_[kMostArguments];
  TensorState* state_;
};

/// Makes a Node-API callback of body(Call&), which returns nothing or whether it did it: the one place where C++
/// exceptions become JavaScript errors.
template <auto body>
napi_value entry(napi_env env, napi_callback_info info) {
  try {
    Call call(env, info);
    if constexpr (std::is_same_v<decltype(body(call)), bool>) {
      napi_value result = nullptr;
      napi_get_boolean(env, body(call), &result);
      return result;
    } else {
      body(call);
    }
  } catch (const std::bad_alloc&) {
    napi_throw_error(env, "ERR_TENSOR_KERNELS", "kernel call: not enough memory to work in.");
  } catch (const std::exception& error) {
    napi_throw_error(env, "ERR_TENSOR_KERNELS", error.what());
  }
  return nullptr;
}

/// The dtype of operand 0, where a kernel takes float32 and float64.
inline DType float_of(Call& call) { return call.block(0).dtype == DType::Float64 ? DType::Float64 : DType::Float32; }

/// The dtype of operand 0 as float_of has it; on a CUDA device halves too, which are computed in float32.
inline DType stored_in(Call& call) {
  const DType dtype = call.block(0).dtype;
  return is_half(dtype) && !call.is_on_host() ? dtype : float_of(call);
}

/// Adds one function to `exports`.
void define_function(napi_env env, napi_value exports, TensorState* state, const char* name, napi_callback callback);
/// Add the kernel functions to `exports`.
void define_optimizer(napi_env env, napi_value exports, TensorState* state);
void define_kernels(napi_env env, napi_value exports, TensorState* state);
void define_layers(napi_env env, napi_value exports, TensorState* state);
void define_nn_kernels(napi_env env, napi_value exports, TensorState* state);

}  // namespace ringwise::node
