// Tests the reduction kernels and the conversions of narrow floats: rounding, NaN, overflow, and equal bits from all
// instruction sets.
#include "coll/reduce/reduce.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/float8.h"
#include "base/half.h"
#include "test/check.h"

using namespace ringwise;
using namespace ringwise::test;
using coll::ReduceOp;

namespace {

template <class T>
std::byte* bytes(std::vector<T>& data) {
  return reinterpret_cast<std::byte*>(data.data());
}

/// Returns the reduction of a and b over two ranks.
template <class T>
T reduce_pair(DType dtype, ReduceOp op, T a, T b) {
  std::vector<T> left{a}, right{b}, out{T{}};
  alignas(8) std::byte accumulator[8];
  coll::widen(dtype, accumulator, bytes(left), 1);
  coll::accumulate(dtype, op, accumulator, bytes(right), 1);
  coll::narrow(dtype, op, 2, bytes(out), accumulator, 1);
  return out[0];
}

/// Returns a ∘ b ∘ b, narrowed and scaled, as the kernels of a level reduce narrow floats.
template <class T>
std::vector<T> reduced_at(CpuLevel level, DType dtype, ReduceOp op, std::vector<T> a, std::vector<T> b) {
  const auto& kernels = coll::reduce_kernels(level);
  std::vector<float> sums(a.size());
  std::vector<T> result(a.size());
  kernels.join(dtype, op, bytes(sums), bytes(a), bytes(b), a.size());
  kernels.accumulate(dtype, op, bytes(sums), bytes(b), a.size());
  kernels.narrow(dtype, op, 3, bytes(result), bytes(sums), a.size());
  kernels.scale(dtype, 0.3, bytes(result), bytes(result), a.size());
  return result;
}

/// Counts wrong roundings of all numbers of a format, of values between neighbours, and of values beyond the largest
/// number. `largest` has the bits of the largest number.
template <class T>
int wrong_roundings(T (*rounded)(float), uint8_t largest) {
  int wrong = 0;
  for (const int sign : {0, 0x80}) {
    for (uint8_t magnitude = 0; magnitude <= largest; ++magnitude) {
      const auto bits = static_cast<uint8_t>(sign | magnitude);
      const float value = to_float(T{bits});
      wrong += rounded(value).bits != bits;
      if (magnitude == largest) continue;
      const auto next = static_cast<uint8_t>(bits + 1);
      const float middle = (value + to_float(T{next})) / 2;
      wrong += rounded(middle).bits != (bits % 2 == 0 ? bits : next);
      wrong += rounded(std::nextafter(middle, value)).bits != bits;
      wrong += rounded(std::nextafter(middle, to_float(T{next}))).bits != next;
    }
    for (const float beyond : {to_float(T{largest}) * 1.01f, 1e9f, std::numeric_limits<float>::max(),
                               std::numeric_limits<float>::infinity()}) {
      wrong += rounded(sign == 0 ? beyond : -beyond).bits != (sign | largest);
    }
  }
  return wrong;
}

}  // namespace

TEST("floats of 8 bits round to nearest even, saturate, and keep NaN") {
  CHECK_EQ(to_float(Float8E4M3{0x7e}), 448.f);
  CHECK_EQ(to_float(Float8E4M3{0x01}), 0x1p-9f);
  CHECK_EQ(to_float(Float8E5M2{0x7b}), 57344.f);
  CHECK_EQ(to_float(Float8E5M2{0x01}), 0x1p-16f);
  CHECK_EQ(wrong_roundings(to_float8_e4m3, 0x7e), 0);
  CHECK_EQ(wrong_roundings(to_float8_e5m2, 0x7b), 0);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK_EQ(to_float8_e4m3(nan).bits & 0x7f, 0x7f);
  CHECK_EQ(to_float8_e5m2(nan).bits & 0x7f, 0x7f);
  CHECK(std::isnan(to_float(Float8E4M3{0xff})) && std::isnan(to_float(Float8E5M2{0xfd})));
  CHECK(std::isinf(to_float(Float8E5M2{0x7c})));
}

TEST("every float16 survives the way to float32 and back") {
  int wrong = 0;
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const Half half{static_cast<uint16_t>(bits)};
    const float value = to_float(half);
    if (std::isnan(value)) {
      wrong += !std::isnan(to_float(to_half(value)));
    } else {
      wrong += to_half(value).bits != half.bits;
    }
  }
  CHECK_EQ(wrong, 0);
}

