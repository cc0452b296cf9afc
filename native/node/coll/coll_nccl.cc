#include "node/coll/coll_nccl.h"

#include <cstring>
#include <memory>
#include <utility>

#include "coll/nccl/group.h"
#include "node/lane_object.h"

namespace ringwise::node {

namespace {

CauseOf cause_of_host = nullptr;  // set by define_nccl, to the same value in all threads

class NcclGroup final : public LaneObject<NcclGroup, nccl::NcclGroup, nccl::Ended> {
 public:
  static Napi::Function define(Napi::Env env) {
    return DefineClass(
        env, "NcclGroup",
        {InstanceMethod("connect", &NcclGroup::connect), InstanceMethod("start", &NcclGroup::start),
         InstanceMethod("run", &NcclGroup::run), InstanceMethod("wait", &NcclGroup::wait),
         InstanceMethod("fence", &NcclGroup::fence), InstanceMethod("requestProgress", &NcclGroup::request_progress),
         InstanceMethod("hold", &NcclGroup::hold), InstanceMethod("release", &NcclGroup::release),
         InstanceMethod("isTaken", &NcclGroup::is_taken), InstanceMethod("registerBuffer", &NcclGroup::register_buffer),
         InstanceMethod("deregisterBuffer", &NcclGroup::deregister_buffer),
         InstanceMethod("capture", &NcclGroup::capture), InstanceMethod("join", &NcclGroup::join),
         InstanceMethod("forget", &NcclGroup::forget), InstanceMethod("beginRun", &NcclGroup::begin_run),
         InstanceMethod("endRun", &NcclGroup::end_run), InstanceMethod("abort", &NcclGroup::abort),
         InstanceMethod("close", &NcclGroup::close), InstanceMethod("destroy", &NcclGroup::destroy)});
  }

  /// (rank, size, device, host: HostGroup, call: Float64Array, settle: see LaneObject)
  explicit NcclGroup(const Napi::CallbackInfo& info) : LaneObject(info, info[4], info[5]) {
    host_ = Napi::Persistent(info[3].As<Napi::Object>());
    try {
      group_ = std::make_unique<nccl::NcclGroup>(info[0].ToNumber().Int32Value(), info[1].ToNumber().Int32Value(),
                                                 info[2].ToNumber().Int32Value(), cause_of_host(host_.Value()),
                                                 [this] { notify(); });
    } catch (const std::exception& error) {
      throw Napi::Error::New(info.Env(), error.what());
    }
  }

 private:
  /// (id: Uint8Array of makeId(), timeoutMs)
  Napi::Value connect(const Napi::CallbackInfo& info) {
    const auto bytes = info[0].As<Napi::Uint8Array>();
    nccl::UniqueId id{};
    if (bytes.ByteLength() != sizeof id) throw Napi::TypeError::New(info.Env(), "a unique id has 128 bytes");
    std::memcpy(&id, bytes.Data(), sizeof id);
    return pending_id(info.Env(), group(info.Env()).connect(id, info[1].ToNumber().Int64Value() * kMillisecond));
  }

  cuda::Stream caller() const { return reinterpret_cast<cuda::Stream>(stream()); }

  Napi::Value start(const Napi::CallbackInfo& info) {
    Counts counts;
    const uint64_t id = group(info.Env()).start(read_op(info, counts), caller());
    return started(info.Env(), id, std::move(counts));
  }

  /// See outcome_of().
  Napi::Value run(const Napi::CallbackInfo& info) {
    Counts counts;
    return outcome_of(info.Env(), group(info.Env()).run(read_op(info, counts), caller()));
  }

  /// (id): fences the operation, then settles all operations that have ended.
  void fence(const Napi::CallbackInfo& info) {
    group(info.Env()).fence(static_cast<uint64_t>(info[0].ToNumber().Int64Value()));
    settle_ended(info.Env());
  }

  /// Captures an operation into the graph of the stream in `call_`.
  Napi::Value capture(const Napi::CallbackInfo& info) {
    Counts counts;
    const uint64_t id = group(info.Env()).capture(read_op(info, counts), caller());
    return started(info.Env(), id, std::move(counts));
  }

  /// (id): joins the operation, then settles all operations that have ended.
  void join(const Napi::CallbackInfo& info) {
    group(info.Env()).join(static_cast<uint64_t>(info[0].ToNumber().Int64Value()));
    settle_ended(info.Env());
  }

