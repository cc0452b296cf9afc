// mpi-*.node: exports the mpi backend to JavaScript, compiled for one MPI library.
// packages/collectives/src/backends/native.ts has the types of MpiGroup and the other exports. All functions run on the
// JavaScript thread, except `notify`.
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "mpi/channel/channel.h"
#include "mpi/group.h"
#include "mpi/library.h"
#include "node/lane_object.h"

namespace ringwise::node {

namespace {

class MpiGroup final : public LaneObject<MpiGroup, mpi::MpiGroup, mpi::Ended> {
 public:
  static Napi::Function define(Napi::Env env) {
    return DefineClass(env, "MpiGroup",
                       {InstanceMethod("connect", &MpiGroup::connect), InstanceMethod("start", &MpiGroup::start),
                        InstanceMethod("labelOf", &MpiGroup::label_of), InstanceMethod("run", &MpiGroup::run),
                        InstanceMethod("wait", &MpiGroup::wait), InstanceMethod("abort", &MpiGroup::abort),
                        InstanceMethod("close", &MpiGroup::close), InstanceMethod("destroy", &MpiGroup::destroy)});
  }

  /// (rank, size, call: Float64Array, settle: see LaneObject)
  explicit MpiGroup(const Napi::CallbackInfo& info) : LaneObject(info, info[2], info[3]) {
    group_ = std::make_unique<mpi::MpiGroup>(info[0].ToNumber().Int32Value(), info[1].ToNumber().Int32Value(),
                                             [this] { notify(); });
  }

 private:
  /// (members: the group's ranks in MPI_COMM_WORLD, tag, timeoutMs)
  Napi::Value connect(const Napi::CallbackInfo& info) {
    const auto list = info[0].As<Napi::Array>();
    std::vector<int> members;
    for (uint32_t i = 0; i < list.Length(); ++i) members.push_back(list.Get(i).ToNumber().Int32Value());
    const int64_t timeout_ns = info[2].ToNumber().Int64Value() * kMillisecond;
    return pending_id(info.Env(),
                      group(info.Env()).connect(std::move(members), info[1].ToNumber().Int32Value(), timeout_ns));
  }

  Napi::Value start(const Napi::CallbackInfo& info) {
    Counts counts;
    const uint64_t id = group(info.Env()).start(read_op(info, counts));
    return started(info.Env(), id, std::move(counts));
  }

  /// See outcome_of().
  Napi::Value run(const Napi::CallbackInfo& info) {
    Counts counts;
    return outcome_of(info.Env(), group(info.Env()).run(read_op(info, counts)));
  }
};

/// Counts the environments (JavaScript threads) of this process. Each has one User; the last one that leaves ends MPI.
class User {
 public:
  explicit User(napi_env env) {
    ++users;
    // Hooks run in reverse order, so groups, whose hooks are added later, have been destroyed when this one runs.
    napi_add_env_cleanup_hook(env, &User::on_environment_end, this);
  }

  void leave() {
    if (std::exchange(has_left_, true) || --users > 0 || !mpi::can_finalize()) return;
    mpi::forget_retired();
    mpi::finish();
  }

 private:
  static void on_environment_end(void* user) { static_cast<User*>(user)->leave(); }

  inline static std::atomic<int> users = 0;
  bool has_left_ = false;
};

/// (canFinalize) => whether MPI can end, or has ended, regularly. Ends MPI unless other threads use it; if
/// `canFinalize` is false, this process never ends MPI. Called when this thread is about to end and has destroyed its
/// groups.
/// Environment hooks do not suffice, because process.exit() runs none on the main thread.
Napi::Value leave(const Napi::CallbackInfo& info) {
  if (!info[0].ToBoolean()) mpi::forbid_finalize();
  static_cast<User*>(info.Data())->leave();
  return Napi::Boolean::New(info.Env(), mpi::can_finalize());
}

/// () => { rank, size, version, calls }: this process's place in MPI_COMM_WORLD, and the number of earlier successful
/// calls of this function on all threads. Starts MPI.
Napi::Value world(const Napi::CallbackInfo& info) {
  static std::atomic<uint32_t> calls = 0;
  const mpi::World* found;
  try {
    found = &mpi::world();
  } catch (const coll::Failure& failure) {
    throw Napi::Error::New(info.Env(), failure.text);
  }
  auto object = Napi::Object::New(info.Env());
  object.Set("rank", found->rank);
  object.Set("size", found->size);
  object.Set("version", found->version);
  object.Set("calls", calls++);
  return object;
}

Napi::Object initialise(Napi::Env env, Napi::Object exports) {
  exports.Set("MpiGroup", MpiGroup::define(env));
  exports.Set("world", Napi::Function::New<world>(env, "world"));
  auto* const user = new User(env);  // never freed, because its hook may run after all finalizers
  exports.Set("leave", Napi::Function::New<leave>(env, "leave", user));
  return exports;
}

}  // namespace

NODE_API_MODULE(mpi, initialise)

}  // namespace ringwise::node
