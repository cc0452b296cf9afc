// Exports coll/device/device_lane.h to JavaScript. All functions run on the JavaScript thread, except `ring`.
#include "node/coll/coll_device.h"

#include <cstdint>
#include <memory>
#include <stdexcept>

#include "base/time/clock.h"
#include "coll/device/device_lane.h"
#include "node/bell.h"

namespace ringwise::node {

namespace {

constexpr int64_t kLeavingNs = 5'000 * kMillisecond;

/// One call of land(), which the driver's thread passes to the JavaScript thread when the copies have reached the slot.
struct Landing {
  std::shared_ptr<Bell> bell;
  double id;
};

class DeviceLane final : public Napi::ObjectWrap<DeviceLane> {
 public:
  static Napi::Function define(Napi::Env env) {
    return DefineClass(env, "DeviceLane",
                       {InstanceMethod("follow", &DeviceLane::guarded<&DeviceLane::follow>),
                        InstanceMethod("begin", &DeviceLane::guarded<&DeviceLane::begin>),
                        InstanceMethod("down", &DeviceLane::guarded<&DeviceLane::down>),
                        InstanceMethod("land", &DeviceLane::guarded<&DeviceLane::land>),
                        InstanceMethod("rest", &DeviceLane::guarded<&DeviceLane::rest>),
                        InstanceMethod("awaitLanding", &DeviceLane::guarded<&DeviceLane::await_landing>),
                        InstanceMethod("up", &DeviceLane::guarded<&DeviceLane::up>),
                        InstanceMethod("end", &DeviceLane::guarded<&DeviceLane::end>),
                        InstanceMethod("lead", &DeviceLane::guarded<&DeviceLane::lead>),
                        InstanceMethod("close", &DeviceLane::guarded<&DeviceLane::close>),
                        InstanceAccessor<&DeviceLane::is_registered>("isRegistered")});
  }

  /// (device, memory: Uint8Array, slots, onLanding: (id) => void)
  explicit DeviceLane(const Napi::CallbackInfo& info) : ObjectWrap(info) {
    const Napi::Env env = info.Env();
    auto memory = info[1].As<Napi::Uint8Array>();
    try {
      lane_ = std::make_unique<coll::DeviceLane>(info[0].ToNumber().Int32Value(), memory.Data(), memory.ByteLength(),
                                                 info[2].ToNumber().Uint32Value());
    } catch (const std::exception& error) {
      throw device_error(env, error);
    }
    is_registered_ = lane_->is_registered();
    memory_ = Napi::Persistent(memory.As<Napi::Object>());
    bell_ = Bell::make(env, info[3], &DeviceLane::landed);
    bell_->keep_loop(false);
    napi_add_env_cleanup_hook(env, &DeviceLane::on_environment_end, this);
  }

  ~DeviceLane() override { leave(); }

 private:
  template <void (DeviceLane::*method)(const Napi::CallbackInfo&)>
  void guarded(const Napi::CallbackInfo& info) {
    try {
      if (!lane_) throw std::logic_error("the lane of the device is closed");
      (this->*method)(info);
    } catch (const Napi::Error&) {
      throw;
    } catch (const std::exception& error) {
      throw device_error(info.Env(), error);
    }
  }

  /// Returns an error whose code tells JavaScript that the device or its driver is the cause.
  static Napi::Error device_error(Napi::Env env, const std::exception& cause) {
    Napi::Error error = Napi::Error::New(env, cause.what());
    error.Set("code", Napi::String::New(env, "CUDA"));
    return error;
  }

  static uint64_t big(const Napi::Value& value) {
    bool is_exact = false;
    return value.As<Napi::BigInt>().Uint64Value(&is_exact);
  }
  static cuda::Stream stream(const Napi::Value& value) {
    return reinterpret_cast<cuda::Stream>(static_cast<uintptr_t>(big(value)));
  }
  static size_t size(const Napi::Value& value) { return static_cast<size_t>(value.ToNumber().Int64Value()); }

  void follow(const Napi::CallbackInfo& info) { lane_->follow(stream(info[0])); }

  void begin(const Napi::CallbackInfo& info) { lane_->begin(size(info[0])); }

  /// (slot, offset in it, address, bytes)
  void down(const Napi::CallbackInfo& info) { lane_->down(size(info[0]), size(info[1]), big(info[2]), size(info[3])); }

  /// (slot, id): calls onLanding(id) when all copies down have reached the slot or the device has failed, which
  /// awaitLanding tells. Keeps the event loop alive until rest().
  void land(const Napi::CallbackInfo& info) {
    auto landing = std::make_unique<Landing>(bell_, info[1].ToNumber().DoubleValue());
    lane_->land(size(info[0]), &DeviceLane::ring, landing.get());
    landing.release();
    bell_->keep_loop(true);
  }

  static void ring(cuda::Stream, int, void* data) {
    std::unique_ptr<Landing> landing(static_cast<Landing*>(data));
    const std::shared_ptr<Bell> bell = landing->bell;
    if (bell->ring(landing.get())) landing.release();
  }

  static void landed(napi_env env, napi_value on_landing, void*, void* data) {
    const std::unique_ptr<Landing> landing(static_cast<Landing*>(data));
    napi_value self, argument;
    // Napi's Call() would throw here, outside of any JavaScript call, when the environment is about to end.
    if (env != nullptr && napi_get_undefined(env, &self) == napi_ok &&
        napi_create_double(env, landing->id, &argument) == napi_ok) {
      napi_call_function(env, self, on_landing, 1, &argument, nullptr);
    }
  }

  /// Lets the event loop end while no landing is awaited.
  void rest(const Napi::CallbackInfo&) { bell_->keep_loop(false); }

  void await_landing(const Napi::CallbackInfo& info) { lane_->await_landing(size(info[0])); }

  /// (slot, offset in it, address, bytes)
  void up(const Napi::CallbackInfo& info) { lane_->up(size(info[0]), size(info[1]), big(info[2]), size(info[3])); }

  void end(const Napi::CallbackInfo& info) { lane_->end(size(info[0])); }

  void lead(const Napi::CallbackInfo& info) { lane_->lead(stream(info[0])); }

  void close(const Napi::CallbackInfo&) { leave(); }

  static void on_environment_end(void* self) { static_cast<DeviceLane*>(self)->leave(); }

  /// Releases the memory once the device no longer uses it. If that takes longer than kLeavingNs, leaks the lane and
  /// its memory instead of blocking this thread.
  void leave() {
    if (!lane_) return;
    napi_remove_env_cleanup_hook(this->Env(), &DeviceLane::on_environment_end, this);
    bell_->close();
    if (lane_->leave(kLeavingNs)) {
      lane_.reset();
      memory_.Reset();
    } else {
      static_cast<void>(lane_.release());
      memory_.SuppressDestruct();
    }
  }

  Napi::Value is_registered(const Napi::CallbackInfo& info) { return Napi::Boolean::New(info.Env(), is_registered_); }

  std::unique_ptr<coll::DeviceLane> lane_;  // null once closed
  Napi::ObjectReference memory_;            // keeps the memory of the slots alive
  bool is_registered_ = false;
  std::shared_ptr<Bell> bell_;
};

}  // namespace

Napi::Function define_device_lane(Napi::Env env) { return DeviceLane::define(env); }

}  // namespace ringwise::node
