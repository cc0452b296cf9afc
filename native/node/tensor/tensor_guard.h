// Shared by the functions of devices: turns exceptions into JavaScript errors with codes, and calls back on the
// JavaScript thread when a stream has reached a point.
#pragma once

#include <napi.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include "node/bell.h"
#include "node/tensor/tensor_codes.h"
#include "tensor/cuda/device/device.h"

namespace ringwise::node {

inline Napi::Error failure(Napi::Env env, const char* code, const char* message) {
  Napi::Error result = Napi::Error::New(env, message);
  result.Set("code", Napi::String::New(env, code));
  return result;
}

/// Throws exceptions of the library as JavaScript errors; those of Node-API pass unchanged.
template <class Body>
Napi::Value guarded(const Napi::CallbackInfo& info, Body body) {
  try {
    return body();
  } catch (const Napi::Error&) {
    throw;
  } catch (const tensor::cuda::OutOfMemory& cause) {
    throw failure(info.Env(), "ERR_TENSOR_MEMORY", cause.what());
  } catch (const cuda::CudaError& cause) {
    throw failure(info.Env(), code_of(cause), cause.what());
  } catch (const std::out_of_range& cause) {
    throw failure(info.Env(), "ERR_TENSOR_ARGUMENT", cause.what());
  } catch (const std::exception& cause) {
    throw failure(info.Env(), "ERR_TENSOR_KERNELS", cause.what());
  }
}

inline int32_t integer(const Napi::CallbackInfo& info, size_t i) { return info[i].As<Napi::Number>().Int32Value(); }

/// Returns the device, and makes its context current on this thread.
inline tensor::cuda::Device& entered(int index) {
  tensor::cuda::Device& device = tensor::cuda::Device::get(index);
  device.enter();
  return device;
}

/// Settles `deferred` when a stream has reached the awaited point: with `value`, or with the error of a kernel or of
/// the device. `status` is the driver's.
inline void settle(const Napi::Promise::Deferred& deferred, tensor::cuda::Device& device, int status,
                   const Napi::Value& value) {
  try {
    tensor::cuda::check(status, "cuda: what was started earlier has failed");
    device.check_fault();
    deferred.Resolve(value);
  } catch (const std::out_of_range& fault) {
    deferred.Reject(failure(deferred.Env(), "ERR_TENSOR_ARGUMENT", fault.what()).Value());
  } catch (const tensor::cuda::CudaError& error) {
    deferred.Reject(failure(deferred.Env(), "ERR_TENSOR_KERNELS", error.what()).Value());
  }
}

/// Calls settle(env, status) when a stream has reached a point, or its device has failed. The driver's thread only
/// calls `ring`; `settle` runs on the JavaScript thread.
template <class Settle>
class Ring {
 public:
  /// Keeps `memory` until the stream has reached the point, even if the environment ends before that.
  Ring(Napi::Env env, Settle settle, std::shared_ptr<void> memory = nullptr)
      : settle_(std::move(settle)), memory_(std::move(memory)) {
    bell_ = Bell::make(env, nullptr, &Ring::rung, [this] { settle_.reset(); });
  }
  static void ring(tensor::cuda::Stream, int status, void* data) {
    auto* self = static_cast<Ring*>(data);
    self->status_ = status;
    const std::shared_ptr<Bell> bell = self->bell_;
    if (!bell->ring(self)) delete self;
  }
  /// Deletes an object that will never ring.
  void drop() {
    bell_->close();
    delete this;
  }

 private:
  static void rung(napi_env env, napi_value, void*, void* data) {
    const std::unique_ptr<Ring> self(static_cast<Ring*>(data));
    if (env == nullptr || !self->settle_) return;
    self->bell_->close();
    try {
      (*self->settle_)(Napi::Env(env), self->status_);
    } catch (const Napi::Error&) {  // the environment is about to end
    }
  }

  std::optional<Settle> settle_;  // JavaScript thread; empty once its environment has ended
  std::shared_ptr<void> memory_;  // released by the thread that deletes this object
  int status_ = 0;                // written by the driver's thread before it rings
  std::shared_ptr<Bell> bell_;
};

}  // namespace ringwise::node
