// Times the host backend's collectives from C++, without Node: forks the ranks, connects them, and prints one JSON line
// per size. Calls run back to back, each timed on every rank; calls of less than 5 µs are timed in batches of 20.
// p50_us is the median, over the calls or batches, of the slowest rank's time for a call; mean_us is the longest of the
// ranks' means. The results of every size (not of barrier) are checked before and after it is timed.
//
//   collectives_bench --ranks 2 --verb all_reduce --min 4 --max 268435456 --factor 4 [--alloc] [--seconds 0.3] [--pin]
//                     [--wire bfloat16|int8 [--residual]]
//                     [--per-host 1 [--netns nsA,nsB --addresses 10.77.0.1,10.77.0.2]]
//
// --per-host puts the ranks on hosts of so many each, which talk TCP over loopback, or, with --netns, between network
// namespaces (needs root).
// `bytes` counts the vector (all_reduce, broadcast, reduce) or the whole of the larger array (all other verbs), as in
// nccl-tests.
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/time/clock.h"
#include "coll/engine/host_group.h"
#include "coll/reduce/wire.h"

using namespace ringwise;
using coll::HostGroup;
using coll::Op;
using coll::Verb;

namespace {

constexpr int kMaxRanks = 64;
constexpr int64_t kMeetingNs = 60'000 * kMillisecond;  // most time between the first and the last rank at a rendezvous

struct Options {
  int ranks = 2;
  std::string verb = "all_reduce";
  size_t min = 4, max = 256 << 20, factor = 4;
  bool alloc = false, pin = false, residual = false;
  coll::Wire wire = coll::Wire::Full;
  double seconds = 0.3;
  int per_host = kMaxRanks;
  std::vector<std::string> netns, addresses;  // by host; empty for the loopback address

  int host_of(int rank) const { return rank / per_host; }
  std::string address_of(int rank) const { return addresses.empty() ? "127.0.0.1" : addresses.at(host_of(rank)); }
};

constexpr int kMaxSamples = 4096;

/// Memory that the ranks share to meet and to compare their times, apart from the transports under test.
struct Shared {
  struct Card {
    char unix_name[64];
    uint16_t port;
  } cards[kMaxRanks];
  std::atomic<int> arrived{0};
  std::atomic<int> generation{0};
  float microseconds[kMaxRanks][kMaxSamples];
};

/// Waits for all ranks. Ends this process if one does not come, because it has ended.
void rendezvous(Shared& shared, int ranks) {
  const int generation = shared.generation;
  if (shared.arrived.fetch_add(1) + 1 == ranks) {
    shared.arrived = 0;
    ++shared.generation;
  }
  const int64_t deadline_ns = now_ns() + kMeetingNs;
  while (shared.generation == generation) {
    if (now_ns() > deadline_ns) {
      std::fprintf(stderr, "collectives_bench: %d of %d ranks have come within a minute\n", shared.arrived.load(),
                   ranks);
      std::_Exit(1);
    }
    sched_yield();
  }
}

struct Plan {
  Verb verb;
  bool separate;                              // input and output are two arrays
  size_t (*count)(size_t all, size_t ranks);  // returns Op::count for `all` elements in the larger array
};

const std::map<std::string, Plan>& plans() {
  static const auto all = [](size_t n, size_t) { return n; };
  static const auto part = [](size_t n, size_t ranks) { return n / ranks; };
  static const std::map<std::string, Plan> table{
      {"all_reduce", {Verb::AllReduce, false, all}},
      {"broadcast", {Verb::Broadcast, false, all}},
      {"reduce", {Verb::Reduce, false, all}},
      {"all_gather", {Verb::AllGather, true, part}},
      {"reduce_scatter", {Verb::ReduceScatter, true, part}},
      {"gather", {Verb::Gather, true, part}},
      {"scatter", {Verb::Scatter, true, part}},
      {"all_to_all", {Verb::AllToAll, true, part}},
      {"barrier", {Verb::Barrier, false, all}},
  };
  return table;
}

class Bench {
 public:
  Bench(const Options& options, Shared& shared, int rank, HostGroup& group)
      : options_(options), plan_(plans().at(options.verb)), shared_(shared), rank_(rank), group_(group) {}

