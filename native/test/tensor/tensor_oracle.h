// Test data for the tests of the tensor kernels: pseudorandom numbers, memory that ends at a page without access, and
// the kernels of every instruction set that this CPU has.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <new>
#include <vector>

#include "tensor/kernels.h"
#include "test/check.h"

namespace ringwise::test {

inline std::vector<const tensor::Kernels*> all_levels() {
  std::vector<const tensor::Kernels*> all;
  for (int level = 0; level <= static_cast<int>(best_cpu_level()); level++) {
    all.push_back(&tensor::kernels_for(static_cast<tensor::CpuLevel>(level)));
  }
  return all;
}

/// Returns pseudorandom numbers in [-2, 2). The vector allocates exactly what it holds, so AddressSanitizer notices an
/// access beyond its end.
inline std::vector<float> noise(size_t count, uint32_t seed = 1) {
  std::vector<float> values(count);
  uint32_t state = seed * 7919 + 12345;
  for (float& value : values) {
    state = state * 1664525 + 1013904223;
    value = static_cast<float>(state >> 8) / (1 << 22) - 2;
  }
  return values;
}

/// Returns integers from -8 to 7. Sums and products of these are exact in any order.
inline std::vector<float> whole_numbers(size_t count, uint32_t seed = 1) {
  std::vector<float> values = noise(count, seed);
  for (float& value : values) value = std::trunc(value * 4);
  return values;
}

/// Holds floats that end where a page without access begins. The first access beyond their end stops the process, also
/// in builds without sanitizers.
class Guarded {
 public:
  explicit Guarded(const std::vector<float>& values) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE)), bytes = values.size() * sizeof(float);
    const size_t room = (bytes + page - 1) / page * page;
    mapped_ = room + page;
    base_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base_ == MAP_FAILED) throw std::bad_alloc();
    char* end = static_cast<char*>(base_) + room;
    mprotect(end, page, PROT_NONE);
    data_ = reinterpret_cast<float*>(end - bytes);
    std::copy(values.begin(), values.end(), data_);
  }
  ~Guarded() { munmap(base_, mapped_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  float* data() const { return data_; }

 private:
  void* base_;
  size_t mapped_;
  float* data_;
};

}  // namespace ringwise::test
