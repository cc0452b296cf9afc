// coll.node: the host backend for JavaScript. One exported class, HostGroup; see packages/collectives/src/native.ts
// for its typed surface. Everything here runs on the JavaScript thread, except `notify`.
#define NODE_ADDON_API_CPP_EXCEPTIONS_ALL  // also std::exception, such as no memory, becomes a JavaScript error
#include <napi.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include "coll/host_group.h"
#include "node/coll_grid.h"

namespace ringwise::node {

namespace {

using coll::Ended;
using coll::Failure;
using coll::Op;

constexpr int64_t kNsPerMs = 1'000'000;

/// Where the numbers of an operation are: NativeField of packages/collectives/src/native.ts.
enum Field : size_t { kVerb, kDType, kReduce, kRoot, kTag, kSeq, kCount, kTimeoutMs, kFactor, kInPlace, kWire };

/// Elements per rank, as operations point to them; empty where JavaScript passed null.
struct Counts {
  std::vector<size_t> counts;
  std::vector<size_t> recv_counts;
};

/// { code, origin, peers, text }, or null.
napi_value to_js(Napi::Env env, const std::shared_ptr<const Failure>& failure) {
  if (!failure) return env.Null();
  auto object = Napi::Object::New(env);
  auto peers = Napi::Array::New(env, failure->peers.size());
  for (size_t i = 0; i < failure->peers.size(); ++i) peers.Set(static_cast<uint32_t>(i), failure->peers[i]);
  object.Set("code", static_cast<int>(failure->code));
  object.Set("origin", failure->origin);
  object.Set("peers", peers);
  object.Set("text", failure->text);
  return object;
}

class HostGroup final : public Napi::ObjectWrap<HostGroup> {
 public:
  static Napi::Function define(Napi::Env env) {
    return DefineClass(env, "HostGroup",
                       {InstanceMethod<&HostGroup::connect>("connect"), InstanceMethod<&HostGroup::start>("start"),
                        InstanceMethod<&HostGroup::wait>("wait"),
                        InstanceMethod<&HostGroup::urge>("urge"), InstanceMethod<&HostGroup::alloc>("alloc"),
                        InstanceMethod<&HostGroup::flight_record>("flightRecord"),
                        InstanceMethod<&HostGroup::dump_flight_to>("dumpFlightTo"), InstanceMethod<&HostGroup::abort>("abort"), InstanceMethod<&HostGroup::close>("close"),
                        InstanceMethod<&HostGroup::destroy>("destroy"),
                        InstanceAccessor<&HostGroup::unix_name>("unixName"), InstanceAccessor<&HostGroup::port>("port")});
  }

  /// (rank, size, host, call: Float64Array, settle: (id, failure, source) => void, where: () => string)
  explicit HostGroup(const Napi::CallbackInfo& info) : Napi::ObjectWrap<HostGroup>(info) {
    const Napi::Env env = info.Env();
    const auto call = info[3].As<Napi::Float64Array>();
    call_memory_ = Napi::Persistent(call.As<Napi::Object>());
    call_ = call.Data();
    settle_ = Napi::Persistent(info[4].As<Napi::Function>());
    where_ = Napi::Persistent(info[5].As<Napi::Function>());
    auto name = Napi::String::New(env, "ringwise-lane");
    if (napi_create_threadsafe_function(env, nullptr, nullptr, name, 0, 1, nullptr, nullptr, this, &HostGroup::on_notify,
                                        &notify_) != napi_ok) {
      throw Napi::Error::New(env, "napi_create_threadsafe_function failed");
    }
    napi_unref_threadsafe_function(env, notify_);
    try {
      group_ = std::make_unique<coll::HostGroup>(info[0].ToNumber().Int32Value(), info[1].ToNumber().Int32Value(),
                                                 info[2].ToString().Utf8Value(), [this] { notify(); });
    } catch (const std::system_error& error) {
      throw Napi::Error::New(env, error.what());
    }
    group_->locate_calls_by([this] { return call_site(); });
    // A method would look for its object in each call, at the price of half a small operation. The function must not be
    // called when the object is gone; callers hold it with `bind`.
    info.This().As<Napi::Object>().Set("run", Napi::Function::New<&HostGroup::run_of>(env, "run", this));
    // The environment may end while operations are pending (process.exit, a terminated worker).
    napi_add_env_cleanup_hook(env, &HostGroup::on_environment_end, this);
  }

  ~HostGroup() override {
    napi_remove_env_cleanup_hook(Env(), &HostGroup::on_environment_end, this);
    end_lane();
  }

 private:
  static void on_environment_end(void* self) { static_cast<HostGroup*>(self)->end_lane(); }