  void measure(size_t bytes) {
    const size_t all = std::max<size_t>(1, bytes / sizeof(float));
    op_.verb = plan_.verb;
    op_.dtype = DType::Float32;
    op_.wire = options_.wire;
    residual_.assign(options_.residual ? all : 0, 0);
    op_.residual = options_.residual ? residual_.data() : nullptr;
    op_.count = plan_.count(all, options_.ranks);
    if (op_.count == 0 && plan_.verb != Verb::Barrier) return;
    op_.timeout_ns = 60'000 * kMillisecond;
    input_ = memory(all, 0);
    output_ = plan_.separate ? memory(all, 1) : input_;
    op_.input = reinterpret_cast<std::byte*>(input_);
    op_.output = reinterpret_cast<std::byte*>(output_);
    const bool root_only = plan_.verb == Verb::Reduce && rank_ != 0;
    if (root_only) op_.output = nullptr;

    int wrong = check(all);
    for (int i = 0; i < 3; ++i) call();
    const double estimate = one_call();
    // Short calls are timed in batches, because reading the clock costs some 25 ns.
    const int batch = estimate < 5e-6 ? 20 : 1;
    const int samples = std::clamp(static_cast<int>(options_.seconds / estimate / batch), 9, kMaxSamples);
    rendezvous(shared_, options_.ranks);
    for (int i = 0; i < samples; ++i) {
      const int64_t begin = now_ns();
      for (int j = 0; j < batch; ++j) call();
      shared_.microseconds[rank_][i] = static_cast<float>(static_cast<double>(now_ns() - begin) / batch / 1e3);
    }
    wrong += check(all);
    rendezvous(shared_, options_.ranks);
    if (rank_ == 0) report(all * sizeof(float), samples, samples * batch, wrong);
    rendezvous(shared_, options_.ranks);
  }

 private:
  float* memory(size_t count, int index) {
    const size_t bytes = std::max<size_t>(count * sizeof(float), 4096);
    if (options_.alloc) {
      if (held_[index] != nullptr) group_.arena()->release(held_[index]);
      held_[index] = group_.arena()->allocate(bytes);
      return reinterpret_cast<float*>(held_[index]);
    }
    private_[index].reset(static_cast<float*>(std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096)));
    std::memset(private_[index].get(), 0, bytes);
    return private_[index].get();
  }

  void call() {
    op_.seq++;
    if (const auto failure = group_.run(op_)) {
      std::fprintf(stderr, "rank %d: %s\n", rank_, failure->text.c_str());
      std::_Exit(1);
    }
  }

  /// Returns the seconds of one call on the slowest rank, the same on all ranks.
  double one_call() {
    rendezvous(shared_, options_.ranks);
    const int64_t begin = now_ns();
    call();
    call();
    shared_.microseconds[rank_][0] = static_cast<float>(now_ns() - begin) / 2e3f;
    rendezvous(shared_, options_.ranks);
    float slowest = 0.1f;
    for (int rank = 0; rank < options_.ranks; ++rank) slowest = std::max(slowest, shared_.microseconds[rank][0]);
    rendezvous(shared_, options_.ranks);
    return static_cast<double>(slowest) * 1e-6;
  }

  /// Returns element i of the input of `rank`: a small integer, so that sums, and sums over a wire, are exact.
  /// Neighbouring places, and ranks, mostly have different ones. Those for a wire add up to 127 at most over all ranks.
  float value(int rank, size_t i) const {
    const size_t range = options_.wire == coll::Wire::Full ? 1021 : 127 / static_cast<size_t>(options_.ranks) + 1;
    return static_cast<float>((i * 7 + static_cast<size_t>(rank) * 131) % range);
  }

  /// Runs the verb once on known values. Returns the number of wrong elements on this rank.
  int check(size_t all) {
    const int n = options_.ranks;
    const size_t part = op_.count;
    for (size_t i = 0; i < all; ++i) input_[i] = value(rank_, i);
    call();
    const auto sum = [&](size_t i) {
      float total = 0;
      for (int rank = 0; rank < n; ++rank) total += value(rank, i);
      return total;
    };
    const auto count_wrong = [&](size_t count, auto&& expected) {
      int wrong = 0;
      for (size_t i = 0; i < count; ++i) wrong += output_[i] != expected(i);
      return wrong;
    };
    int wrong = 0;
    switch (plan_.verb) {
      case Verb::AllReduce: wrong = count_wrong(all, sum); break;
      case Verb::Reduce:
        if (rank_ == 0) wrong = count_wrong(all, sum);
        break;
      case Verb::Broadcast: wrong = count_wrong(all, [&](size_t i) { return value(0, i); }); break;
      case Verb::AllGather:
      case Verb::Gather:
        if (rank_ == 0 || plan_.verb == Verb::AllGather) {
          wrong = count_wrong(part * n, [&](size_t i) { return value(static_cast<int>(i / part), i % part); });
        }
        break;
      case Verb::ReduceScatter: wrong = count_wrong(part, [&](size_t i) { return sum(part * rank_ + i); }); break;
      case Verb::Scatter: wrong = count_wrong(part, [&](size_t i) { return value(0, part * rank_ + i); }); break;
      case Verb::AllToAll:
        wrong =
            count_wrong(part * n, [&](size_t i) { return value(static_cast<int>(i / part), part * rank_ + i % part); });
        break;
      default: break;
    }
    std::memset(input_, 0, all * sizeof(float));
    rendezvous(shared_, n);
    return wrong;
  }

