// The words of a random stream by position (docs/decisions/2026-11-21-random-stream.md): the same bits as cpu/philox.h.
#pragma once

#include "tensor/cuda/kernels/shared/element.cuh"

namespace ringwise::tensor::cuda {

struct Words {
  uint32_t at[4];
};

/// Returns the four words that Philox4x32-10 makes from the key `seed` and the counter `block`.
__device__ inline Words philox(uint64_t seed, uint64_t block) {
  uint32_t c0 = static_cast<uint32_t>(block), c1 = static_cast<uint32_t>(block >> 32), c2 = 0, c3 = 0;
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
#pragma unroll
  for (int round = 0; round < 10; round++) {
    const uint64_t a = uint64_t{0xd2511f53u} * c0, b = uint64_t{0xcd9e8d57u} * c2;
    c0 = static_cast<uint32_t>(b >> 32) ^ c1 ^ k0;
    c2 = static_cast<uint32_t>(a >> 32) ^ c3 ^ k1;
    c1 = static_cast<uint32_t>(b);
    c3 = static_cast<uint32_t>(a);
    k0 += 0x9e3779b9u;
    k1 += 0xbb67ae85u;
  }
  return {{c0, c1, c2, c3}};
}

/// The key of a stream and its first block of four words.
struct Position {
  uint64_t seed, offset;
};
/// If `live` is set, device memory has the seed and the block from which `offset` counts.
__device__ inline Position position_of(const StreamArguments& x) {
  if (!x.live) return {x.seed, x.offset};
  return {static_cast<uint64_t>(x.live[0]), static_cast<uint64_t>(x.live[1]) + x.offset};
}

/// Returns four words from index `word` on, counted from `at`. They may lie in two blocks.
__device__ inline Words words_at(const Position& at, uint64_t word) {
  const uint64_t block = at.offset + word / 4;
  const int skip = static_cast<int>(word % 4);
  const Words first = philox(at.seed, block);
  if (skip == 0) return first;
  const Words second = philox(at.seed, block + 1);
  Words result;
#pragma unroll
  for (int i = 0; i < 4; i++) {
#pragma unroll
    for (int s = 1; s < 4; s++) {
      if (s == skip) result.at[i] = i + s < 4 ? first.at[(i + s) % 4] : second.at[(i + s) % 4];
    }
  }
  return result;
}

}  // namespace ringwise::tensor::cuda