  /// Called inside `start` and `run`. The engine may be held, so nothing may go out from here but the text.
  std::string call_site() {
    try {
      Napi::HandleScope scope(Env());
      return where_.Call({}).As<Napi::String>().Utf8Value();
    } catch (const Napi::Error&) {  // the environment is going
      return {};
    }
  }

  /// Joins the lane. After it nobody calls `notify`, so the thread-safe function may go.
  void end_lane() {
    group_.reset();
    if (notify_ != nullptr) napi_release_threadsafe_function(std::exchange(notify_, nullptr), napi_tsfn_abort);
  }

  // Lane thread: no Napi here but the thread-safe function. One wake-up serves all that has ended until it runs.
  void notify() {
    if (!notified_.exchange(true)) napi_call_threadsafe_function(notify_, nullptr, napi_tsfn_nonblocking);
  }

  static void on_notify(napi_env env, napi_value, void* context, void*) {
    if (env == nullptr) return;  // the environment is going
    auto* self = static_cast<HostGroup*>(context);
    self->notified_ = false;
    self->settle_ended(Napi::Env(env));
  }

  void settle_ended(Napi::Env env) {
    if (!group_) return;
    Napi::HandleScope scope(env);
    group_->take_ended(ended_);
    const std::vector<Ended> ended = std::move(ended_);  // a callback may come back here
    for (const Ended& one : ended) {
      if (--pending_ == 0) napi_unref_threadsafe_function(env, notify_);
      if (!counts_.empty()) counts_.erase(one.id);
      settle_.Call({Napi::Number::New(env, static_cast<double>(one.id)), to_js(env, one.failure), Napi::Number::New(env, one.source)});
    }
  }

  /// Counts an operation whose end will come through `settle`; the event loop stays alive for it.
  Napi::Value expect(Napi::Env env, uint64_t id) {
    if (pending_++ == 0) napi_ref_threadsafe_function(env, notify_);
    return Napi::Number::New(env, static_cast<double>(id));
  }

  coll::HostGroup& group(Napi::Env env) {
    if (!group_) throw Napi::Error::New(env, "the native group is gone");
    return *group_;
  }

  static std::byte* memory(const Napi::CallbackInfo& info, size_t index) {
    void* data = nullptr;  // stays so for null, which is no typed array
    if (napi_get_typedarray_info(info.Env(), info[index], nullptr, nullptr, &data, nullptr, nullptr) != napi_ok) return nullptr;
    return static_cast<std::byte*>(data);
  }

  static void read_counts(const Napi::CallbackInfo& info, size_t index, std::vector<size_t>& counts) {
    if (index >= info.Length() || !info[index].IsTypedArray()) return;
    const auto array = info[index].As<Napi::Float64Array>();
    for (size_t i = 0; i < array.ElementLength(); ++i) counts.push_back(static_cast<size_t>(array[i]));
  }

  /// (input, output?, counts?, recvCounts?, residual?), and the numbers in `call_`. The operation points into `counts`.
  Op read_op(const Napi::CallbackInfo& info, Counts& counts) const {
    Op op;
    op.verb = static_cast<coll::Verb>(call_[kVerb]);
    op.dtype = static_cast<DType>(call_[kDType]);
    op.reduce = static_cast<coll::ReduceOp>(call_[kReduce]);
    op.root = static_cast<int>(call_[kRoot]);
    op.tag = static_cast<int>(call_[kTag]);
    op.seq = static_cast<uint64_t>(call_[kSeq]);
    op.count = static_cast<uint64_t>(call_[kCount]);
    op.timeout_ns = static_cast<int64_t>(call_[kTimeoutMs] * kNsPerMs);
    op.factor = call_[kFactor];
    std::byte* const input = memory(info, 0);
    op.input = input;
    op.output = call_[kInPlace] != 0 ? input : memory(info, 1);
    read_counts(info, 2, counts.counts);
    read_counts(info, 3, counts.recv_counts);
    if (op.verb == coll::Verb::AllReduce) op.wire = static_cast<coll::Wire>(call_[kWire]);
    if (op.wire == coll::Wire::Int8) op.residual = reinterpret_cast<float*>(memory(info, 4));
    if (!counts.counts.empty()) op.counts = counts.counts.data();
    if (!counts.recv_counts.empty()) op.recv_counts = counts.recv_counts.data();
    return op;
  }

  Napi::Value start(const Napi::CallbackInfo& info) {
    Counts counts;
    const uint64_t id = group(info.Env()).start(read_op(info, counts), coll::HostGroup::Progress::Later);
    if (!counts.counts.empty()) counts_.emplace(id, std::move(counts));  // moved vectors keep their memory in place
    return expect(info.Env(), id);
  }

  static Napi::Value run_of(const Napi::CallbackInfo& info) { return static_cast<HostGroup*>(info.Data())->run(info); }