TEST("float16 rounds to nearest even, overflows to infinity, keeps subnormals") {
  CHECK_EQ(to_half(1.f).bits, 0x3c00);
  CHECK_EQ(to_half(2049.f).bits, to_half(2048.f).bits);  // a tie goes to the even neighbour
  CHECK_EQ(to_half(2051.f).bits, to_half(2052.f).bits);
  CHECK_EQ(to_half(65504.f).bits, 0x7bff);
  CHECK_EQ(to_half(65519.f).bits, 0x7bff);
  CHECK_EQ(to_half(65520.f).bits, 0x7c00);
  CHECK_EQ(to_half(0x1p-24f).bits, 1);
  CHECK_EQ(to_half(0x1p-25f).bits, 0);
  CHECK_EQ(to_half(-0.f).bits, 0x8000);
}

TEST("bfloat16 rounds to nearest even and keeps NaN") {
  CHECK_EQ(to_bfloat(1.f).bits, 0x3f80);
  CHECK_EQ(to_bfloat(1.00390625f).bits, 0x3f80);  // halfway between two numbers: goes to the even one
  CHECK_EQ(to_bfloat(1.01171875f).bits, 0x3f82);
  CHECK(std::isnan(to_float(to_bfloat(std::numeric_limits<float>::quiet_NaN()))));
}

TEST("integers wrap, and narrow ones do not overflow on the way") {
  CHECK_EQ(reduce_pair<int8_t>(DType::Int8, ReduceOp::Sum, 127, 1), int8_t{-128});
  CHECK_EQ(reduce_pair<uint16_t>(DType::UInt16, ReduceOp::Prod, 65535, 65535), uint16_t{1});
  CHECK_EQ(reduce_pair<int64_t>(DType::Int64, ReduceOp::Sum, std::numeric_limits<int64_t>::max(), 1),
           std::numeric_limits<int64_t>::min());
  CHECK_EQ(reduce_pair<int32_t>(DType::Int32, ReduceOp::Min, -5, 3), -5);
  CHECK_EQ(reduce_pair<uint32_t>(DType::UInt32, ReduceOp::Max, 0x80000000u, 1u), 0x80000000u);
}

TEST("bitwise operations work on integers and on bool") {
  CHECK_EQ(reduce_pair<uint8_t>(DType::Bool, ReduceOp::Bor, 0, 1), uint8_t{1});
  CHECK_EQ(reduce_pair<uint8_t>(DType::Bool, ReduceOp::Bxor, 1, 1), uint8_t{0});
  CHECK_EQ(reduce_pair<uint64_t>(DType::UInt64, ReduceOp::Band, 0xff00ff00ull, 0x0ff00ff0ull), 0x0f000f00ull);
}

TEST("min and max return NaN when either side is one") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(std::isnan(reduce_pair<float>(DType::Float32, ReduceOp::Min, nan, 1)));
  CHECK(std::isnan(reduce_pair<float>(DType::Float32, ReduceOp::Max, 1, nan)));
  CHECK_EQ(reduce_pair<double>(DType::Float64, ReduceOp::Max, 1, 2), 2.0);
}

TEST("halves accumulate in float32: avg does not overflow on the way") {
  const Half large = to_half(60000.f);
  const Half mean = reduce_pair<Half>(DType::Float16, ReduceOp::Avg, large, large);
  CHECK_EQ(to_float(mean), to_float(large));
}

TEST("scale multiplies by the factor of premulSum") {
  std::vector<float> in{1, 2, 3}, out(3);
  coll::scale(DType::Float32, 0.5, bytes(out), bytes(in), 3);
  CHECK_EQ(out[2], 1.5f);
}

TEST("every level converts all bit patterns of float16 like the conversion of a single element") {
  constexpr size_t kCount = 0x10000;
  std::vector<uint16_t> halves(kCount), back(kCount);
  for (size_t i = 0; i < kCount; ++i) halves[i] = static_cast<uint16_t>(i);
  for (const CpuLevel level : {CpuLevel::Baseline, CpuLevel::Avx2, CpuLevel::Avx512}) {
    const auto& kernels = coll::reduce_kernels(level);
    std::vector<float> floats(kCount);
    kernels.widen(DType::Float16, bytes(floats), bytes(halves), kCount);
    int wrong = 0;
    for (size_t i = 0; i < kCount; ++i) {
      wrong += std::bit_cast<uint32_t>(floats[i]) != std::bit_cast<uint32_t>(to_float(Half{halves[i]}));
    }
    CHECK_EQ(wrong, 0);
    kernels.narrow(DType::Float16, ReduceOp::Sum, 1, bytes(back), bytes(floats), kCount);
    for (size_t i = 0; i < kCount; ++i) wrong += back[i] != to_half(floats[i]).bits;
    CHECK_EQ(wrong, 0);
  }
}

