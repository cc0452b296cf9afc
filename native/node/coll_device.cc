// The host backend's way to the memory of a CUDA device: two streams, one that brings pieces of device memory down to
// slots of host memory and one that takes them up again, so that both directions of the bus work at once. What runs
// between, on the slots, is up to JavaScript. Everything here runs on the JavaScript thread, except `ring`.
#include "node/coll_device.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/cuda_driver.h"
#include "node/bell.h"

namespace ringwise::node {

namespace {

using namespace cuda;

/// Makes a context the thread's own for a while. Others on this thread rely on theirs.
class Entered {
 public:
  explicit Entered(Context context) {
    check(driver().cuCtxGetCurrent(&before_), "cuCtxGetCurrent");
    check(driver().cuCtxSetCurrent(context), "cuCtxSetCurrent");
  }
  ~Entered() { driver().cuCtxSetCurrent(before_); }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;

 private:
  Context before_ = nullptr;
};

constexpr int64_t kLeavingNs = 5'000 * kMillisecond;

/// What the driver's thread is told, and hands on to the JavaScript thread.
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
    try {
      open(info[0].ToNumber().Int32Value(), info[1].As<Napi::Uint8Array>(), info[2].ToNumber().Uint32Value());
    } catch (const std::exception& error) {
      throw Napi::Error::New(env, error.what());
    }
    napi_add_env_cleanup_hook(env, &DeviceLane::on_environment_end, this);
    bell_ = Bell::make(env, info[3], &DeviceLane::landed);
    bell_->keep_loop(false);
  }

  ~DeviceLane() override { leave(); }

 private:
  struct Slot {
    Event down = nullptr, up = nullptr;
  };

  template <void (DeviceLane::*method)(const Napi::CallbackInfo&)>
  void guarded(const Napi::CallbackInfo& info) {
    try {
      if (!context_) throw std::logic_error("the lane of the device is closed");
      const Entered entered(context_);
      (this->*method)(info);
    } catch (const Napi::Error&) {
      throw;
    } catch (const std::exception& error) {
      throw Napi::Error::New(info.Env(), error.what());
    }
  }

