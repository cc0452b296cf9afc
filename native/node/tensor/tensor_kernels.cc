// The declared kernels as JavaScript calls them; native/generate writes the functions.
#include "node/tensor/declared_calls.h"

namespace ringwise::node {

void define_function(napi_env env, napi_value exports, TensorState* state, const char* name, napi_callback callback) {
  napi_value function;
  if (napi_create_function(env, name, NAPI_AUTO_LENGTH, callback, state, &function) != napi_ok ||
      napi_set_named_property(env, exports, name, function) != napi_ok) {
    throw Napi::Error::New(env);
  }
}

void define_kernels(napi_env env, napi_value exports, TensorState* state) {
  define_declared(
      [&](const char* name, napi_callback callback) { define_function(env, exports, state, name, callback); });
}

}  // namespace ringwise::node
