/* Writes and reads small whole numbers in buffers of any dtype, for the tests of the C ABI. */
#ifndef RINGWISE_TEST_C_API_VALUES_H
#define RINGWISE_TEST_C_API_VALUES_H

#include <stdint.h>
#include <string.h>

#include "ringwise.h"

enum { DTYPES = 15, REDUCE_OPS = 9 };

static inline size_t bytes_of(int dtype) {
  static const size_t sizes[DTYPES] = {4, 8, 2, 2, 1, 2, 4, 8, 1, 2, 4, 8, 1, 1, 1};
  return sizes[dtype];
}

/* Convert the bits of a float32 to float16, and back. float16 must hold the number exactly, and it must be neither
 * subnormal nor infinite. */
static inline uint16_t half_of(uint32_t bits) {
  return bits << 1 == 0 ? 0 : (uint16_t)(bits >> 16 & 0x8000u) | (uint16_t)((bits >> 13) - ((127 - 15) << 10));
}
static inline uint32_t float_of(uint16_t half) {
  return half == 0 ? 0 : (uint32_t)(half & 0x8000u) << 16 | (((uint32_t)(half & 0x7fffu) + ((127 - 15) << 10)) << 13);
}

/* Convert the bits of a float32 to a float of 8 bits with `fraction` bits of mantissa, and back, under the same
 * conditions. */
static inline uint8_t float8_of(uint32_t bits, int fraction) {
  const int bias = (1 << (6 - fraction)) - 1;
  return bits << 1 == 0 ? 0
                        : (uint8_t)((bits >> 24 & 0x80u) |
                                    (((bits & 0x7fffffffu) >> (23 - fraction)) - ((uint32_t)(127 - bias) << fraction)));
}
static inline uint32_t float_of_float8(uint8_t float8, int fraction) {
  const int bias = (1 << (6 - fraction)) - 1;
  return float8 == 0 ? 0
                     : (uint32_t)(float8 & 0x80u) << 24 | ((float8 & 0x7fu) + ((uint32_t)(127 - bias) << fraction))
                                                              << (23 - fraction);
}
static inline int fraction_of(int dtype) { return dtype == RINGWISE_FLOAT8_E4M3FN ? 3 : 2; }

static inline void put(void* buffer, size_t index, int dtype, double value) {
  char* at = (char*)buffer + index * bytes_of(dtype);
  const float number = (float)value;
  const int64_t whole = (int64_t)value;
  uint32_t bits;
  uint16_t half;
  memcpy(&bits, &number, sizeof bits);
  switch (dtype) {
    case RINGWISE_FLOAT32: memcpy(at, &number, 4); break;
    case RINGWISE_FLOAT64: memcpy(at, &value, 8); break;
    case RINGWISE_FLOAT16:
    case RINGWISE_BFLOAT16:
      half = dtype == RINGWISE_FLOAT16 ? half_of(bits) : (uint16_t)(bits >> 16);
      memcpy(at, &half, 2);
      break;
    case RINGWISE_FLOAT8_E4M3FN:
    case RINGWISE_FLOAT8_E5M2: *(uint8_t*)at = float8_of(bits, fraction_of(dtype)); break;
    default: /* little-endian: the low bytes come first */ memcpy(at, &whole, bytes_of(dtype));
  }
}

static inline double get(const void* buffer, size_t index, int dtype) {
  const char* at = (const char*)buffer + index * bytes_of(dtype);
  uint16_t half;
  uint32_t bits;
  float number;
  double value;
  int64_t whole = 0;
  switch (dtype) {
    case RINGWISE_FLOAT64: memcpy(&value, at, 8); return value;
    case RINGWISE_FLOAT32: memcpy(&number, at, 4); return number;
    case RINGWISE_FLOAT16:
    case RINGWISE_BFLOAT16:
      memcpy(&half, at, 2);
      bits = dtype == RINGWISE_FLOAT16 ? float_of(half) : (uint32_t)half << 16;
      memcpy(&number, &bits, 4);
      return number;
    case RINGWISE_FLOAT8_E4M3FN:
    case RINGWISE_FLOAT8_E5M2:
      bits = float_of_float8(*(const uint8_t*)at, fraction_of(dtype));
      memcpy(&number, &bits, 4);
      return number;
    default: /* the values are small and not negative */ memcpy(&whole, at, bytes_of(dtype)); return (double)whole;
  }
}

#endif
