// Products of 16-bit factors on tensor cores: a warp multiplies a left factor of 16 × 16 by a right one of 16 × 8, and
// adds to sums of 16 × 8 in float32. The elements of each are spread over the threads of the warp as PTX's
// mma.m16n8k16 has them. With g = lane / 4 and t = lane % 4, a thread has
//
//   left:   rows g and g + 8, columns 2 t, 2 t + 1, 2 t + 8, 2 t + 9
//   right:  rows 2 t, 2 t + 1, 2 t + 8, 2 t + 9, column g
//   sums:   rows g and g + 8, columns 2 t, 2 t + 1
//
// So two neighbouring blocks of sums, rounded to 16 bits, are a left factor without an exchange between threads.
#pragma once

#include "tensor/cuda/kernels/shared/element.cuh"

namespace ringwise::tensor::cuda {

struct Left {
  uint32_t at[4];  // {row g, row g + 8} for columns 2 t …, then for columns 2 t + 8 …
};
/// Two right factors side by side: 16 × 16 in all.
struct Rights {
  uint32_t at[2][2];  // of each: rows 2 t …, then rows 2 t + 8 …
};
struct Sums {
  float at[4];  // of row g, then of row g + 8
};

__device__ inline int lane_of_thread() { return static_cast<int>(threadIdx.x) % kWarp; }
/// Return a thread's first row of a left factor and of sums, and its first column of sums.
__device__ inline int row_of_lane() { return lane_of_thread() / 4; }
__device__ inline int col_of_lane() { return lane_of_thread() % 4 * 2; }

/// Returns two numbers, rounded, the first in the lower bits.
template <class E>
__device__ inline uint32_t rounded_pair(float first, float second) {
  return write_as<E>(first).bits | static_cast<uint32_t>(write_as<E>(second).bits) << 16;
}

/// Returns the left factor that consists of these sums, side by side.
template <class E>
__device__ inline Left left_of(const Sums& first, const Sums& second) {
  return {{rounded_pair<E>(first.at[0], first.at[1]), rounded_pair<E>(first.at[2], first.at[3]),
           rounded_pair<E>(second.at[0], second.at[1]), rounded_pair<E>(second.at[2], second.at[3])}};
}

/// Reads four blocks of 8 × 8 elements of shared memory, whose rows lie `step` elements apart and begin at multiples of
/// 16 bytes. The first two lie one above the other (is_down), or side by side. A thread gets two neighbours of a row of
/// each block, or of a column (is_turned).
template <bool is_down, bool is_turned, class E>
__device__ inline void load_blocks(uint32_t (&to)[4], const E* tile, int step) {
#ifdef __CUDACC__
  // Each thread passes the address of one row of one block.
  const int lane = lane_of_thread(), row = is_down ? lane % 16 : lane % 8 + lane / 16 * 8,
            col = is_down ? lane / 16 * 8 : lane / 8 % 2 * 8;
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(tile + row * step + col));
  if constexpr (is_turned)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
#else
  const int g = row_of_lane(), pair = col_of_lane();
  for (int i = 0; i < 4; i++) {
    const int row = is_down ? i % 2 * 8 : i / 2 * 8, col = is_down ? i / 2 * 8 : i % 2 * 8;
    const auto bits = [&](int k) {
      return uint32_t{is_turned ? tile[(row + pair + k) * step + col + g].bits
                                : tile[(row + g) * step + col + pair + k].bits};
    };
    to[i] = bits(0) | bits(1) << 16;
  }
#endif
}

/// Reads a left factor. Its rows are those of the tile, or the tile's columns (is_turned).
template <bool is_turned, class E>
__device__ inline Left load_left(const E* tile, int step) {
  Left left;
  load_blocks<!is_turned, is_turned>(left.at, tile, step);
  return left;
}

/// Reads two right factors. Their columns are rows of the tile, or the tile's columns (is_turned).
template <bool is_turned, class E>
__device__ inline Rights load_rights(const E* tile, int step) {
  uint32_t all[4];
  load_blocks<is_turned, is_turned>(all, tile, step);
  return {{{all[0], all[1]}, {all[2], all[3]}}};
}

/// Computes sums += left · right. All threads of a warp must call it.
template <class E>
__device__ inline void add_product(Sums& sums, const Left& left, const uint32_t (&right)[2]) {
#ifdef __CUDACC__
#define RINGWISE_MMA(type)                                                     \
  asm("mma.sync.aligned.m16n8k16.row.col.f32." type "." type                   \
      ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"   \
      : "+f"(sums.at[0]), "+f"(sums.at[1]), "+f"(sums.at[2]), "+f"(sums.at[3]) \
      : "r"(left.at[0]), "r"(left.at[1]), "r"(left.at[2]), "r"(left.at[3]), "r"(right[0]), "r"(right[1]))
  if constexpr (std::is_same_v<E, Half>)
    RINGWISE_MMA("f16");
  else
    RINGWISE_MMA("bf16");
#undef RINGWISE_MMA
#else
  struct Factors {
    float left[4][2], right[2][2];
  } own;
  const auto widen = [](float (&to)[2], uint32_t pair) {
    to[0] = float_of(E{static_cast<uint16_t>(pair)});
    to[1] = float_of(E{static_cast<uint16_t>(pair >> 16)});
  };
  for (int i = 0; i < 4; i++) widen(own.left[i], left.at[i]);
  for (int i = 0; i < 2; i++) widen(own.right[i], right[i]);
  const char* const all = software_gpu::share(&own, sizeof own);
  const auto of = [&](int lane) -> const Factors& {
    return *reinterpret_cast<const Factors*>(all + static_cast<size_t>(lane) * software_gpu::kSharedBytes);
  };
  for (int i = 0; i < 4; i++) {
    const int row = row_of_lane(), col = col_of_lane() + i % 2;
    float sum = 0;
    for (int k = 0; k < 16; k++) {
      sum += of(row * 4 + k % 8 / 2).left[i / 2 + k / 8 * 2][k % 2] * of(col * 4 + k % 8 / 2).right[k / 8][k % 2];
    }
    sums.at[i] += sum;
  }
#endif
}

/// Computes sums += left · right for two right factors side by side.
template <class E>
__device__ inline void add_products(Sums* sums, const Left& left, const Rights& rights) {
  add_product<E>(sums[0], left, rights.at[0]);
  add_product<E>(sums[1], left, rights.at[1]);
}

}  // namespace ringwise::tensor::cuda
