// The common part of the native backends' addons: a JavaScript object around a group with a lane (progress thread). The
// numbers of an operation are passed in a shared array, its memory as arguments. The ends of operations are reported
// through one callback. See NativeLane in packages/collectives/src/backends/native.ts for the typed surface.
#pragma once

#define NODE_ADDON_API_CPP_EXCEPTIONS_ALL  // converts std::exception, such as bad_alloc, to JavaScript errors too
#include <napi.h>

#include <atomic>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/time/clock.h"
#include "coll/failure/failure.h"
#include "coll/handshake/labels.h"
#include "coll/op.h"

namespace ringwise::node {

/// Indices of an operation's numbers in the array. Equal to NativeField of packages/collectives/src/backends/native.ts.
enum Field : size_t {
  kVerb,
  kDType,
  kReduce,
  kRoot,
  kTag,
  kSeq,
  kCount,
  kTimeoutMs,
  kFactor,
  kInPlace,
  kWire,
  kStream,
  kLabel,
  kReproducible
};

/// Memory of an operation's counts, in elements by rank; empty if JavaScript passed null.
struct Counts {
  std::vector<size_t> counts;
  std::vector<size_t> recv_counts;
};

/// Converts a failure to { code, origin, peers, text }, or null.
inline napi_value to_js(Napi::Env env, const std::shared_ptr<const coll::Failure>& failure) {
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

/// `Self` derives from this class and creates `group_`. `Group` has wait, take_ended, abort and close like HostGroup,
/// and calls notify() on the thread that ends an operation.
template <class Self, class Group, class Ended>
class LaneObject : public Napi::ObjectWrap<Self> {
 protected:
  using Base = Napi::ObjectWrap<Self>;

  /// (call: Float64Array, settle: (id, failure, source, isLent) => void)
  LaneObject(const Napi::CallbackInfo& info, const Napi::Value& call, const Napi::Value& settle) : Base(info) {
    const Napi::Env env = info.Env();
    const auto numbers = call.As<Napi::Float64Array>();
    call_memory_ = Napi::Persistent(numbers.template As<Napi::Object>());
    call_ = numbers.Data();
    settle_ = Napi::Persistent(settle.As<Napi::Function>());
    auto name = Napi::String::New(env, "ringwise-lane");
    if (napi_create_threadsafe_function(env, nullptr, nullptr, name, 0, 1, nullptr, nullptr, this,
                                        &LaneObject::on_notify, &notify_) != napi_ok) {
      throw Napi::Error::New(env, "napi_create_threadsafe_function failed");
    }
    napi_unref_threadsafe_function(env, notify_);
    // The environment may end while operations are pending: a worker calls process.exit() or is terminated.
    napi_add_env_cleanup_hook(env, &LaneObject::on_environment_end, this);
  }

  ~LaneObject() override {
    napi_remove_env_cleanup_hook(this->Env(), &LaneObject::on_environment_end, this);
    end_lane();
  }

  // Runs on the lane or on the JavaScript thread, so it must not use Napi except the thread-safe function. One wake-up
  // reports all operations that have ended by the time it runs.
  void notify() {
    if (!notified_.exchange(true)) napi_call_threadsafe_function(notify_, nullptr, napi_tsfn_nonblocking);
  }

  /// Returns the id of an operation whose end `settle` will report, and counts it. The event loop stays alive until
  /// then.
  Napi::Value pending_id(Napi::Env env, uint64_t id) {
    if (pending_++ == 0) napi_ref_threadsafe_function(env, notify_);
    return Napi::Number::New(env, static_cast<double>(id));
  }

  Group& group(Napi::Env env) {
    if (!group_) throw Napi::Error::New(env, "the native group is gone");
    return *group_;
  }

  /// Returns the memory of an argument: a typed array, or a number, which is an address in device memory. Returns null
  /// for anything else.
  static std::byte* memory(const Napi::CallbackInfo& info, size_t index) {
    void* data = nullptr;
    if (napi_get_typedarray_info(info.Env(), info[index], nullptr, nullptr, &data, nullptr, nullptr) == napi_ok)
      return static_cast<std::byte*>(data);
    int64_t address = 0;
    if (napi_get_value_int64(info.Env(), info[index], &address) != napi_ok) return nullptr;
    return reinterpret_cast<std::byte*>(address);
  }

  /// Returns a whole number from 0 to 2^53. Goes through a signed type, to which processors convert in one instruction.
  static uint64_t whole(double number) { return static_cast<uint64_t>(static_cast<int64_t>(number)); }

  /// Returns the CUstream of the operation in `call_`.
  uintptr_t stream() const { return static_cast<uintptr_t>(call_[kStream]); }

  /// Reads an operation from the arguments (input, output?, counts?, recvCounts?, residual?) and the numbers in
  /// `call_`. The operation refers to memory in `counts`.
  coll::Op read_op(const Napi::CallbackInfo& info, Counts& counts) const {
    coll::Op op;
    op.verb = static_cast<coll::Verb>(call_[kVerb]);
    op.dtype = static_cast<DType>(call_[kDType]);
    op.reduce = static_cast<coll::ReduceOp>(call_[kReduce]);
    op.root = static_cast<int>(call_[kRoot]);
    op.tag = static_cast<int>(call_[kTag]);
    op.seq = whole(call_[kSeq]);
    op.count = whole(call_[kCount]);
    op.timeout_ns = static_cast<int64_t>(call_[kTimeoutMs] * kMillisecond);
    op.factor = call_[kFactor];
    op.reproducible = call_[kReproducible] != 0;
    op.label = whole(call_[kLabel]);
    std::byte* const input = memory(info, 0);
    op.input = input;
    op.output = call_[kInPlace] != 0 ? input : memory(info, 1);
    if (info.Length() > 2) {  // most calls have no counts
      read_counts(info, 2, counts.counts);
      read_counts(info, 3, counts.recv_counts);
    }
    if (op.verb == coll::Verb::AllReduce) op.wire = static_cast<coll::Wire>(call_[kWire]);
    if (op.wire == coll::Wire::Int8) op.residual = reinterpret_cast<float*>(memory(info, 4));
    if (!counts.counts.empty()) op.counts = counts.counts.data();
    if (!counts.recv_counts.empty()) op.recv_counts = counts.recv_counts.data();
    return op;
  }

  /// (text) => the label's number for `call_`.
  Napi::Value label_of(const Napi::CallbackInfo& info) {
    return Napi::Number::New(info.Env(), static_cast<double>(coll::label_of(info[0].ToString().Utf8Value())));
  }

  /// Does what pending_id() does, and keeps the counts of the started operation until it is settled, because the
  /// operation refers to them. Moving a vector does not move its elements.
  Napi::Value started(Napi::Env env, uint64_t id, Counts counts) {
    if (!counts.counts.empty()) counts_.emplace(id, std::move(counts));
    return pending_id(env, id);
  }

  /// Returns the failure of an operation, with `isLent` if the transport may go on using its memory; on success null,
  /// or the sender's rank for a receive.
  static Napi::Value outcome_of(Napi::Env env, const Ended& ended) {
    if (!ended.failure && ended.source >= 0) return Napi::Number::New(env, ended.source);
    const Napi::Value failure(env, to_js(env, ended.failure));
    if (ended.is_lent) failure.As<Napi::Object>().Set("isLent", true);
    return failure;
  }

  /// (id): blocks until the operation has ended, then settles all operations that have ended.
  void wait(const Napi::CallbackInfo& info) {
    settle_after(info.Env(), [&] { group(info.Env()).wait(static_cast<uint64_t>(info[0].ToNumber().Int64Value())); });
  }

  /// (code, peers, text)
  void abort(const Napi::CallbackInfo& info) {
    const auto list = info[1].As<Napi::Array>();
    std::vector<int> peers;
    for (uint32_t i = 0; i < list.Length(); ++i) peers.push_back(list.Get(i).ToNumber().Int32Value());
    const auto code = static_cast<coll::FailureCode>(info[0].ToNumber().Int32Value());
    group(info.Env()).abort({code, -1, std::move(peers), info[2].ToString().Utf8Value()});
  }

  Napi::Value close(const Napi::CallbackInfo& info) { return pending_id(info.Env(), group(info.Env()).close()); }

  /// Ends the lane. Pending operations are never settled.
  void destroy(const Napi::CallbackInfo& info) {
    if (pending_ > 0) napi_unref_threadsafe_function(info.Env(), notify_);
    pending_ = 0;
    end_lane();
    settle_.Reset();  // the closure refers to this object, so keeping it would leak both
  }

  /// Calls `settle` for all operations that have ended.
  void settle_ended(Napi::Env env) {
    if (!group_) return;
    Napi::HandleScope scope(env);
    group_->take_ended(ended_);
    // a moved copy, because a callback may call this function again
    const std::vector<Ended> ended = std::move(ended_);
    const Napi::Function settle = settle_.Value();  // a callback may call destroy(), which resets settle_
    for (const Ended& one : ended) {
      if (--pending_ == 0) napi_unref_threadsafe_function(env, notify_);
      if (!counts_.empty()) counts_.erase(one.id);
      bool is_lent = false;
      if constexpr (requires { one.is_lent; }) is_lent = one.is_lent;
      settle.Call({Napi::Number::New(env, static_cast<double>(one.id)), to_js(env, one.failure),
                   Napi::Number::New(env, one.source), Napi::Boolean::New(env, is_lent)});
    }
  }

  /// Calls `work`, which may end operations, then settles everything that has ended. The event loop is not woken for
  /// that.
  template <class Function>
  void settle_after(Napi::Env env, const Function& work) {
    struct Quiet {
      explicit Quiet(LaneObject& object) : object(object), was_notified(object.notified_.exchange(true)) {}
      ~Quiet() { end(); }
      void end() {
        if (!std::exchange(was_notified, true)) object.notified_ = false;
      }
      LaneObject& object;
      bool was_notified;  // a wake-up is on its way, which settles what ends meanwhile
    };
    Quiet quiet(*this);
    work();
    settle_ended(env);
    quiet.end();
    settle_ended(env);  // what another thread has ended since has not woken the event loop
  }

  std::unique_ptr<Group> group_;  // JavaScript thread; calls notify() until it is destroyed

 private:
  static void on_environment_end(void* self) { static_cast<LaneObject*>(self)->end_lane(); }

  /// Joins the lane. No thread calls notify() after that, so the thread-safe function can be released.
  void end_lane() {
    group_.reset();
    if (notify_ != nullptr) napi_release_threadsafe_function(std::exchange(notify_, nullptr), napi_tsfn_abort);
  }

  static void on_notify(napi_env env, napi_value, void* context, void*) {
    if (env == nullptr) return;  // the environment is ending
    auto* self = static_cast<LaneObject*>(context);
    self->notified_ = false;
    try {
      self->settle_ended(Napi::Env(env));
    } catch (const Napi::Error& error) {
      // The environment has begun to end, and refuses all calls into JavaScript, this one too; or `settle` has thrown.
      napi_fatal_exception(env, error.Value());
    }
  }

  static void read_counts(const Napi::CallbackInfo& info, size_t index, std::vector<size_t>& counts) {
    if (index >= info.Length() || !info[index].IsTypedArray()) return;
    const auto array = info[index].As<Napi::Float64Array>();
    for (size_t i = 0; i < array.ElementLength(); ++i) counts.push_back(static_cast<size_t>(array[i]));
  }

  Napi::ObjectReference call_memory_;            // keeps the memory of call_ alive
  const double* call_ = nullptr;                 // JavaScript thread; the next operation, by NativeField
  Napi::FunctionReference settle_;               // JavaScript thread; empty once destroyed
  napi_threadsafe_function notify_ = nullptr;    // called by notify(); released after the lane has ended
  std::atomic<bool> notified_{false};            // both threads
  int pending_ = 0;                              // JavaScript thread; operations not settled yet
  std::vector<Ended> ended_;                     // JavaScript thread; reused, so that it does not allocate
  std::unordered_map<uint64_t, Counts> counts_;  // JavaScript thread; of operations not settled yet, by id
};

}  // namespace ringwise::node
