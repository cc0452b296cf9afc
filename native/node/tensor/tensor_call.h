// One call from JavaScript into a kernel, by the plain Node-API: it costs about 60 ns and 10 ns an argument, where the
// object wrappers would cost several times that. Operands, shapes, strides and attributes come in the scratch array
// (tensor_state.h), which packages/tensor/src/backends/native writes. Sizes are checked against the memory that the
// handles name, because a wrong one would corrupt memory far away from its cause.
#pragma once

#include <node_api.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <new>
#include <stdexcept>
#include <string>

#include "node/tensor/tensor_codes.h"
#include "node/tensor/tensor_state.h"
#include "tensor/cuda/device/captured_step.h"
#include "tensor/cuda/device/device.h"
#include "tensor/cuda/launch/kernels.h"

namespace ringwise::node {

/// Returns a product of sizes, or the largest value, which exceeds all memory, if it does not fit.
template <class... Sizes>
size_t product(size_t first, Sizes... rest) {
  size_t result = first;
  const auto multiply = [&](size_t size) {
    if (__builtin_mul_overflow(result, size, &result)) result = SIZE_MAX;
  };
  (multiply(rest), ...);
  return ((rest == 0) || ...) ? 0 : result;
}
/// Returns a sum of sizes, or the largest value if it does not fit.
inline size_t sum(size_t a, size_t b) {
  size_t result;
  return __builtin_add_overflow(a, b, &result) ? SIZE_MAX : result;
}

class Call {
 public:
  Call(napi_env env, napi_callback_info info) : env_(env) {
    void* data = nullptr;
    napi_get_cb_info(env, info, &count_, values_, nullptr, &data);
    state_ = static_cast<TensorState*>(data);
  }

  /// Returns the kernels of the device of operand 0, which the calling thread enters.
  const tensor::Kernels& kernels() const { return kernels_on(device_of(0)); }
  const tensor::Kernels& kernels_on(int device) const {
    if (device < 0) return *state_->kernels;
    tensor::cuda::Device::get(device).enter();
    return tensor::cuda::kernels();
  }
  /// Returns whether the operands are in host memory.
  bool is_on_host() const { return device_of(0) < 0; }

  // Attributes: numbers in the scratch array.
  double number(size_t i) const { return state_->scratch[kNumbersAt + i]; }
  /// Returns the least integer for a number beyond int64: it stands for a label that cannot occur.
  int64_t integer(size_t i) const {
    const double value = number(i);
    return std::abs(value) < 0x1p63 ? static_cast<int64_t>(value) : std::numeric_limits<int64_t>::min();
  }
  size_t size(size_t i) const {
    const double value = number(i);
    if (!(value >= 0 && value <= 0x1p53)) wrong(i, "a size");
    return static_cast<size_t>(value);
  }
  bool flag(size_t i) const { return number(i) != 0; }
  /// Returns a number below `count`.
  int choice(size_t i, int count) const {
    const auto value = static_cast<int>(number(i));
    if (value < 0 || value >= count) wrong(i, "a known operation");
    return value;
  }
  /// Returns a dtype, by its number in base/dtype.h.
  DType dtype(size_t i) const { return static_cast<DType>(static_cast<int>(number(i))); }
  int between(size_t i, int least, int most) const { return std::clamp(static_cast<int>(number(i)), least, most); }
  /// Reads three numbers: seed, offset, and the index at which a captured step keeps these for a run, or -1.
  tensor::Stream stream(size_t i) const {
    const double seed = number(i), offset = number(i + 1), live = number(i + 2);
    if (!(seed >= 0) || !(offset >= 0)) wrong(i, "a stream");
    const int device = block(0).device;
    const auto* step = live >= 0 && device >= 0 ? tensor::cuda::step_being_captured(device) : nullptr;
    return {static_cast<uint64_t>(seed), static_cast<uint64_t>(offset),
            step ? step->address(static_cast<size_t>(live)) : nullptr};
  }

