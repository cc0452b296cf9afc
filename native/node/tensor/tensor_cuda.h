// Device memory for JavaScript: the functions cuda… of NativeAddon in packages/tensor/src/backends/native/addon.ts.
#pragma once

#include <napi.h>

#include "node/tensor/tensor_state.h"

namespace ringwise::node {

/// Adds all these functions to `exports`; `state` must live as long as the environment.
void define_cuda(Napi::Env env, Napi::Object exports, TensorState* state);
/// Add a part of them; define_cuda() calls these.
void define_pinned(Napi::Env env, Napi::Object exports, TensorState* state);
void define_streams(Napi::Env env, Napi::Object exports, TensorState* state);
void define_steps(Napi::Env env, Napi::Object exports, TensorState* state);

}  // namespace ringwise::node