  /// (id): forgets the operation, then settles all operations that have ended.
  void forget(const Napi::CallbackInfo& info) {
    group(info.Env()).forget(static_cast<uint64_t>(info[0].ToNumber().Int64Value()));
    settle_ended(info.Env());
  }

  static cuda::Stream stream_of(const Napi::Value& value) {
    bool is_exact = false;
    return reinterpret_cast<cuda::Stream>(static_cast<uintptr_t>(value.As<Napi::BigInt>().Uint64Value(&is_exact)));
  }

  /// (stream) => the failure, or null
  Napi::Value begin_run(const Napi::CallbackInfo& info) {
    return {info.Env(), to_js(info.Env(), group(info.Env()).begin_run(stream_of(info[0])))};
  }

  /// (stream, timeoutMs) => id
  Napi::Value end_run(const Napi::CallbackInfo& info) {
    coll::Op op;
    op.timeout_ns = info[1].ToNumber().Int64Value() * kMillisecond;
    return pending_id(info.Env(), group(info.Env()).end_run(op, stream_of(info[0])));
  }

  void hold(const Napi::CallbackInfo& info) { group(info.Env()).hold(); }

  void release(const Napi::CallbackInfo& info) { group(info.Env()).release(); }

  /// (id)
  Napi::Value is_taken(const Napi::CallbackInfo& info) {
    const auto id = static_cast<uint64_t>(info[0].ToNumber().Int64Value());
    return Napi::Boolean::New(info.Env(), group(info.Env()).is_taken(id));
  }

  void request_progress(const Napi::CallbackInfo& info) { group(info.Env()).request_progress(); }

  /// (address: bigint, bytes) => id
  Napi::Value register_buffer(const Napi::CallbackInfo& info) {
    bool is_exact = false;
    void* const data = reinterpret_cast<void*>(info[0].As<Napi::BigInt>().Uint64Value(&is_exact));
    const auto bytes = static_cast<size_t>(info[1].ToNumber().Int64Value());
    return Napi::Number::New(info.Env(), static_cast<double>(group(info.Env()).register_buffer(data, bytes)));
  }

  /// (id)
  Napi::Value deregister_buffer(const Napi::CallbackInfo& info) {
    return pending_id(info.Env(),
                      group(info.Env()).deregister_buffer(static_cast<uint64_t>(info[0].ToNumber().Int64Value())));
  }

  Napi::ObjectReference host_;  // keeps the HostGroup object alive, which the lane checks for failures
};

Napi::Value make_id(const Napi::CallbackInfo& info) {
  try {
    const nccl::UniqueId id = nccl::NcclGroup::make_id();
    auto bytes = Napi::Uint8Array::New(info.Env(), sizeof id);
    std::memcpy(bytes.Data(), &id, sizeof id);
    return bytes;
  } catch (const coll::Failure& failure) {
    throw Napi::Error::New(info.Env(), failure.text);
  }
}

/// () => { devices, driver, library, version, reducesFloat8, reason }: loads the driver, and NCCL if there are devices.
/// `driver` and `reason` tell why there are no devices and why NCCL cannot be used; each is empty otherwise.
Napi::Value about(const Napi::CallbackInfo& info) {
  auto object = Napi::Object::New(info.Env());
  const cuda::Driver& driver = cuda::driver();
  const bool has_devices = driver.device_count > 0;
  object.Set("devices", driver.device_count);
  object.Set("driver", driver.reason);
  object.Set("library", has_devices ? nccl::library().file.path() : "");
  object.Set("version", has_devices ? nccl::version_text(nccl::library().version) : "");
  object.Set("reducesFloat8", nccl::reduces_float8());
  object.Set("reason", has_devices ? nccl::library().reason : "");
  return object;
}

}  // namespace

Napi::Object define_nccl(Napi::Env env, CauseOf cause_of) {
  cause_of_host = cause_of;
  auto object = Napi::Object::New(env);
  object.Set("NcclGroup", NcclGroup::define(env));
  object.Set("makeId", Napi::Function::New<make_id>(env, "makeId"));
  object.Set("about", Napi::Function::New<about>(env, "about"));
  return object;
}

}  // namespace ringwise::node
