// coll.node: exports the host backend, the NCCL backend, device lanes, grid kernels and the simulated network to
// JavaScript. Their types are in packages/collectives/src/backends/native.ts. All functions run on the JavaScript
// thread, except LaneObject::notify(), the function that cause_of() returns, and Execute() of workers, which run on any
// thread.
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/crash_words.h"
#include "base/os/library.h"
#include "coll/engine/host_group.h"
#include "node/coll/coll_device.h"
#include "node/coll/coll_grid.h"
#include "node/coll/coll_nccl.h"
#include "node/coll/coll_simulation.h"
#include "node/lane_object.h"

namespace ringwise::node {

namespace {

class HostGroup final : public LaneObject<HostGroup, coll::HostGroup, coll::Ended> {
 public:
  static Napi::Function define(Napi::Env env) {
    return DefineClass(
        env, "HostGroup",
        {InstanceMethod("connect", &HostGroup::connect), InstanceMethod("start", &HostGroup::start),
         InstanceMethod("wait", &HostGroup::wait), InstanceMethod("requestProgress", &HostGroup::request_progress),
         InstanceMethod("attempt", &HostGroup::attempt), InstanceMethod("alloc", &HostGroup::alloc),
         InstanceMethod("reproduces", &HostGroup::reproduces), InstanceMethod("labelOf", &HostGroup::label_of),
         InstanceMethod("failure", &HostGroup::failure), InstanceMethod("losses", &HostGroup::losses),
         InstanceMethod("flightRecord", &HostGroup::flight_record),
         InstanceMethod("dumpFlightTo", &HostGroup::dump_flight_to), InstanceMethod("abort", &HostGroup::abort),
         InstanceMethod("close", &HostGroup::close), InstanceMethod("destroy", &HostGroup::destroy),
         InstanceAccessor<&HostGroup::unix_name>("unixName"), InstanceAccessor<&HostGroup::port>("port")});
  }

  /// (rank, size, host, call: Float64Array, settle: see LaneObject, where: () => string)
  explicit HostGroup(const Napi::CallbackInfo& info) : LaneObject(info, info[3], info[4]) {
    const Napi::Env env = info.Env();
    where_ = Napi::Persistent(info[5].As<Napi::Function>());
    try {
      group_ = std::make_unique<coll::HostGroup>(info[0].ToNumber().Int32Value(), info[1].ToNumber().Int32Value(),
                                                 info[2].ToString().Utf8Value(), [this] { notify(); });
    } catch (const std::system_error& error) {
      throw Napi::Error::New(env, error.what());
    }
    group_->locate_calls_by([this] { return call_site(); });
    group_->leave_calls_by([this] { return is_ending(); });
    // `run` is a function, not a method: unwrapping the object in each call takes half as long as a small operation. It
    // must not be called after the object is gone, so callers keep the object with `bind`.
    info.This().As<Napi::Object>().Set("run", Napi::Function::New<&HostGroup::run_of>(env, "run", this));
  }

  /// Returns a function as described at CauseOf.
  static std::function<std::shared_ptr<const coll::Failure>()> cause_of(const Napi::Object& object) {
    return [group = Unwrap(object)->group_.get()] { return group->failure(); };
  }

 private:
  /// Returns the source location of the call. Runs inside `start` and `run`, possibly while this thread holds the
  /// group's mutex, so it must not throw or call the group.
  std::string call_site() {
    try {
      Napi::HandleScope scope(Env());
      return where_.Call({}).As<Napi::String>().Utf8Value();
    } catch (const Napi::Error&) {  // the environment is ending
      return {};
    }
  }

  /// Returns whether the environment ends, such as that of a worker that is terminated: it then refuses calls. An
  /// exception of the called function, such as that of a full stack, is none of that.
  bool is_ending() {
    const Napi::HandleScope scope(Env());
    if (napi_call_function(Env(), Env().Undefined(), where_.Value(), 0, nullptr, nullptr) == napi_ok) return false;
    bool has_thrown = false;
    napi_is_exception_pending(Env(), &has_thrown);
    napi_value error = nullptr;
    if (has_thrown) napi_get_and_clear_last_exception(Env(), &error);
    return !has_thrown;
  }