  // Arguments, for calls that have some.
  double argument(size_t i) const {
    double value;
    if (i >= count_ || napi_get_value_double(env_, values_[i], &value) != napi_ok) wrong(i, "a number");
    return value;
  }
  size_t size_argument(size_t i) const {
    const double value = argument(i);
    if (!(value >= 0 && value <= 0x1p53)) wrong(i, "a size");
    return static_cast<size_t>(value);
  }

  // The main dtype of a call: that of operand 0.
  DType any_dtype() const { return block(0).dtype; }
  /// Returns float64 if operand 0 has it, else float32; reading operand 0 then throws unless it has that dtype.
  DType float_dtype() const { return any_dtype() == DType::Float64 ? DType::Float64 : DType::Float32; }
  /// Does the same, and on a CUDA device also returns halves, which are computed in float32.
  DType stored_dtype() const {
    const DType dtype = any_dtype();
    return is_half(dtype) && !is_on_host() ? dtype : float_dtype();
  }
  /// Returns the dtype of operand i, which has labels: int32 or int64.
  DType label_dtype(size_t i) const { return block(i).dtype == DType::Int32 ? DType::Int32 : DType::Int64; }

  /// Returns whether operand i is memory. Otherwise it is a number, or absent.
  bool has(size_t i) const { return handle(i) != 0; }
  /// Returns the memory of operand i. Throws if it lies on another device than operand 0.
  const tensor::Block& block(size_t i) const {
    const tensor::Block& block = block_of(handle(i));
    if (handle(0) != 0 && block.device != device_of(0)) throw_different_devices(block.device, device_of(0));
    return block;
  }
  const tensor::Block& block_of(int32_t handle) const {
    const tensor::Block* block = state_->blocks.find(handle);
    if (block == nullptr)
      throw std::invalid_argument("kernel call: a handle names no memory in use. This is a bug in @ringwise/tensor.");
    if (block->device >= 0) tensor::cuda::touch(*block);
    return *block;
  }
  /// Returns operand i, which is a number.
  double value(size_t i) const { return state_->scratch[2 * i + 1]; }
  /// Returns the address of operand i. Throws unless it has `count` dense elements of this dtype.
  void* dense(size_t i, DType dtype, size_t count) const {
    block(i);
    return dense_at(handle(i), state_->scratch[2 * i + 1], dtype, count);
  }
  /// Returns the address of element `begin`. Throws unless `count` elements of this dtype follow.
  void* dense_at(int32_t handle, double begin, DType dtype, size_t count) const {
    const tensor::Block& found = block_of(handle);
    if (found.dtype != dtype) {
      throw std::invalid_argument(std::string("kernel call: expected memory of ") + name_of(dtype) + ", got " +
                                  name_of(found.dtype) + ". This is a bug in @ringwise/tensor.");
    }
    if (!(begin >= 0) || begin + static_cast<double>(count) > static_cast<double>(found.count)) {
      throw std::out_of_range("kernel call: an operand is too small; expected at least " + std::to_string(count) +
                              " elements after its offset, got " + std::to_string(found.count) +
                              " in all. This is a bug in @ringwise/tensor.");
    }
    return static_cast<char*>(found.data) + static_cast<size_t>(begin) * byte_size(dtype);
  }
  float* floats(size_t i, size_t count) const { return static_cast<float*>(dense(i, DType::Float32, count)); }
  int64_t* indices(size_t i, size_t count) const { return static_cast<int64_t*>(dense(i, DType::Int64, count)); }

  /// Returns argument i, a Float64Array with at least `count` numbers.
  const double* numbers(size_t i, size_t count) const {
    napi_typedarray_type type = napi_uint8_array;
    size_t length = 0;
    void* data = nullptr;
    const bool is_array =
        i < count_ && napi_get_typedarray_info(env_, values_[i], &type, &length, &data, nullptr, nullptr) == napi_ok;
    if (!is_array || type != napi_float64_array || length < count) wrong(i, "a table of numbers");
    return static_cast<const double*>(data);
  }

