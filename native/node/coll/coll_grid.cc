#define NODE_ADDON_API_CPP_EXCEPTIONS_ALL  // converts std::exception to JavaScript errors too
#include "node/coll/coll_grid.h"

#include "coll/reduce/grid.h"

namespace ringwise::node {

namespace {

DType dtype_of(const Napi::CallbackInfo& info) { return static_cast<DType>(info[0].ToNumber().Int32Value()); }

template <class T>
T* memory(const Napi::CallbackInfo& info, size_t index) {
  void* data = nullptr;
  napi_get_typedarray_info(info.Env(), info[index], nullptr, nullptr, &data, nullptr, nullptr);
  return static_cast<T*>(data);
}

size_t length(const Napi::CallbackInfo& info, size_t index) {
  return info[index].As<Napi::TypedArray>().ElementLength();
}

/// (dtype, input, exponents)
void raise(const Napi::CallbackInfo& info) {
  coll::grid_kernels().raise(dtype_of(info), memory<std::byte>(info, 1), memory<void>(info, 2), length(info, 2));
}

/// (dtype, input, exponents, words)
void add(const Napi::CallbackInfo& info) {
  coll::grid_kernels().add(dtype_of(info), memory<std::byte>(info, 1), memory<void>(info, 2), memory<int64_t>(info, 3),
                           length(info, 2));
}

/// (dtype, words, exponents, addends, divisor, output)
void finish(const Napi::CallbackInfo& info) {
  coll::grid_kernels().finish(dtype_of(info), memory<int64_t>(info, 1), memory<void>(info, 2),
                              info[3].ToNumber().Int64Value(), info[4].ToNumber().DoubleValue(),
                              memory<std::byte>(info, 5), length(info, 2));
}

}  // namespace

Napi::Object define_grid(Napi::Env env) {
  auto grid = Napi::Object::New(env);
  grid.Set("raise", Napi::Function::New<raise>(env, "raise"));
  grid.Set("add", Napi::Function::New<add>(env, "add"));
  grid.Set("finish", Napi::Function::New<finish>(env, "finish"));
  return grid;
}

}  // namespace ringwise::node
