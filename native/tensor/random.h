// The stream of random numbers, specified in docs/decisions/2026-11-21-random-stream.md: word w of a stream is word
// w % 4 of the Philox4x32-10 block `offset` + w / 4 under the key `seed`.
#pragma once

#include <cstdint>

namespace ringwise::tensor {

struct Stream {
  uint64_t seed = 0;
  uint64_t offset = 0;  // blocks of four words
  // Set while a step is captured (CUDA alone): two numbers in device memory, the seed, and the offset at which this run
  // of the step begins. `seed` is not used then, and `offset` counts from that offset.
  const double* live = nullptr;
};

}  // namespace ringwise::tensor
