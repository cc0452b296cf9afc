// Tests what base/os asks of the operating system, and the instruction sets that base/target.h finds.
#include <array>
#include <string>

#include "base/os/environment.h"
#include "base/os/library.h"
#include "base/os/random.h"
#include "base/target.h"
#include "test/check.h"

using namespace ringwise;

namespace {

int somewhere() { return 0; }

}  // namespace

TEST("random bytes differ") {
  std::array<unsigned char, 32> first{}, second{};
  os::random_bytes(first.data(), first.size());
  os::random_bytes(second.data(), second.size());
  CHECK(first != second);
  CHECK(std::string(first.begin(), first.end()) != std::string(first.size(), '\0'));
}

TEST("a variable that is set keeps its value") {
  os::default_variable("RINGWISE_OS_TEST", "first");
  os::default_variable("RINGWISE_OS_TEST", "second");
  CHECK(os::variable("RINGWISE_OS_TEST") == "first");
  CHECK(os::variable("RINGWISE_OS_TEST_THAT_IS_NOT_SET").empty());
}

TEST("libraries and paths are found") {
  const std::string self = os::file_of(reinterpret_cast<const void*>(&somewhere));
  const std::string folder = self.substr(0, self.rfind('/') + 1);
  CHECK(self.substr(folder.size()).starts_with("os_test"));
  const auto found = os::matching_paths(folder + "os_te*");
  CHECK(found.size() == 1 && found[0] == self);
  CHECK(os::matching_paths(folder.substr(0, folder.size() - 2) + "*/os_te*").size() >= 1);
  CHECK(os::matching_paths(folder + "no such file *").empty());
  std::string reason;
  CHECK(os::open_library("/nowhere/lib.so", reason) == nullptr);
  CHECK(reason.starts_with("/nowhere/lib.so"));
  CHECK(os::loaded_library("nowhere.so") == nullptr);
  os::keep_loaded(reinterpret_cast<const void*>(&somewhere));
}

TEST("the level is what the compiler's own library finds") {
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(RINGWISE_BASELINE_ONLY)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  CHECK(best_cpu_level() == (avx512 ? CpuLevel::Avx512 : avx2 ? CpuLevel::Avx2 : CpuLevel::Baseline));
#elif !defined(__x86_64__)
  CHECK(best_cpu_level() == CpuLevel::Baseline);
#endif
}

int main() { return ringwise::test::run_all(); }