  void open(int index, Napi::Uint8Array memory, uint32_t slots) {
    const Driver& d = driver();
    if (index < 0 || index >= d.device_count) {
      throw std::runtime_error("there is no such device; " +
                               (d.reason.empty() ? std::to_string(d.device_count) + " were found" : d.reason));
    }
    int device = 0;
    check(d.cuDeviceGet(&device, index), "cuDeviceGet");
    Context context = nullptr;
    check(d.cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    const Entered entered(context);
    memory_ = Napi::Persistent(memory.As<Napi::Object>());
    data_ = reinterpret_cast<char*>(memory.Data());
    bytes_ = memory.ByteLength();
    slot_bytes_ = bytes_ / slots;
    // Memory that cannot be registered is copied through memory of the driver: the same result, later.
    is_registered_ = d.cuMemHostRegister_v2(data_, bytes_, kHostPortable) == kSuccess;
    check(d.cuStreamCreate(&down_, kStreamNonBlocking), "cuStreamCreate");
    check(d.cuStreamCreate(&up_, kStreamNonBlocking), "cuStreamCreate");
    check(d.cuEventCreate(&order_, kEventDisableTiming), "cuEventCreate");
    slots_.resize(slots);
    for (Slot& slot : slots_) {
      check(d.cuEventCreate(&slot.down, kEventDisableTiming), "cuEventCreate");
      check(d.cuEventCreate(&slot.up, kEventDisableTiming), "cuEventCreate");
    }
    context_ = context;
  }

  static Stream stream(const Napi::Value& value) {
    bool is_exact = false;
    return reinterpret_cast<Stream>(static_cast<uintptr_t>(value.As<Napi::BigInt>().Uint64Value(&is_exact)));
  }

  Slot& slot(const Napi::CallbackInfo& info) { return slots_.at(info[0].ToNumber().Uint32Value()); }

  struct Copy {
    char* host;
    DevicePointer device;
    size_t bytes;
  };
  /// (slot, offset in it, address, bytes)
  Copy copy(const Napi::CallbackInfo& info) {
    const size_t index = info[0].ToNumber().Uint32Value();
    const auto offset = static_cast<size_t>(info[1].ToNumber().Int64Value());
    const auto bytes = static_cast<size_t>(info[3].ToNumber().Int64Value());
    bool is_exact = false;
    const uint64_t address = info[2].As<Napi::BigInt>().Uint64Value(&is_exact);
    if (index >= slots_.size() || offset > slot_bytes_ || bytes > slot_bytes_ - offset) throw std::out_of_range("a copy leaves its slot");
    return {data_ + index * slot_bytes_ + offset, address, bytes};
  }

  /// (stream): what comes down from now on is what that stream has been given to write.
  void follow(const Napi::CallbackInfo& info) {
    check(driver().cuEventRecord(order_, stream(info[0])), "cuEventRecord");
    check(driver().cuStreamWaitEvent(down_, order_, 0), "cuStreamWaitEvent");
    check(driver().cuStreamWaitEvent(up_, order_, 0), "cuStreamWaitEvent");
  }

  /// (slot): it is filled anew once what it held has gone up.
  void begin(const Napi::CallbackInfo& info) {
    check(driver().cuStreamWaitEvent(down_, slot(info).up, 0), "cuStreamWaitEvent");
  }

  void down(const Napi::CallbackInfo& info) {
    const Copy c = copy(info);
    check(driver().cuMemcpyDtoHAsync_v2(c.host, c.device, c.bytes, down_), "cuMemcpyDtoHAsync");
  }

  /// (slot, id): calls onLanding(id) when all that went down is there. The event loop lives on for it, until rest().
  void land(const Napi::CallbackInfo& info) {
    check(driver().cuEventRecord(slot(info).down, down_), "cuEventRecord");
    auto landing = std::make_unique<Landing>(bell_, info[1].ToNumber().DoubleValue());
    check(driver().cuLaunchHostFunc(down_, &DeviceLane::ring, landing.get()), "cuLaunchHostFunc");
    landing.release();
    bell_->keep_loop(true);
  }

  static void ring(void* data) {
    std::unique_ptr<Landing> landing(static_cast<Landing*>(data));
    const std::shared_ptr<Bell> bell = landing->bell;
    if (bell->ring(landing.get())) landing.release();
  }

  static void landed(napi_env env, napi_value on_landing, void*, void* data) {
    const std::unique_ptr<Landing> landing(static_cast<Landing*>(data));
    napi_value self, argument;
    // Not Napi's Call(), which throws here, outside of any call, when the environment is about to end.
    if (env != nullptr && napi_get_undefined(env, &self) == napi_ok && napi_create_double(env, landing->id, &argument) == napi_ok) {
      napi_call_function(env, self, on_landing, 1, &argument, nullptr);
    }
  }

  void rest(const Napi::CallbackInfo&) { bell_->keep_loop(false); }

  /// (slot): blocks until all that went down is there.
  void await_landing(const Napi::CallbackInfo& info) { check(driver().cuEventSynchronize(slot(info).down), "cuEventSynchronize"); }

  void up(const Napi::CallbackInfo& info) {
    const Copy c = copy(info);
    check(driver().cuMemcpyHtoDAsync_v2(c.device, c.host, c.bytes, up_), "cuMemcpyHtoDAsync");
  }

  /// (slot): all that goes up from it has been started.
  void end(const Napi::CallbackInfo& info) { check(driver().cuEventRecord(slot(info).up, up_), "cuEventRecord"); }

  /// (stream): what it is given from now on finds what has gone up.
  void lead(const Napi::CallbackInfo& info) {
    check(driver().cuEventRecord(order_, up_), "cuEventRecord");
    check(driver().cuStreamWaitEvent(stream(info[0]), order_, 0), "cuStreamWaitEvent");
  }

  void close(const Napi::CallbackInfo&) { leave(); }

  static void on_environment_end(void* self) { static_cast<DeviceLane*>(self)->leave(); }

  /// Lets go of the memory once the device has left it. What the streams follow may be stuck: then the lane stays as it is,
  /// rather than this thread with it.
  void leave() try {
    if (!context_) return;
    napi_remove_env_cleanup_hook(this->Env(), &DeviceLane::on_environment_end, this);
    bell_->close();
    const Entered entered(std::exchange(context_, nullptr));
    const Driver& d = driver();
    check(d.cuEventRecord(order_, down_), "cuEventRecord");
    check(d.cuStreamWaitEvent(up_, order_, 0), "cuStreamWaitEvent");
    check(d.cuEventRecord(order_, up_), "cuEventRecord");
    for (const int64_t deadline = now_ns() + kLeavingNs; d.cuEventQuery(order_) == kNotReady;) {
      if (now_ns() > deadline) return memory_.SuppressDestruct();
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    if (is_registered_) d.cuMemHostUnregister(data_);
    for (const Slot& each : slots_) {
      d.cuEventDestroy_v2(each.down);
      d.cuEventDestroy_v2(each.up);
    }
    d.cuEventDestroy_v2(order_);
    d.cuStreamDestroy_v2(down_);
    d.cuStreamDestroy_v2(up_);
    memory_.Reset();
  } catch (const std::exception&) {  // the device is lost, and leaves no memory alone that is still its
    memory_.SuppressDestruct();
  }

  Napi::Value is_registered(const Napi::CallbackInfo& info) { return Napi::Boolean::New(info.Env(), is_registered_); }

  Context context_ = nullptr;     // null once closed
  Napi::ObjectReference memory_;  // keeps data_
  char* data_ = nullptr;
  size_t bytes_ = 0, slot_bytes_ = 0;
  bool is_registered_ = false;
  Stream down_ = nullptr, up_ = nullptr;
  Event order_ = nullptr;
  std::vector<Slot> slots_;
  std::shared_ptr<Bell> bell_;
};

}  // namespace

Napi::Function define_device_lane(Napi::Env env) { return DeviceLane::define(env); }

}  // namespace ringwise::node
