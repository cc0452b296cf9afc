// One call from JavaScript into a kernel, by the plain Node-API: it costs about 10 ns and 3 ns an argument, where the
// object wrappers would cost several times that. Arguments are numbers from backends/native.ts. Sizes are checked
// against the memory that the handles name, because a wrong one would corrupt memory far away from its cause.
#pragma once

#include <node_api.h>

#include <cstdint>
#include <new>
#include <stdexcept>
#include <string>

#include "node/tensor_state.h"

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

  const tensor::Kernels& kernels() const { return *state_->kernels; }

  double number(size_t i) const {
    double value;
    if (i >= count_ || napi_get_value_double(env_, values_[i], &value) != napi_ok) wrong(i, "a number");
    return value;
  }
  int32_t integer(size_t i) const {
    int32_t value;
    if (i >= count_ || napi_get_value_int32(env_, values_[i], &value) != napi_ok) wrong(i, "an integer");
    return value;
  }
  size_t size(size_t i) const {
    int64_t value;
    if (i >= count_ || napi_get_value_int64(env_, values_[i], &value) != napi_ok || value < 0) wrong(i, "a size");
    return static_cast<size_t>(value);
  }
  bool flag(size_t i) const { return integer(i) != 0; }

  /// The memory that argument i names.
  const tensor::Block& block(size_t i) const {
    const tensor::Block* block = state_->blocks.find(integer(i));
    if (block == nullptr) wrong(i, "memory in use");
    return *block;
  }
  /// Its data, which must be `count` elements at least, of this type.
  float* floats(size_t i, size_t count) const { return static_cast<float*>(data(i, DType::Float32, count)); }
  void* data(size_t i, DType dtype, size_t count) const {
    const tensor::Block& found = block(i);
    if (found.dtype != dtype) wrong(i, name_of(dtype));
    if (count > found.count) throw std::out_of_range(too_small(i, count, found.count));
    return found.data;
  }

  /// Labels, one per row, in either integer type.
  const tensor::Block& labels(size_t i, size_t rows) const {
    const tensor::Block& found = block(i);
    data(i, found.dtype == DType::Int32 ? DType::Int32 : DType::Int64, rows);
    return found;
  }

  /// Reads rank, shape and the strides of N inputs from the scratch array.
  template <int N>
  tensor::Walk<N> walk() const {
    tensor::Walk<N> walk;
    const double* next = state_->scratch;
    walk.rank = static_cast<int>(*next++);
    if (walk.rank < 0 || walk.rank > tensor::kMaxRank) {
      throw std::out_of_range("kernel call: expected at most " + std::to_string(tensor::kMaxRank) +
                              " dimensions, got " + std::to_string(walk.rank) + ".");
    }
    for (int d = 0; d < walk.rank; d++) walk.shape[d] = static_cast<size_t>(*next++);
    for (int i = 0; i < N; i++) {
      for (int d = 0; d < walk.rank; d++) walk.strides[i][d] = static_cast<ptrdiff_t>(*next++);
    }
    return walk;
  }

 private:
  [[noreturn]] void wrong(size_t i, const char* expected) const {
    throw std::invalid_argument("kernel call: argument " + std::to_string(i) + " is not " + expected +
                                ". This is a bug in @ringwise/tensor.");
  }
  static std::string too_small(size_t i, size_t expected, size_t got) {
    return "kernel call: argument " + std::to_string(i) + " is too small; expected at least " +
           std::to_string(expected) + " elements, got " + std::to_string(got) + ". This is a bug in @ringwise/tensor.";
  }

  napi_env env_;
  size_t count_ = kMostArguments;
  static constexpr size_t kMostArguments = 10;
  napi_value values_[kMostArguments];
  TensorState* state_;
};

/// Makes a Node-API callback of body(Call&): the one place where C++ exceptions become JavaScript errors.
template <void (*body)(Call&)>
napi_value entry(napi_env env, napi_callback_info info) {
  try {
    Call call(env, info);
    body(call);
  } catch (const std::bad_alloc&) {
    napi_throw_error(env, "ERR_TENSOR_KERNELS", "kernel call: not enough memory to work in.");
  } catch (const std::exception& error) {
    napi_throw_error(env, "ERR_TENSOR_KERNELS", error.what());
  }
  return nullptr;
}

/// Adds the kernel functions to `exports`.
void define_kernels(napi_env env, napi_value exports, TensorState* state);

}  // namespace ringwise::node
