#include "test/software_gpu/asynchronous.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace ringwise::software_gpu {

namespace {

struct Mode {
  bool is_asynchronous = false, is_mixed = false;
  uint64_t seed = 0, state = 0;
};

/// Returns the mode that the environment chooses. Ends the process at a value that it does not know, because tests
/// would otherwise run in another mode, or be skipped.
Mode from_environment() {
  const char* const wanted = std::getenv("RINGWISE_SOFTWARE_GPU");
  if (!wanted || !*wanted) return {};
  char* end = nullptr;
  const bool is_known = std::strncmp(wanted, "async:", 6) == 0 && wanted[6] >= '0' && wanted[6] <= '9';
  const uint64_t seed = is_known ? std::strtoull(wanted + 6, &end, 10) : 0;
  if (!is_known || *end) {
    std::fprintf(stderr, "RINGWISE_SOFTWARE_GPU: expected async:SEED with a number as seed, got \"%s\".\n", wanted);
    std::abort();
  }
  return {true, false, seed, seed};
}

Mode& mode() {
  static Mode chosen = from_environment();
  return chosen;
}

/// Returns the next number of the generator (SplitMix64).
uint64_t next() {
  uint64_t x = mode().state += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

bool is_asynchronous() { return mode().is_asynchronous; }

void set_seed(uint64_t seed) { mode() = {true, true, seed, seed}; }

void mix_seed(int device) {
  if (mode().is_mixed) return;
  mode().is_mixed = true;
  mode().state += static_cast<uint64_t>(device) << 32;
}

uint32_t below(uint32_t end) { return static_cast<uint32_t>(next() % end); }

std::string device_name() {
  return is_asynchronous() ? "software GPU, async:" + std::to_string(mode().seed) : "software GPU";
}

}  // namespace ringwise::software_gpu