TEST("every level rounds floats to float16 like the conversion of a single element") {
  constexpr size_t kCount = 0x10000;
  std::vector<float> floats(kCount);
  std::vector<uint16_t> halves(kCount);
  // Ties, and values on both sides of them.
  for (const uint32_t low : {0u, 1u, 0x0fffu, 0x1000u, 0x1001u, 0x8000u, 0xffffu}) {
    for (size_t i = 0; i < kCount; ++i) floats[i] = std::bit_cast<float>(static_cast<uint32_t>(i << 16) | low);
    for (const CpuLevel level : {CpuLevel::Baseline, CpuLevel::Avx2, CpuLevel::Avx512}) {
      coll::reduce_kernels(level).narrow(DType::Float16, ReduceOp::Sum, 1, bytes(halves), bytes(floats), kCount);
      int wrong = 0;
      for (size_t i = 0; i < kCount; ++i) wrong += halves[i] != to_half(floats[i]).bits;
      CHECK_EQ(wrong, 0);
    }
  }
}

TEST("every level reduces halves to the same bits, also at lengths that no vector divides") {
  for (const DType dtype : {DType::Float16, DType::BFloat16}) {
    for (const size_t count : {size_t{1}, size_t{7}, size_t{513}, size_t{5000}}) {
      std::vector<uint16_t> a(count), b(count);
      for (size_t i = 0; i < count; ++i) {
        a[i] = static_cast<uint16_t>(i * 40503u);
        b[i] = static_cast<uint16_t>(i * 30011u + 77);
      }
      for (const ReduceOp op : {ReduceOp::Sum, ReduceOp::Avg, ReduceOp::Prod, ReduceOp::Max}) {
        const auto expected = reduced_at(CpuLevel::Baseline, dtype, op, a, b);
        CHECK(reduced_at(CpuLevel::Avx2, dtype, op, a, b) == expected);
        CHECK(reduced_at(CpuLevel::Avx512, dtype, op, a, b) == expected);
      }
    }
  }
}

TEST("every level reduces floats of 8 bits to the same bits") {
  constexpr size_t kCount = 0x10007;  // all pairs, and a remainder that fills no vector
  std::vector<uint8_t> a(kCount), b(kCount);
  for (size_t i = 0; i < kCount; ++i) {
    a[i] = static_cast<uint8_t>(i);
    b[i] = static_cast<uint8_t>(i >> 8);
  }
  for (const DType dtype : {DType::Float8E4M3, DType::Float8E5M2}) {
    for (const ReduceOp op : {ReduceOp::Sum, ReduceOp::Avg, ReduceOp::Prod, ReduceOp::Max}) {
      const auto expected = reduced_at(CpuLevel::Baseline, dtype, op, a, b);
      CHECK(reduced_at(CpuLevel::Avx2, dtype, op, a, b) == expected);
      CHECK(reduced_at(CpuLevel::Avx512, dtype, op, a, b) == expected);
    }
  }
}

TEST("the average of two, into both of them at once, has the bits of a sum that is divided") {
  std::vector<float> a{
      1.f, -0.f, 0x1p-149f, 0x1p-126f, 0x1.fffffep127f, 0x1.fffffep127f, 3.f, std::numeric_limits<float>::infinity()};
  std::vector<float> b{2.f, -0.f, 0.f, 0x1p-149f, 0x1.fffffep127f, -1.f, 0x1p-24f, -1.f};
  uint32_t state = 1;
  while (a.size() < 1003) {  // the count is no multiple of a vector
    state = state * 1664525 + 1013904223;
    a.push_back(static_cast<float>(static_cast<int32_t>(state)) * 0x1p-40f);
    b.push_back(static_cast<float>(static_cast<int32_t>(state * 7)) * 0x1p-30f);
  }
  std::vector<float> expected(a.size());
  for (size_t i = 0; i < a.size(); ++i) expected[i] = reduce_pair<float>(DType::Float32, ReduceOp::Avg, a[i], b[i]);
  for (const CpuLevel level : {CpuLevel::Baseline, CpuLevel::Avx2, CpuLevel::Avx512}) {
    auto first = a, second = b;
    coll::reduce_kernels(level).join_twice(DType::Float32, ReduceOp::Avg, bytes(first), bytes(second), bytes(first),
                                           bytes(second), a.size());
    int wrong = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      wrong += std::bit_cast<uint32_t>(first[i]) != std::bit_cast<uint32_t>(expected[i]);
      wrong += std::bit_cast<uint32_t>(second[i]) != std::bit_cast<uint32_t>(expected[i]);
    }
    CHECK_EQ(wrong, 0);
  }
  const std::byte* sources[] = {bytes(a), bytes(b)};
  std::byte* outputs[] = {bytes(a), bytes(b)};
  coll::combine(DType::Float32, ReduceOp::Avg, sources, 2, outputs, 2, a.size());
  CHECK(a == b);
  CHECK_EQ(a[1002], expected[1002]);
}

int main() { return run_all(); }
