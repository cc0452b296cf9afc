#include "node/coll/coll_simulation.h"

#include <string>
#include <vector>

#include "coll/plan/choose.h"
#include "sim/simulation.h"

namespace ringwise::node {

namespace {

double number_of(const Napi::Object& object, const char* name) { return object.Get(name).ToNumber().DoubleValue(); }

sim::Cost cost_of(const Napi::Object& link) {
  return {number_of(link, "latencyUs") * 1e3, number_of(link, "overheadUs") * 1e3, number_of(link, "nsPerByte")};
}

coll::Hosts hosts_of(int ranks, int per_host) {
  std::vector<int> host_of;
  for (int rank = 0; rank < ranks; ++rank) host_of.push_back(rank / per_host);
  return coll::Hosts(host_of);
}

/// Runs the case on this thread, and makes the plans on others.
Napi::Value simulate(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const auto options = info[0].As<Napi::Object>();
  const auto whole = [&](const char* name) { return options.Get(name).ToNumber().Int32Value(); };
  const coll::Hosts hosts = hosts_of(whole("ranks"), whole("perHost"));
  const coll::Op op{.verb = static_cast<coll::Verb>(whole("verb")),
                    .dtype = static_cast<DType>(whole("dtype")),
                    .wire = static_cast<coll::Wire>(whole("wire")),
                    .count = static_cast<uint64_t>(number_of(options, "count"))};
  const coll::Topology first{0, &hosts};
  const std::string name = options.Get("algorithm").ToString().Utf8Value();
  const coll::Algorithm* algorithm =
      name.empty() ? &coll::Choices().choose(op, first) : coll::find_algorithm(op.verb, name);
  if (algorithm == nullptr || !algorithm->fits(op, first)) return env.Null();

  auto result = Napi::Object::New(env);
  result.Set("algorithm", algorithm->name);
  const auto [messages, pairs] = sim::expected_traffic(op, *algorithm, hosts, true);
  const double most = number_of(options, "maxMessages");
  result.Set("messages", messages);
  if (messages > most || pairs > most / sim::kPairLimitDivisor) return result;
  const sim::NetworkCosts costs{cost_of(options.Get("between").As<Napi::Object>()),
                                cost_of(options.Get("inside").As<Napi::Object>())};
  try {
    const sim::Outcome outcome = sim::simulate(op, *algorithm, hosts, costs, true);
    result.Set("timeUs", outcome.time / 1e3);
    result.Set("messages", static_cast<double>(outcome.messages));
    result.Set("linkBytesMax", static_cast<double>(outcome.between_hosts.max));
  } catch (const std::exception& error) {
    throw Napi::Error::New(env, error.what());
  }
  return result;
}

}  // namespace

Napi::Function define_simulate(Napi::Env env) { return Napi::Function::New<simulate>(env, "simulate"); }

}  // namespace ringwise::node
