// Element types. Their numbers are part of the wire format and equal the order of `dtypes` in
// packages/collectives/src/dtype.ts.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ringwise {

enum class DType : uint8_t {
  Float32,
  Float64,
  Float16,
  BFloat16,
  Int8,
  Int16,
  Int32,
  Int64,
  UInt8,
  UInt16,
  UInt32,
  UInt64,
  Bool,
  Float8E4M3,
  Float8E5M2,
};

inline constexpr int kDTypeCount = 15;

constexpr size_t byte_size(DType dtype) {
  constexpr size_t sizes[kDTypeCount] = {4, 8, 2, 2, 1, 2, 4, 8, 1, 2, 4, 8, 1, 1, 1};
  return sizes[static_cast<int>(dtype)];
}

constexpr const char* name_of(DType dtype) {
  constexpr const char* names[kDTypeCount] = {"float32", "float64", "float16", "bfloat16",      "int8",
                                              "int16",   "int32",   "int64",   "uint8",         "uint16",
                                              "uint32",  "uint64",  "bool",    "float8_e4m3fn", "float8_e5m2"};
  return names[static_cast<int>(dtype)];
}

constexpr bool is_half(DType dtype) { return dtype == DType::Float16 || dtype == DType::BFloat16; }

/// Returns whether the type is a narrow float (16 or 8 bits), whose sums are float32 and rounded once.
constexpr bool is_narrow(DType dtype) {
  return is_half(dtype) || dtype == DType::Float8E4M3 || dtype == DType::Float8E5M2;
}

}  // namespace ringwise
