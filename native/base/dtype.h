// Element types. The order is the wire format's and that of `dtypes` in packages/collectives/src/dtype.ts.
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
};

inline constexpr int kDTypeCount = 13;

constexpr size_t byte_size(DType dtype) {
  constexpr size_t sizes[kDTypeCount] = {4, 8, 2, 2, 1, 2, 4, 8, 1, 2, 4, 8, 1};
  return sizes[static_cast<int>(dtype)];
}

constexpr const char* name_of(DType dtype) {
  constexpr const char* names[kDTypeCount] = {"float32", "float64", "float16", "bfloat16", "int8",
                                              "int16",   "int32",   "int64",   "uint8",    "uint16",
                                              "uint32",  "uint64",  "bool"};
  return names[static_cast<int>(dtype)];
}

constexpr bool is_half(DType dtype) { return dtype == DType::Float16 || dtype == DType::BFloat16; }

}  // namespace ringwise