  Napi::Value start(const Napi::CallbackInfo& info) {
    Counts counts;
    const uint64_t id = group(info.Env()).start(read_op(info, counts), coll::HostGroup::Progress::Later);
    return started(info.Env(), id, std::move(counts));
  }

  static Napi::Value run_of(const Napi::CallbackInfo& info) { return static_cast<HostGroup*>(info.Data())->run(info); }

  /// Returns the failure; on success null, or the sender's rank for a receive.
  Napi::Value run(const Napi::CallbackInfo& info) {
    Counts counts;
    int source = -1;
    const auto failure = group(info.Env()).run(read_op(info, counts), &source);
    if (!failure && source >= 0) return Napi::Number::New(info.Env(), source);
    return {info.Env(), to_js(info.Env(), failure)};
  }

  void request_progress(const Napi::CallbackInfo& info) { group(info.Env()).request_progress(); }

  /// (id): works on the operation on this thread for a short time, and settles what has ended.
  void attempt(const Napi::CallbackInfo& info) {
    settle_after(info.Env(),
                 [&] { group(info.Env()).attempt(static_cast<uint64_t>(info[0].ToNumber().Int64Value())); });
  }

  /// (bytes) => zeroed memory that all ranks of the host can access, or null if the group has no arena.
  Napi::Value alloc(const Napi::CallbackInfo& info) {
    const std::shared_ptr<coll::Arena> arena = group(info.Env()).arena();
    if (!arena) return info.Env().Null();
    const auto bytes = static_cast<size_t>(info[0].ToNumber().Int64Value());
    std::byte* block;
    try {
      block = arena->allocate(bytes);
    } catch (const std::system_error& error) {
      throw Napi::Error::New(info.Env(), error.what());
    }
    // The finalizer runs on this thread, possibly after the group is destroyed.
    return Napi::ArrayBuffer::New(info.Env(), block, bytes,
                                  [arena](Napi::Env, void* data) { arena->release(static_cast<std::byte*>(data)); });
  }

  /// (verb) => whether the group runs reproducible reductions of this verb
  Napi::Value reproduces(const Napi::CallbackInfo& info) {
    const auto verb = static_cast<coll::Verb>(info[0].ToNumber().Int32Value());
    return Napi::Boolean::New(info.Env(), group(info.Env()).reproduces(verb));
  }

  /// Returns the root cause, or the loss of a rank; null if there is neither.
  Napi::Value failure(const Napi::CallbackInfo& info) {
    return {info.Env(), to_js(info.Env(), group(info.Env()).failure())};
  }

  Napi::Value losses(const Napi::CallbackInfo& info) {
    return {info.Env(), to_js(info.Env(), group(info.Env()).losses())};
  }

  /// Returns the entries of the flight recorder as JSON.
  Napi::Value flight_record(const Napi::CallbackInfo& info) {
    return Napi::String::New(info.Env(), coll::to_json(group(info.Env()).flight().entries()));
  }

  /// (path, head: a JSON object that is written before the record)
  void dump_flight_to(const Napi::CallbackInfo& info) {
    try {
      group(info.Env()).dump_flight_to(info[0].ToString().Utf8Value(), info[1].ToString().Utf8Value());
    } catch (const std::system_error& error) {
      throw Napi::Error::New(info.Env(), error.what());
    }
  }

  /// (peers: { rank, local, unixName, host, port, mine, theirs }[], timeoutMs) => id that `settle` is called with
  Napi::Value connect(const Napi::CallbackInfo& info) {
    const auto list = info[0].As<Napi::Array>();
    std::vector<coll::PeerAddress> peers;
    for (uint32_t i = 0; i < list.Length(); ++i) {
      const auto entry = list.Get(i).As<Napi::Object>();
      coll::PeerAddress peer;
      peer.rank = entry.Get("rank").ToNumber().Int32Value();
      peer.local = entry.Get("local").ToBoolean().Value();
      peer.unix_name = entry.Get("unixName").ToString().Utf8Value();
      peer.host = entry.Get("host").ToString().Utf8Value();
      peer.port = static_cast<uint16_t>(entry.Get("port").ToNumber().Uint32Value());
      copy_proof(info.Env(), entry.Get("mine"), peer.mine);
      copy_proof(info.Env(), entry.Get("theirs"), peer.theirs);
      peers.push_back(std::move(peer));
    }
    const int64_t timeout_ns = info[1].ToNumber().Int64Value() * kMillisecond;
    return pending_id(info.Env(), group(info.Env()).connect(std::move(peers), timeout_ns));
  }

