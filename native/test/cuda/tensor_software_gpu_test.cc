// Tests how the software device runs blocks of threads, on which the tests of CUDA kernels depend: threads wait for
// each other at barriers, and what would hang or be undefined on a GPU makes the launch fail.
#include "test/software_gpu/blocks.cc"

#include "test/check.h"

using namespace ringwise::software_gpu;

namespace {

constexpr unsigned kMost = 256;
int values[kMost];

void sum_up(const void*) {
  const unsigned thread = threadIdx.x;
  values[thread] = static_cast<int>(thread);
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (thread < half) values[thread] += values[thread + half];
    __syncthreads();
  }
}

void swap_lanes(const void*) {
  int value = static_cast<int>(threadIdx.x);
  // Each warp makes a different number of exchanges.
  for (unsigned i = 0; i <= threadIdx.x / 32; i++) value = __shfl_xor_sync(0xffffffffu, value, 1 << (i % 5));
  values[threadIdx.x] = value;
}

void leave_early(const void*) {
  if (threadIdx.x < 3) __syncthreads();
}
void mix_waits(const void*) {
  if (threadIdx.x % 2)
    __syncthreads();
  else
    __shfl_xor_sync(0xffffffffu, 1, 1);
}
void use_stack(const void*) {
  volatile char deep[100 << 10];
  for (size_t i = 0; i < sizeof deep; i += 512) deep[i] = static_cast<char>(i);
  __syncthreads();
  values[threadIdx.x] = deep[512];
}

}  // namespace

TEST("all threads of a block meet at every barrier, block after block, at any number of threads") {
  for (const unsigned threads : {32u, 256u, 64u, 1u}) {
    CHECK(run_grid(&sum_up, nullptr, {3, 2, 1}, {threads, 1, 1}, true));
    CHECK_EQ(values[0], static_cast<int>(threads * (threads - 1) / 2));
  }
}

TEST("threads of a warp swap values, whatever other warps do") {
  CHECK(run_grid(&swap_lanes, nullptr, {1, 1, 1}, {kMost, 1, 1}, true));
  for (unsigned i = 0; i < kMost; i++) {
    unsigned lane = i;
    for (unsigned k = 0; k <= i / 32; k++) lane ^= 1u << (k % 5);
    CHECK_EQ(values[i], static_cast<int>(lane));
  }
}

TEST("threads that do not meet, or wait where no wait was declared, fail the launch; the next one runs") {
  for (const auto& body : {&leave_early, &mix_waits}) {
    CHECK(!run_grid(body, nullptr, {1, 1, 1}, {32, 1, 1}, true));
    CHECK(!run_grid(body, nullptr, {1, 1, 1}, {32, 1, 1}, false));
    CHECK(run_grid(&sum_up, nullptr, {1, 1, 1}, {32, 1, 1}, true));
  }
}

TEST("a kernel with large locals fits on its stack") {
  CHECK(run_grid(&use_stack, nullptr, {1, 1, 1}, {kMost, 1, 1}, true));
  CHECK_EQ(values[17], 0);
}

int main() { return ringwise::test::run_all(); }
