// Captured steps for JavaScript (tensor/cuda/device/captured_step.h). A step is an object; it belongs to one device.
#include <memory>
#include <vector>

#include "node/tensor/tensor_cuda.h"
#include "node/tensor/tensor_guard.h"
#include "tensor/cuda/device/captured_step.h"
#include "tensor/cuda/launch/optimizer.h"

namespace ringwise::node {

namespace {

using namespace tensor::cuda;

struct Holder {
  Device& device;
  std::unique_ptr<CapturedStep> step;
};

CapturedStep& step_of(const Napi::CallbackInfo& info) {
  const Holder& holder = *info[0].As<Napi::External<Holder>>().Data();
  if (!holder.step) throw std::runtime_error("compile: the step has been disposed.");
  holder.device.enter();
  return *holder.step;
}

/// (device) → step
Napi::Value make(const Napi::CallbackInfo& info) {
  return guarded(info, [&] {
    Device& device = entered(integer(info, 0));
    auto made = std::make_unique<Holder>(device, std::make_unique<CapturedStep>(device));
    const auto result = Napi::External<Holder>::New(info.Env(), made.get(), [](Napi::Env, Holder* old) { delete old; });
    made.release();
    return result.As<Napi::Value>();
  });
}

/// (step)
Napi::Value dispose(const Napi::CallbackInfo& info) {
  return guarded(info, [&] {
    step_of(info);
    info[0].As<Napi::External<Holder>>().Data()->step.reset();
    return info.Env().Undefined();
  });
}

/// (step)
template <void (CapturedStep::*method)()>
Napi::Value call(const Napi::CallbackInfo& info) {
  return guarded(info, [&] {
    (step_of(info).*method)();
    return info.Env().Undefined();
  });
}

/// (step) → the CUstream that is captured
Napi::Value stream(const Napi::CallbackInfo& info) {
  return guarded(info, [&] {
    const auto address = reinterpret_cast<uintptr_t>(step_of(info).stream());
    return Napi::BigInt::New(info.Env(), static_cast<uint64_t>(address)).As<Napi::Value>();
  });
}

/// (step, numbers) → the position of the first one
Napi::Value put(const Napi::CallbackInfo& info) {
  return guarded(info, [&] {
    const auto numbers = info[1].As<Napi::Float64Array>();
    const size_t position = step_of(info).put(numbers.Data(), numbers.ElementLength());
    return Napi::Number::New(info.Env(), static_cast<double>(position)).As<Napi::Value>();
  });
}

/// (step, steps of each tensor, lr, weight decay, momentum, smoothing, epsilon): puts the same numbers that optimize()
/// puts while it is captured.
Napi::Value put_optimizer(const Napi::CallbackInfo& info) {
  return guarded(info, [&] {
    const auto steps = info[1].As<Napi::Float64Array>();
    const auto number = [&](size_t i) { return info[i].As<Napi::Number>().DoubleValue(); };
    tensor::OptimizerRule rule;
    rule.lr = number(2);
    rule.weight_decay = number(3);
    rule.momentum = number(4);
    rule.smoothing = number(5);
    rule.epsilon = number(6);
    const std::vector<double> numbers = optimizer_numbers(rule, steps.Data(), steps.ElementLength());
    step_of(info).put(numbers.data(), numbers.size());
    return info.Env().Undefined();
  });
}

}  // namespace

void define_steps(Napi::Env env, Napi::Object exports, TensorState* state) {
  const auto define = [&](const char* name, Napi::Value (*function)(const Napi::CallbackInfo&)) {
    exports.Set(name, Napi::Function::New(env, function, name, state));
  };
  define("cudaMakeStep", &make);
  define("cudaStepDispose", &dispose);
  define("cudaStepEnter", &call<&CapturedStep::enter>);
  define("cudaStepLeave", &call<&CapturedStep::leave>);
  define("cudaStepBegin", &call<&CapturedStep::begin>);
  define("cudaStepEnd", &call<&CapturedStep::end>);
  define("cudaStepAbort", &call<&CapturedStep::abort>);
  define("cudaStepRewind", &call<&CapturedStep::rewind>);
  define("cudaStepLaunch", &call<&CapturedStep::launch>);
  define("cudaStepDrop", &call<&CapturedStep::drop>);
  define("cudaStepStream", &stream);
  define("cudaStepPut", &put);
  define("cudaStepPutOptimizer", &put_optimizer);
}

}  // namespace ringwise::node