  static void copy_proof(Napi::Env env, const Napi::Value& value, coll::Proof& proof) {
    const auto bytes = value.As<Napi::Uint8Array>();
    if (bytes.ElementLength() != proof.size())
      throw Napi::TypeError::New(
          env, "mine and theirs must have 32 bytes, got " + std::to_string(bytes.ElementLength()) + ".");
    std::memcpy(proof.data(), bytes.Data(), proof.size());
  }

  Napi::Value unix_name(const Napi::CallbackInfo& info) {
    return Napi::String::New(info.Env(), group(info.Env()).listener().unix_name());
  }

  Napi::Value port(const Napi::CallbackInfo& info) {
    return Napi::Number::New(info.Env(), group(info.Env()).listener().port());
  }

  Napi::FunctionReference where_;  // JavaScript thread
};

/// (verb) => names of its algorithms between hosts; the first one fits every operation.
Napi::Value algorithms(const Napi::CallbackInfo& info) {
  const uint32_t verb = info[0].As<Napi::Number>().Uint32Value();
  auto names = Napi::Array::New(info.Env());
  if (verb >= static_cast<uint32_t>(coll::kVerbCount)) return names;
  uint32_t count = 0;
  for (const coll::Algorithm& algorithm : coll::algorithms_of(static_cast<coll::Verb>(verb)))
    names.Set(count++, algorithm.name);
  return names;
}

/// Prepares memory on a thread of Node's pool. Deletes itself.
class Preparation : public Napi::AsyncWorker {
 public:
  Preparation(Napi::Env env, size_t bytes)
      : Napi::AsyncWorker(env), bytes_(bytes), deferred_(Napi::Promise::Deferred::New(env)) {}

  Napi::Promise promise() const { return deferred_.Promise(); }

 protected:
  void Execute() override { coll::Arena::prepare(bytes_); }
  void OnOK() override { deferred_.Resolve(Env().Undefined()); }

 private:
  size_t bytes_;
  Napi::Promise::Deferred deferred_;
};

/// (bytes) => promise: maps memory for the next group of this process, see Arena::prepare().
Napi::Value prepare_memory(const Napi::CallbackInfo& info) {
  auto work = std::make_unique<Preparation>(info.Env(), static_cast<size_t>(info[0].ToNumber().Int64Value()));
  const Napi::Promise promise = work->promise();
  work.release()->Queue();
  return promise;
}

/// (fd): reports crashes there.
void report_crashes(const Napi::CallbackInfo& info) {
  report_crashes_to(info[0].As<Napi::Number>().Int32Value(), coll::write_last_calls);
}

/// (name, value): sets an environment variable of the process unless it is set. In a worker, process.env is a copy that
/// native libraries do not see.
void set_variable(const Napi::CallbackInfo& info) {
  setenv(info[0].ToString().Utf8Value().c_str(), info[1].ToString().Utf8Value().c_str(), 0);
}

Napi::Object initialise(Napi::Env env, Napi::Object exports) {
  os::keep_loaded(reinterpret_cast<const void*>(&initialise));
  exports.Set("HostGroup", HostGroup::define(env));
  exports.Set("DeviceLane", define_device_lane(env));
  exports.Set("grid", define_grid(env));
  exports.Set("reportCrashes", Napi::Function::New<report_crashes>(env, "reportCrashes"));
  exports.Set("prepareMemory", Napi::Function::New<prepare_memory>(env, "prepareMemory"));
  exports.Set("setVariable", Napi::Function::New<set_variable>(env, "setVariable"));
  exports.Set("nccl", define_nccl(env, &HostGroup::cause_of));
  exports.Set("algorithms", Napi::Function::New<algorithms>(env, "algorithms"));
  exports.Set("simulate", define_simulate(env));
  return exports;
}

}  // namespace

NODE_API_MODULE(coll, initialise)

}  // namespace ringwise::node
