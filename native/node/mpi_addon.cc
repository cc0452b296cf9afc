// mpi-*.node: the mpi backend for JavaScript, compiled for one MPI. One exported class, MpiGroup; see
// packages/collectives/src/native.ts for its typed surface. Everything here runs on the JavaScript thread.
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "mpi/channel.h"
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
                        InstanceMethod("run", &MpiGroup::run), InstanceMethod("wait", &MpiGroup::wait),
                        InstanceMethod("abort", &MpiGroup::abort), InstanceMethod("close", &MpiGroup::close),
                        InstanceMethod("destroy", &MpiGroup::destroy)});
  }

  /// (rank, size, call: Float64Array, settle: (id, failure, source) => void)
  explicit MpiGroup(const Napi::CallbackInfo& info) : LaneObject(info, info[2], info[3]) {
    group_ = std::make_unique<mpi::MpiGroup>(info[0].ToNumber().Int32Value(), info[1].ToNumber().Int32Value(), [this] { notify(); });
  }

 private:
  /// (members: the ranks of the group among all of MPI's, tag)
  Napi::Value connect(const Napi::CallbackInfo& info) {
    const auto list = info[0].As<Napi::Array>();
    std::vector<int> members;
    for (uint32_t i = 0; i < list.Length(); ++i) members.push_back(list.Get(i).ToNumber().Int32Value());
    return expect(info.Env(), group(info.Env()).connect(std::move(members), info[1].ToNumber().Int32Value()));
  }

  Napi::Value start(const Napi::CallbackInfo& info) {
    Counts counts;
    const uint64_t id = group(info.Env()).start(read_op(info, counts));
    return started(info.Env(), id, std::move(counts));
  }

  /// The failure; or null, or the sender's rank for a receive.
  Napi::Value run(const Napi::CallbackInfo& info) {
    Counts counts;
    const mpi::Ended ended = group(info.Env()).run(read_op(info, counts));
    if (!ended.failure && ended.source >= 0) return Napi::Number::New(info.Env(), ended.source);
    return {info.Env(), to_js(info.Env(), ended.failure)};
  }
};

void finish(void*) {
  mpi::forget_retired();
  mpi::finish();
}

/// () => { rank, size, version }: this process among all that were started together. Starts MPI.
Napi::Value world(const Napi::CallbackInfo& info) {
  static std::atomic<bool> is_hooked = false;  // by the thread that comes first, which is the one that MPI is started on
  const mpi::World* found;
  try {
    found = &mpi::world();
  } catch (const coll::Failure& failure) {
    throw Napi::Error::New(info.Env(), failure.text);
  }
  // Hooks run in the reverse order: groups, whose hooks come later, are gone when this one runs.
  if (!is_hooked.exchange(true)) napi_add_env_cleanup_hook(info.Env(), finish, nullptr);
  auto object = Napi::Object::New(info.Env());
  object.Set("rank", found->rank);
  object.Set("size", found->size);
  object.Set("version", found->version);
  return object;
}

Napi::Object initialise(Napi::Env env, Napi::Object exports) {
  exports.Set("MpiGroup", MpiGroup::define(env));
  exports.Set("world", Napi::Function::New<world>(env, "world"));
  return exports;
}

}  // namespace

NODE_API_MODULE(mpi, initialise)

}  // namespace ringwise::node
