// The program simulate. For each number of ranks, size and algorithm of one verb it prints two JSON lines: one when the
// case begins, and one with the result; or only one, if the case is skipped. bench/simulate.ts runs it and makes the
// table and plots. bench/simulate/options.ts documents the options, and checks that numeric options are numbers.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "coll/handshake/signature.h"
#include "sim/check.h"
#include "sim/formulas.h"
#include "sim/simulation.h"

namespace {

using namespace ringwise;
using coll::Verb;

/// In a check with real data, a rank's buffer has at most this many bytes divided by the number of ranks, but may
/// always have 64 bytes for each rank.
constexpr size_t kCheckBytes = 1 << 20;

/// The options, `--name value`, with their defaults.
std::map<std::string, std::string> options = {
    {"verb", "allReduce"},
    {"algorithms", "all"},
    {"ranks", "2,4,8,16"},
    {"bytes", "1024,65536,4194304"},
    {"per-host", "1"},
    {"latency-us", "20"},
    {"overhead-us", "1"},
    {"gbit", "10"},
    {"inside-latency-us", "1"},
    {"inside-overhead-us", "0.2"},
    {"inside-gbit", "80"},
    {"pod-hosts", "0"},
    {"pod-gbit", "0"},
    {"check-ranks", "128"},
    {"max-messages", "600000000"},
    {"handshakes", "0"},
};

double number(const char* name) { return std::atof(options[name].c_str()); }
int whole(const char* name) { return std::atoi(options[name].c_str()); }

std::vector<std::string> list(const char* name) {
  std::vector<std::string> items;
  std::string rest = options[name];
  for (size_t comma; (comma = rest.find(',')) != std::string::npos; rest.erase(0, comma + 1))
    items.push_back(rest.substr(0, comma));
  items.push_back(rest);
  return items;
}

/// Converts gigabits per second to nanoseconds per byte; 0 means no limit.
double per_byte(double gbit) { return gbit > 0 ? 8 / gbit : 0; }

sim::NetworkCosts network_costs() {
  return {{number("latency-us") * 1e3, number("overhead-us") * 1e3, per_byte(number("gbit"))},
          {number("inside-latency-us") * 1e3, number("inside-overhead-us") * 1e3, per_byte(number("inside-gbit"))},
          whole("pod-hosts"),
          per_byte(number("pod-gbit"))};
}

/// Throws an error that names the option and the expected values.
[[noreturn]] void refuse(const char* option, const std::string& expected) {
  throw std::invalid_argument(std::string("--") + option + ": expected " + expected + ", got \"" + options[option] +
                              "\"");
}

Verb find_verb() {
  std::string known;
  for (int i = 0; i < coll::kVerbCount; ++i) {
    const Verb verb = static_cast<Verb>(i);
    if (verb == Verb::Send || verb == Verb::Recv || verb == Verb::Barrier) continue;
    if (options["verb"] == coll::name_of(verb)) return verb;
    known += (known.empty() ? "" : ", ") + std::string(coll::name_of(verb));
  }
  refuse("verb", "one of " + known);
}

std::vector<const coll::Algorithm*> find_algorithms(Verb verb) {
  std::vector<const coll::Algorithm*> found;
  std::string known;
  for (const coll::Algorithm& algorithm : coll::algorithms_of(verb))
    known += (known.empty() ? "" : ", ") + std::string(algorithm.name);
  for (const std::string& name : list("algorithms")) {
    if (name == "all") {
      for (const coll::Algorithm& algorithm : coll::algorithms_of(verb)) found.push_back(&algorithm);
    } else if (const coll::Algorithm* algorithm = coll::find_algorithm(verb, name)) {
      found.push_back(algorithm);
    } else {
      refuse("algorithms", "all, or some of " + known);
    }
  }
  return found;
}

/// Returns the verb's `count` of uint32 elements if its larger side has `bytes` bytes.
size_t count_of(Verb verb, size_t bytes, int ranks) {
  const bool whole_buffer = verb == Verb::AllReduce || verb == Verb::Broadcast || verb == Verb::Reduce;
  return bytes / sizeof(uint32_t) / (whole_buffer ? 1 : static_cast<size_t>(ranks));
}

/// Checks an algorithm with real data, in smaller buffers if all of them together would be too large.
void check_data(Verb verb, const coll::Algorithm& algorithm, const coll::Hosts& hosts, size_t bytes) {
  const size_t ranks = static_cast<size_t>(hosts.size());
  const size_t checked = std::min(bytes, std::max(kCheckBytes / ranks, ranks * 64));
  const std::string wrong = sim::check(verb, algorithm, hosts, count_of(verb, checked, hosts.size()));
  if (!wrong.empty()) throw std::logic_error(std::string(algorithm.name) + ": " + wrong);
}

void run(Verb verb, const coll::Algorithm& algorithm, const coll::Hosts& hosts, size_t bytes,
         const sim::NetworkCosts& costs) {
  const int ranks = hosts.size();
  const bool handshakes = whole("handshakes") != 0;
  const coll::Op op{.verb = verb, .dtype = DType::UInt32, .count = count_of(verb, bytes, ranks)};
  const coll::Topology middle{ranks / 2, &hosts};
  const std::string row = std::string("{\"verb\":\"") + coll::name_of(verb) + "\",\"algorithm\":\"" + algorithm.name +
                          "\",\"ranks\":" + std::to_string(ranks) + ",\"hosts\":" + std::to_string(hosts.count()) +
                          ",\"bytes\":" + std::to_string(bytes);
  if (op.count == 0) {
    std::printf("%s,\"skipped\":\"less than one element per rank\"}\n", row.c_str());
    return;
  }
  const auto [messages, pairs] = sim::expected_traffic(op, algorithm, hosts, handshakes);
  const double most = number("max-messages");
  if (messages > most || pairs > most / sim::kPairLimitDivisor) {
    std::printf("%s,\"skipped\":\"%.3g M messages, %.0f peers per rank\"}\n", row.c_str(), messages / 1e6,
                pairs / ranks);
    return;
  }
  std::printf("%s,\"expectedMessages\":%.0f}\n", row.c_str(), messages);
  std::fflush(stdout);
  const sim::Outcome outcome = simulate(op, algorithm, hosts, costs, handshakes);
  const bool is_checked = ranks <= whole("check-ranks");
  if (is_checked) check_data(verb, algorithm, hosts, bytes);
  std::printf("%s,\"timeUs\":%.9g", row.c_str(), outcome.time / 1e3);
  const bool has_formula = hosts.count() == ranks && costs.pod_hosts == 0 && !handshakes;
  const auto expected = has_formula ? sim::formula(verb, algorithm, ranks, bytes, costs.between_hosts) : std::nullopt;
  if (expected) std::printf(",\"formulaUs\":%.9g", *expected / 1e3);
  std::printf(
      ",\"messages\":%llu,\"linkBytesMax\":%zu,\"linkBytesTotal\":%zu,\"insideBytesMax\":%zu,\"insideBytesTotal\":%zu",
      static_cast<unsigned long long>(outcome.messages), outcome.between_hosts.max, outcome.between_hosts.total,
      outcome.inside_hosts.max, outcome.inside_hosts.total);
  std::printf(",\"isChosen\":%s", &coll::Choices().choose(op, middle) == &algorithm ? "true" : "false");
  std::printf(",\"checked\":\"%s\"}\n", is_checked ? "data" : "messages");
  std::fflush(stdout);
}

/// Returns whether the algorithm is simulated. With one rank per host, hierarchical is skipped, because it equals its
/// algorithm between hosts.
bool takes_part(const coll::Op& op, const coll::Algorithm& algorithm, const coll::Hosts& hosts) {
  if (options["algorithms"] == "all" && hosts.count() == hosts.size() && algorithm.name == std::string("hierarchical"))
    return false;
  return algorithm.fits(op, {0, &hosts});
}

void run_all() {
  const Verb verb = find_verb();
  const sim::NetworkCosts costs = network_costs();
  for (const std::string& ranks : list("ranks")) {
    std::vector<int> host_of;
    for (int rank = 0; rank < std::atoi(ranks.c_str()); ++rank) host_of.push_back(rank / whole("per-host"));
    const coll::Hosts hosts(host_of);
    for (const std::string& text : list("bytes")) {
      const size_t bytes = std::strtoull(text.c_str(), nullptr, 10);
      for (const auto* algorithm : find_algorithms(verb)) {
        if (takes_part({.verb = verb, .count = 1}, *algorithm, hosts)) run(verb, *algorithm, hosts, bytes, costs);
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    for (int i = 1; i < argc; i += 2) {
      const std::string name = std::string(argv[i]).substr(0, 2) == "--" ? argv[i] + 2 : "";
      if (!options.contains(name) || i + 1 == argc)
        throw std::invalid_argument(std::string("unknown option or no value: ") + argv[i]);
      options[name] = argv[i + 1];
    }
    run_all();
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "simulate: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "simulate: %s\n", error.what());
    return 1;
  }
  return 0;
}
