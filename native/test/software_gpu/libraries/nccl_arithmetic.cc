#include "test/software_gpu/libraries/nccl_arithmetic.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/float8.h"
#include "base/half.h"

namespace ringwise::software_gpu {
namespace {

template <class T, class Load, class Store>
void fold(char* into, const char* from, size_t count, int op, const Load& load, const Store& store) {
  for (size_t i = 0; i < count; ++i) {
    T a, b;
    std::memcpy(&a, into + i * sizeof(T), sizeof(T));
    std::memcpy(&b, from + i * sizeof(T), sizeof(T));
    const auto x = load(a), y = load(b);
    using Value = std::decay_t<decltype(x)>;
    const T folded = store(op == 1   ? Value(x * y)
                           : op == 2 ? (x > y ? x : y)
                           : op == 3 ? (x < y ? x : y)
                                     : Value(x + y));
    std::memcpy(into + i * sizeof(T), &folded, sizeof(T));
  }
}
template <class T>
void fold(char* into, const char* from, size_t count, int op) {
  fold<T>(into, from, count, op, [](T x) { return x; }, [](auto x) { return static_cast<T>(x); });
}

template <class T, class Load, class Store>
void scale(char* data, size_t count, double factor, const Load& load, const Store& store) {
  for (size_t i = 0; i < count; ++i) {
    T x;
    std::memcpy(&x, data + i * sizeof(T), sizeof(T));
    x = store(load(x) * factor);
    std::memcpy(data + i * sizeof(T), &x, sizeof(T));
  }
}

}  // namespace

void fold(char* into, const char* from, size_t count, int type, int op) {
  switch (type) {
    case 0: return fold<int8_t>(into, from, count, op);
    case 1: return fold<uint8_t>(into, from, count, op);
    case 2: return fold<int32_t>(into, from, count, op);
    case 3: return fold<uint32_t>(into, from, count, op);
    case 4: return fold<int64_t>(into, from, count, op);
    case 5: return fold<uint64_t>(into, from, count, op);
    case 6:
      return fold<Half>(
          into, from, count, op, [](Half x) { return to_float(x); }, [](float x) { return ringwise::to_half(x); });
    case 7: return fold<float>(into, from, count, op);
    case 8: return fold<double>(into, from, count, op);
    case 10:
      return fold<Float8E4M3>(
          into, from, count, op, [](Float8E4M3 x) { return to_float(x); },
          [](float x) { return ringwise::to_float8_e4m3(x); });
    case 11:
      return fold<Float8E5M2>(
          into, from, count, op, [](Float8E5M2 x) { return to_float(x); },
          [](float x) { return ringwise::to_float8_e5m2(x); });
    default:
      return fold<BFloat>(
          into, from, count, op, [](BFloat x) { return to_float(x); }, [](float x) { return ringwise::to_bfloat(x); });
  }
}

void scale(char* data, size_t count, int type, double factor) {
  const auto to_half = [](double x) { return ringwise::to_half(static_cast<float>(x)); };
  const auto to_bfloat = [](double x) { return ringwise::to_bfloat(static_cast<float>(x)); };
  if (type == 6) scale<Half>(data, count, factor, [](Half x) { return to_float(x); }, to_half);
  if (type == 7)
    scale<float>(data, count, factor, [](float x) { return x; }, [](double x) { return static_cast<float>(x); });
  if (type == 8) scale<double>(data, count, factor, [](double x) { return x; }, [](double x) { return x; });
  if (type == 9) scale<BFloat>(data, count, factor, [](BFloat x) { return to_float(x); }, to_bfloat);
  const auto to_e4m3 = [](double x) { return ringwise::to_float8_e4m3(static_cast<float>(x)); };
  const auto to_e5m2 = [](double x) { return ringwise::to_float8_e5m2(static_cast<float>(x)); };
  if (type == 10) scale<Float8E4M3>(data, count, factor, [](Float8E4M3 x) { return to_float(x); }, to_e4m3);
  if (type == 11) scale<Float8E5M2>(data, count, factor, [](Float8E5M2 x) { return to_float(x); }, to_e5m2);
}

size_t multiplied_alone(size_t count, size_t element) {
  constexpr size_t kBlockBytes = 16384, kMostBlocks = 32, kPackBytes = 16;
  if (count == 0) return 0;
  const size_t blocks = std::min(kMostBlocks, (count * element + kBlockBytes - 1) / kBlockBytes);
  const size_t pack = kPackBytes / element, each = (count / blocks + pack - 1) / pack * pack;
  return std::min(count, blocks * each);
}

}  // namespace ringwise::software_gpu