  /// The failure; or null, or the sender's rank for a receive.
  Napi::Value run(const Napi::CallbackInfo& info) {
    Counts counts;
    int source = -1;
    const auto failure = group(info.Env()).run(read_op(info, counts), &source);
    if (!failure && source >= 0) return Napi::Number::New(info.Env(), source);
    return {info.Env(), to_js(info.Env(), failure)};
  }

  /// (id): blocks; has settled everything that ended until then when it returns.
  void wait(const Napi::CallbackInfo& info) {
    group(info.Env()).wait(static_cast<uint64_t>(info[0].ToNumber().Int64Value()));
    settle_ended(info.Env());
  }

  void urge(const Napi::CallbackInfo& info) { group(info.Env()).urge(); }

  /// (bytes): zeroed memory that all ranks of the host reach; null where there is none.
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
    // The finalizer runs on this thread, possibly after the group has gone.
    return Napi::ArrayBuffer::New(info.Env(), block, bytes, [arena](Napi::Env, void* data) {
      arena->release(static_cast<std::byte*>(data));
    });
  }

  /// The entries as JSON.
  Napi::Value flight_record(const Napi::CallbackInfo& info) {
    return Napi::String::New(info.Env(), coll::to_json(group(info.Env()).flight().entries()));
  }

  /// (path, head)
  void dump_flight_to(const Napi::CallbackInfo& info) {
    try {
      group(info.Env()).dump_flight_to(info[0].ToString().Utf8Value(), info[1].ToString().Utf8Value());
    } catch (const std::system_error& error) {
      throw Napi::Error::New(info.Env(), error.what());
    }
  }

  void abort(const Napi::CallbackInfo& info) { group(info.Env()).abort(info[0].ToString().Utf8Value()); }

  Napi::Value close(const Napi::CallbackInfo& info) { return expect(info.Env(), group(info.Env()).close()); }

  void destroy(const Napi::CallbackInfo& info) {
    if (pending_ > 0) napi_unref_threadsafe_function(info.Env(), notify_);
    pending_ = 0;
    end_lane();
  }

  /// (peers: { rank, local, unixName, host, port, mine, theirs }[], timeoutMs)
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
    const int64_t timeout_ns = info[1].ToNumber().Int64Value() * kNsPerMs;
    return expect(info.Env(), group(info.Env()).connect(std::move(peers), timeout_ns));
  }

  static void copy_proof(Napi::Env env, const Napi::Value& value, coll::Proof& proof) {
    const auto bytes = value.As<Napi::Uint8Array>();
    if (bytes.ElementLength() != proof.size()) throw Napi::TypeError::New(env, "a proof has 32 bytes");
    std::memcpy(proof.data(), bytes.Data(), proof.size());
  }

  Napi::Value unix_name(const Napi::CallbackInfo& info) {
    return Napi::String::New(info.Env(), group(info.Env()).listener().unix_name());
  }

  Napi::Value port(const Napi::CallbackInfo& info) {
    return Napi::Number::New(info.Env(), group(info.Env()).listener().port());
  }

  Napi::ObjectReference call_memory_;            // keeps what call_ points to
  const double* call_ = nullptr;                 // JavaScript thread; the next operation, by NativeField
  Napi::FunctionReference settle_;               // JavaScript thread
  Napi::FunctionReference where_;                // JavaScript thread
  napi_threadsafe_function notify_ = nullptr;    // called by the lane; released after the lane has ended
  std::atomic<bool> notified_{false};            // both threads
  int pending_ = 0;                              // JavaScript thread; operations not settled yet
  std::vector<Ended> ended_;                     // JavaScript thread; kept for its memory
  std::unordered_map<uint64_t, Counts> counts_;  // JavaScript thread; of operations not settled yet, by id
  std::unique_ptr<coll::HostGroup> group_;       // JavaScript thread; its lane calls notify until it is destroyed
};

/// (verb) => names of the algorithms between hosts, the first of which fits everywhere.
Napi::Value algorithms(const Napi::CallbackInfo& info) {
  const uint32_t verb = info[0].As<Napi::Number>().Uint32Value();
  auto names = Napi::Array::New(info.Env());
  if (verb >= static_cast<uint32_t>(coll::kVerbCount)) return names;
  uint32_t count = 0;
  for (const coll::Algorithm& algorithm : coll::algorithms_of(static_cast<coll::Verb>(verb))) names.Set(count++, algorithm.name);
  return names;
}

Napi::Object initialise(Napi::Env env, Napi::Object exports) {
  exports.Set("HostGroup", HostGroup::define(env));
  exports.Set("grid", define_grid(env));
  exports.Set("algorithms", Napi::Function::New<algorithms>(env, "algorithms"));
  return exports;
}

}  // namespace

NODE_API_MODULE(coll, initialise)

}  // namespace ringwise::node