  void report(size_t bytes, int samples, int iterations, int wrong) {
    std::vector<float> slowest(samples);
    double mean = 0;
    for (int rank = 0; rank < options_.ranks; ++rank) {
      const float* own = shared_.microseconds[rank];
      for (int i = 0; i < samples; ++i) slowest[i] = std::max(slowest[i], own[i]);
      mean = std::max(mean, std::accumulate(own, own + samples, 0.0) / samples);
    }
    std::sort(slowest.begin(), slowest.end());
    std::printf(
        "{\"verb\":\"%s\",\"ranks\":%d,\"bytes\":%zu,\"alloc\":%s,\"iters\":%d,\"p50_us\":%.3f,\"mean_us\":%.3f,"
        "\"wrong\":%d}\n",
        options_.verb.c_str(), options_.ranks, bytes, options_.alloc ? "true" : "false", iterations,
        static_cast<double>(slowest[samples / 2]), mean, wrong);
    std::fflush(stdout);
  }

  struct Free {
    void operator()(float* p) const { std::free(p); }
  };

  const Options& options_;
  const Plan& plan_;
  Shared& shared_;
  const int rank_;
  HostGroup& group_;
  Op op_;
  std::unique_ptr<float, Free> private_[2];
  std::byte* held_[2] = {};  // in the arena
  std::vector<float> residual_;
  float* input_ = nullptr;
  float* output_ = nullptr;
};

/// Moves this process to a network namespace.
void enter(const std::string& netns) {
  const Fd fd(open(("/run/netns/" + netns).c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd || setns(fd.get(), CLONE_NEWNET) != 0) {
    std::perror(netns.c_str());
    std::_Exit(1);
  }
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> items;
  std::istringstream stream(list);
  for (std::string item; std::getline(stream, item, ',');) items.push_back(item);
  return items;
}

int run_rank(const Options& options, Shared& shared, int rank) {
  if (options.pin) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(rank % static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)), &set);
    sched_setaffinity(0, sizeof set, &set);
  }
  if (!options.netns.empty()) enter(options.netns.at(options.host_of(rank)));
  HostGroup group(rank, options.ranks, options.address_of(rank), [] {});
  auto& card = shared.cards[rank];
  std::snprintf(card.unix_name, sizeof card.unix_name, "%s", group.listener().unix_name().c_str());
  card.port = group.listener().port();
  rendezvous(shared, options.ranks);
  std::vector<coll::PeerAddress> peers;
  for (int peer = 0; peer < options.ranks; ++peer) {
    if (peer == rank) continue;
    const auto& theirs = shared.cards[peer];
    const bool local = options.host_of(peer) == options.host_of(rank);
    peers.push_back({peer, local, theirs.unix_name, options.address_of(peer), theirs.port, {}, {}});
  }
  group.wait(group.connect(std::move(peers), 10'000 * kMillisecond));
  Bench bench(options, shared, rank, group);
  for (size_t bytes = options.min; bytes <= options.max; bytes *= options.factor) bench.measure(bytes);
  group.wait(group.close());
  return 0;
}

coll::Wire wire_of(const std::string& name) {
  for (int wire = 0; wire < coll::kWireCount; ++wire) {
    if (name == coll::name_of(static_cast<coll::Wire>(wire))) return static_cast<coll::Wire>(wire);
  }
  std::fprintf(stderr, "collectives_bench: no wire %s\n", name.c_str());
  std::exit(2);
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    const auto next = [&] { return i + 1 < argc ? argv[++i] : ""; };
    if (name == "--ranks")
      options.ranks = std::atoi(next());
    else if (name == "--verb")
      options.verb = next();
    else if (name == "--min")
      options.min = std::strtoull(next(), nullptr, 10);
    else if (name == "--max")
      options.max = std::strtoull(next(), nullptr, 10);
    else if (name == "--factor")
      options.factor = std::strtoull(next(), nullptr, 10);
    else if (name == "--seconds")
      options.seconds = std::atof(next());
    else if (name == "--alloc")
      options.alloc = true;
    else if (name == "--wire")
      options.wire = wire_of(next());
    else if (name == "--residual")
      options.residual = true;
    else if (name == "--pin")
      options.pin = true;
    else if (name == "--per-host")
      options.per_host = std::max(1, std::atoi(next()));
    else if (name == "--netns")
      options.netns = split(next());
    else if (name == "--addresses")
      options.addresses = split(next());
    else
      std::fprintf(stderr, "collectives_bench: unknown option %s\n", name.c_str()), std::exit(2);
  }
  if (options.ranks < 1 || options.ranks > kMaxRanks || options.factor < 2 || plans().count(options.verb) == 0 ||
      (options.residual && options.wire != coll::Wire::Int8)) {
    std::fprintf(stderr,
                 "collectives_bench: 1 to %d ranks, a factor of at least 2, a collective of the C ABI, a residual "
                 "with --wire int8 only\n",
                 kMaxRanks);
    std::exit(2);
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  auto& shared = *new (memory) Shared;
  std::vector<pid_t> children;
  for (int rank = 1; rank < options.ranks; ++rank) {
    const pid_t child = fork();
    if (child == 0) std::_Exit(run_rank(options, shared, rank));
    children.push_back(child);
  }
  int result = run_rank(options, shared, 0);
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) result = 1;
  }
  return result;
}
