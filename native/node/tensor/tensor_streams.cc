// Streams and events for JavaScript. A stream is named by its number on the device, 0 for the main one. An event is an
// object.
#include <cstdint>
#include <memory>

#include "node/tensor/tensor_cuda.h"
#include "node/tensor/tensor_guard.h"

namespace ringwise::node {

namespace {

using namespace tensor::cuda;

/// An event: a point in the order of a stream.
struct Mark {
  Device& device;
  Event event = nullptr;

  explicit Mark(Device& on) : device(on) { check(driver().cuEventCreate(&event, 0), "cuEventCreate"); }
  ~Mark() { driver().cuEventDestroy_v2(event); }
};

Mark& mark(const Napi::CallbackInfo& info, size_t i) {
  Mark& found = *info[i].As<Napi::External<Mark>>().Data();
  found.device.enter();
  return found;
}

/// (device) → number
Napi::Value make_stream(const Napi::CallbackInfo& info) {
  return guarded(
      info, [&] { return Napi::Number::New(info.Env(), entered(integer(info, 0)).make_stream()).As<Napi::Value>(); });
}

/// (device, stream): what this thread starts from now on runs there.
Napi::Value use_stream(const Napi::CallbackInfo& info) {
  return guarded(info, [&] {
    Device& device = entered(integer(info, 0));
    const int32_t number = integer(info, 1);
    activity_on(device.index()).stream = number == 0 ? WorkStream{} : device.stream_of(static_cast<uint32_t>(number));
    return info.Env().Undefined();
  });
}

/// (device, stream): waits for it.
Napi::Value synchronize_stream(const Napi::CallbackInfo& info) {
  return guarded(info, [&] {
    entered(integer(info, 0)).synchronize(static_cast<uint32_t>(integer(info, 1)));
    return info.Env().Undefined();
  });
}

/// (device, stream, event): what the stream gets from now on waits for the event.
Napi::Value wait_for_event(const Napi::CallbackInfo& info) {
  return guarded(info, [&] {
    const Event event = mark(info, 2).event;
    Device& device = entered(integer(info, 0));
    const Stream stream = device.stream_of(static_cast<uint32_t>(integer(info, 1))).handle;
    check(driver().cuStreamWaitEvent(stream, event, 0), "cuStreamWaitEvent");
    return info.Env().Undefined();
  });
}

/// (device, stream) → a promise, settled when all that the stream has been given has ended
Napi::Value stream_done(const Napi::CallbackInfo& info) {
  return guarded(info, [&] {
    const Napi::Env env = info.Env();
    Device& device = entered(integer(info, 0));
    const Stream stream = device.stream_of(static_cast<uint32_t>(integer(info, 1))).handle;
    const auto deferred = Napi::Promise::Deferred::New(env);
    auto settled = [deferred, &device](Napi::Env in, int status) { settle(deferred, device, status, in.Undefined()); };
    using Done = Ring<decltype(settled)>;
    auto* ring = new Done(env, std::move(settled));
    try {
      Device::call_back(stream, &Done::ring, ring);
    } catch (...) {
      ring->drop();
      throw;
    }
    return static_cast<Napi::Value>(deferred.Promise());
  });
}

/// (device, stream) → the CUstream, for other libraries
Napi::Value stream_address(const Napi::CallbackInfo& info) {
  return guarded(info, [&] {
    const Stream stream = entered(integer(info, 0)).stream_of(static_cast<uint32_t>(integer(info, 1))).handle;
    return Napi::BigInt::New(info.Env(), static_cast<uint64_t>(reinterpret_cast<uintptr_t>(stream))).As<Napi::Value>();
  });
}

/// (device) → event
Napi::Value make_event(const Napi::CallbackInfo& info) {
  return guarded(info, [&] {
    auto made = std::make_unique<Mark>(entered(integer(info, 0)));
    const auto event = Napi::External<Mark>::New(info.Env(), made.get(), [](Napi::Env, Mark* old) { delete old; });
    made.release();
    return event.As<Napi::Value>();
  });
}

/// (event, stream)
Napi::Value record_event(const Napi::CallbackInfo& info) {
  return guarded(info, [&] {
    const Mark& at = mark(info, 0);
    check(driver().cuEventRecord(at.event, at.device.stream_of(static_cast<uint32_t>(integer(info, 1))).handle),
          "cuEventRecord");
    return info.Env().Undefined();
  });
}

/// (event) → whether it has been reached
Napi::Value query_event(const Napi::CallbackInfo& info) {
  return guarded(info, [&] {
    const int status = driver().cuEventQuery(mark(info, 0).event);
    if (status != kNotReady) check(status, "cuEventQuery");
    return Napi::Boolean::New(info.Env(), status == kSuccess).As<Napi::Value>();
  });
}

/// (event): waits for it.
Napi::Value synchronize_event(const Napi::CallbackInfo& info) {
  return guarded(info, [&] {
    const Mark& at = mark(info, 0);
    check(driver().cuEventSynchronize(at.event), "cuEventSynchronize");
    at.device.check_fault();
    return info.Env().Undefined();
  });
}

/// (event, later event) → milliseconds between them
Napi::Value elapsed(const Napi::CallbackInfo& info) {
  return guarded(info, [&] {
    float milliseconds = 0;
    check(driver().cuEventElapsedTime(&milliseconds, mark(info, 0).event, mark(info, 1).event), "cuEventElapsedTime");
    return Napi::Number::New(info.Env(), milliseconds).As<Napi::Value>();
  });
}

}  // namespace

void define_streams(Napi::Env env, Napi::Object exports, TensorState* state) {
  const auto define = [&](const char* name, Napi::Value (*function)(const Napi::CallbackInfo&)) {
    exports.Set(name, Napi::Function::New(env, function, name, state));
  };
  define("cudaMakeStream", &make_stream);
  define("cudaUseStream", &use_stream);
  define("cudaStreamSynchronize", &synchronize_stream);
  define("cudaStreamWait", &wait_for_event);
  define("cudaStreamDone", &stream_done);
  define("cudaStreamAddress", &stream_address);
  define("cudaMakeEvent", &make_event);
  define("cudaEventRecord", &record_event);
  define("cudaEventQuery", &query_event);
  define("cudaEventSynchronize", &synchronize_event);
  define("cudaEventElapsed", &elapsed);
}

}  // namespace ringwise::node