  /// Returns operand i as rows of this shape. Throws if their last stride is above 1.
  tensor::HeadRows heads(size_t i, DType dtype, std::initializer_list<size_t> shape) const {
    const Placed at = placed(i, dtype, shape);
    if (at.strides[3] > 1)
      throw std::invalid_argument("attention: rows are not dense. This is a bug in @ringwise/tensor.");
    return {at.data, at.strides[0], at.strides[1], at.strides[2]};
  }
  /// Returns operand i, which may be absent, as a mask of this shape, of bool or of the main dtype.
  tensor::AttentionMask mask(size_t i, DType dtype, std::initializer_list<size_t> shape) const {
    tensor::AttentionMask mask;
    if (!has(i)) return mask;
    mask.dtype = block(i).dtype == DType::Bool ? DType::Bool : dtype;
    const Placed at = placed(i, mask.dtype, shape);
    mask.data = at.data;
    mask.batch = at.strides[0];
    mask.head = at.strides[1];
    mask.row = at.strides[2];
    mask.col = at.strides[3];
    return mask;
  }

  /// Throws the error of operands on two devices.
  [[noreturn]] void throw_different_devices(int device, int other) const {
    throw std::invalid_argument("kernel call: expected memory on one device, got " +
                                tensor::cuda::name_of_device(device) + " and " + tensor::cuda::name_of_device(other) +
                                ". Move one with to().");
  }

  /// Returns a walk over the first `operands` operands in the shape of the scratch array. Throws if strides leave
  /// memory.
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
  struct Placed {
    char* data;
    ptrdiff_t strides[4];
  };
  /// Returns operand i as four dimensions of this shape. Throws if they leave its memory.
  Placed placed(size_t i, DType dtype, std::initializer_list<size_t> shape) const {
    Placed result{};
    if (std::count(shape.begin(), shape.end(), 0u) > 0) return result;  // never touched
    size_t reach = 1, d = 0;
    for (const size_t size : shape) {
      const double stride = state_->scratch[kRowStridesAt + 4 * i + d];
      if (!(stride >= 0)) wrong(i, "rows with strides of at least 0");
      result.strides[d++] = static_cast<ptrdiff_t>(stride);
      reach = sum(reach, product(size - 1, static_cast<size_t>(stride)));
    }
    result.data = static_cast<char*>(dense(i, dtype, reach));
    return result;
  }

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

/// Makes a Node-API callback of body(Call&), and turns C++ exceptions into JavaScript errors.
template <auto body>
napi_value entry(napi_env env, napi_callback_info info) {
  try {
    Call call(env, info);
    body(call);
  } catch (const tensor::cuda::OutOfMemory& cause) {
    napi_throw_error(env, "ERR_TENSOR_MEMORY", cause.what());
  } catch (const std::bad_alloc&) {
    napi_throw_error(env, "ERR_TENSOR_MEMORY", "kernel call: not enough memory of the host to work in.");
  } catch (const cuda::CudaError& error) {
    napi_throw_error(env, code_of(error), error.what());
  } catch (const std::exception& error) {
    napi_throw_error(env, "ERR_TENSOR_KERNELS", error.what());
  }
  return nullptr;
}

/// Returns the computing dtype of a stored one, which sums and the numbers of a row have.
inline DType computed_in(DType stored) { return is_half(stored) ? DType::Float32 : stored; }

/// Adds one function to `exports`.
void define_function(napi_env env, napi_value exports, TensorState* state, const char* name, napi_callback callback);
/// Add the kernel functions to `exports`.
void define_optimizer(napi_env env, napi_value exports, TensorState* state);
void define_kernels(napi_env env, napi_value exports, TensorState* state);

}  // namespace ringwise::node
