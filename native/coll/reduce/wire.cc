#include "coll/reduce/wire.h"

#include <cstring>

#include "coll/reduce/int8.h"
#include "coll/reduce/reduce.h"

namespace ringwise::coll {

namespace {

constexpr const char* kNames[kWireCount] = {"full", "bfloat16", "int8"};

const Int8Kernels& kernels() {
  static const Int8Kernels& best = int8_kernels();
  return best;
}

/// Returns the offset of the steps, which follow the scales, in bytes.
size_t steps_begin(size_t count) { return (int8_blocks(count) + 3) / 4 * 4; }

const float* floats(const std::byte* bytes) { return reinterpret_cast<const float*>(bytes); }
float* floats(std::byte* bytes) { return reinterpret_cast<float*>(bytes); }
const uint8_t* scales(const std::byte* packed) { return reinterpret_cast<const uint8_t*>(packed); }
const int8_t* steps(const std::byte* packed, size_t count) {
  return reinterpret_cast<const int8_t*>(packed + steps_begin(count));
}

}  // namespace

const char* name_of(Wire wire) { return kNames[static_cast<int>(wire)]; }

size_t packed_words(Wire wire, size_t count) {
  if (wire == Wire::BFloat16) return (count + 1) / 2;
  return (steps_begin(count) + int8_blocks(count) * kInt8Block) / sizeof(float);
}

void pack(Wire wire, const std::byte* values, const std::byte* residual, std::byte* packed, size_t count) {
  if (wire == Wire::BFloat16) {
    if (count % 2 != 0) std::memset(packed + count * 2, 0, 2);
    return narrow(DType::BFloat16, ReduceOp::Sum, 1, packed, values, count);
  }
  std::memset(packed + int8_blocks(count), 0, steps_begin(count) - int8_blocks(count));
  kernels().pack(floats(values), floats(residual), reinterpret_cast<uint8_t*>(packed),
                 reinterpret_cast<int8_t*>(packed + steps_begin(count)), count);
}

void keep_loss(const std::byte* values, std::byte* residual, size_t count) {
  kernels().keep_loss(floats(values), floats(residual), count);
}

void add_packed(Wire wire, const std::byte* packed, std::byte* sums, size_t count) {
  if (wire == Wire::BFloat16) return accumulate(DType::BFloat16, ReduceOp::Sum, sums, packed, count);
  kernels().add(scales(packed), steps(packed, count), floats(sums), count);
}

void unpack(Wire wire, const std::byte* packed, int divisor, std::byte* output, size_t count) {
  if (wire == Wire::BFloat16) {
    widen(DType::BFloat16, output, packed, count);
    return narrow(DType::Float32, divisor == 1 ? ReduceOp::Sum : ReduceOp::Avg, divisor, output, output, count);
  }
  kernels().unpack(scales(packed), steps(packed, count), static_cast<float>(divisor), floats(output), count);
}

}  // namespace ringwise::coll
