// Stands in for cuBLASLt on the CPU (RINGWISE_LIBCUBLASLT): the functions of tensor/cuda/libraries/cublas_lt.h.
// Matrices are stored column by column, as the library defines it, and products run on the streams of the software
// device.
#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/half.h"
#include "test/software_gpu/streams.h"

#define EXPORT extern "C" __attribute__((visibility("default"))) int

namespace {

using namespace ringwise;
using namespace ringwise::software_gpu;

constexpr int kSuccess = 0, kInvalidValue = 7, kNotSupported = 15;
constexpr int kReal32 = 0, kReal64 = 1, kReal16 = 2, kBfloat16 = 14;
constexpr int kCompute32 = 68, kCompute64 = 70, kComputeTf32 = 77;

struct Product {
  int compute, type;
  int32_t transpose[2] = {};
  int32_t epilogue = 1;
  const void* bias = nullptr;
  void* aux = nullptr;
  int64_t aux_step = 0;
};
constexpr int32_t kAddsBias = 4, kRelu = 2, kGelu = 32, kKeepsInput = 128;
struct Layout {
  int type;
  uint64_t rows, cols;
  int64_t step;
  int32_t batch = 1;
  int64_t stride = 0;
};
struct Choice {
  uint64_t algorithm[8];
  size_t workspace_bytes;
  int status;
  float waves;
  int reserved[4];
};

/// Return the rows and columns of a factor, after its transposition.
uint64_t rows_of(const Layout& layout, bool is_turned) { return is_turned ? layout.cols : layout.rows; }
uint64_t cols_of(const Layout& layout, bool is_turned) { return is_turned ? layout.rows : layout.cols; }

double value(float x) { return static_cast<double>(x); }
double value(double x) { return x; }
double value(Half x) { return static_cast<double>(to_float(x)); }
double value(BFloat x) { return static_cast<double>(to_float(x)); }
void put(float& to, double x) { to = static_cast<float>(x); }
void put(double& to, double x) { to = x; }
void put(Half& to, double x) { to = to_half(static_cast<float>(x)); }
void put(BFloat& to, double x) { to = to_bfloat(static_cast<float>(x)); }

template <class T>
void multiply(const Product& x, const Layout& la, const Layout& lb, const Layout& ld, double alpha, const T* a,
              const T* b, double beta, T* d) {
  const bool turn_a = x.transpose[0], turn_b = x.transpose[1];
  for (int32_t i = 0; i < ld.batch; i++, a += la.stride, b += lb.stride, d += ld.stride) {
    for (uint64_t col = 0; col < ld.cols; col++) {
      for (uint64_t row = 0; row < ld.rows; row++) {
        double sum = 0;
        for (int64_t k = 0; k < static_cast<int64_t>(cols_of(la, turn_a)); k++) {
          const auto r = static_cast<int64_t>(row), c = static_cast<int64_t>(col);
          sum += value(turn_a ? a[r * la.step + k] : a[k * la.step + r]) *
                 value(turn_b ? b[k * lb.step + c] : b[c * lb.step + k]);
        }
        T& to = d[static_cast<int64_t>(col) * ld.step + static_cast<int64_t>(row)];
        sum = alpha * sum + (beta == 0 ? 0 : beta * value(to));
        if (x.epilogue & kAddsBias) sum += value(static_cast<const T*>(x.bias)[row]);
        if (x.epilogue & kKeepsInput)
          put(static_cast<T*>(x.aux)[static_cast<int64_t>(col) * x.aux_step + static_cast<int64_t>(row)], sum);
        if (x.epilogue & kRelu) sum = sum > 0 ? sum : 0;
        if (x.epilogue & kGelu) sum *= 0.5 * (1 + std::tanh(0.7978845608028654 * (sum + 0.044715 * sum * sum * sum)));
        put(to, sum);
      }
    }
  }
}

/// Returns the type of scales and sums for a stored type.
int scale_of(int stored) { return stored == kReal64 ? kReal64 : kReal32; }
int compute_of(int stored) { return stored == kReal64 ? kCompute64 : kCompute32; }

/// Returns whether the library supports the epilogue of a product with the result `d`.
bool has_epilogue(const Product& x, const Layout& d) {
  if (x.epilogue == 1) return true;
  const auto is_aligned = [](const void* data) { return data && reinterpret_cast<uintptr_t>(data) % 16 == 0; };
  if (d.type == kReal64 || (x.epilogue & ~(kAddsBias | kRelu | kGelu | kKeepsInput))) return false;
  if ((x.epilogue & kAddsBias) && !is_aligned(x.bias)) return false;
  return !(x.epilogue & kKeepsInput) ||
         (is_aligned(x.aux) && x.aux_step % 8 == 0 && x.aux_step >= static_cast<int64_t>(d.rows));
}

/// Returns whether the library supports the product, and its sizes and types match.
bool fits(const Product& x, const Layout& a, const Layout& b, const Layout& d) {
  const auto is_wide = [](const Layout& layout) { return layout.step >= static_cast<int64_t>(layout.rows); };
  return rows_of(a, x.transpose[0]) == d.rows && cols_of(b, x.transpose[1]) == d.cols &&
         cols_of(a, x.transpose[0]) == rows_of(b, x.transpose[1]) && is_wide(a) && is_wide(b) && is_wide(d) &&
         a.type == d.type && b.type == d.type && scale_of(d.type) == x.type && has_epilogue(x, d) &&
         (x.compute == compute_of(d.type) || (x.compute == kComputeTf32 && d.type == kReal32)) && a.batch == d.batch &&
         b.batch == d.batch;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) size_t cublasLtGetVersion() { return 130100; }
EXPORT cublasLtCreate(void** handle) { return *handle = new char, kSuccess; }
EXPORT cublasLtMatmulDescCreate(Product** product, int compute, int type) {
  return *product = new Product{compute, type}, kSuccess;
}
EXPORT cublasLtMatmulDescSetAttribute(Product* product, int attribute, const void* value, size_t bytes) {
  const auto set = [&](auto& to) {
    return bytes == sizeof to ? (std::memcpy(&to, value, bytes), kSuccess) : kInvalidValue;
  };
  switch (attribute) {  // by the numbers in tensor/cuda/libraries/cublas_lt.h, kLtTransposeA and so on
    case 3:
    case 4: return set(product->transpose[attribute - 3]);
    case 7: return set(product->epilogue);
    case 8: return set(product->bias);
    case 11: return set(product->aux);
    case 12: return set(product->aux_step);
    default: return kInvalidValue;
  }
}
EXPORT cublasLtMatmulDescDestroy(Product* product) { return delete product, kSuccess; }
EXPORT cublasLtMatrixLayoutCreate(Layout** layout, int type, uint64_t rows, uint64_t cols, int64_t step) {
  return *layout = new Layout{type, rows, cols, step}, kSuccess;
}
EXPORT cublasLtMatrixLayoutSetAttribute(Layout* layout, int attribute, const void* value, size_t bytes) {
  if (attribute == 5 && bytes == sizeof layout->batch) return std::memcpy(&layout->batch, value, bytes), kSuccess;
  if (attribute == 6 && bytes == sizeof layout->stride) return std::memcpy(&layout->stride, value, bytes), kSuccess;
  return kInvalidValue;
}
EXPORT cublasLtMatrixLayoutDestroy(Layout* layout) { return delete layout, kSuccess; }
EXPORT cublasLtMatmulPreferenceCreate(void** preference) { return *preference = new char, kSuccess; }
EXPORT cublasLtMatmulPreferenceSetAttribute(void*, int, const void*, size_t) { return kSuccess; }
EXPORT cublasLtMatmulPreferenceDestroy(char* preference) { return delete preference, kSuccess; }
EXPORT cublasLtMatmulAlgoGetHeuristic(void*, const Product* x, const Layout* a, const Layout* b, const Layout* c,
                                      const Layout* d, void*, int wanted, Choice* choice, int* found) {
  *found = 0;
  if (wanted < 1 || c != d || !fits(*x, *a, *b, *d)) return kNotSupported;
  *choice = Choice{{}, 1024, 0, 1, {}};
  return *found = 1, kSuccess;
}
EXPORT cublasLtMatmul(void*, const Product* x, const void* alpha, const void* a, const Layout* la, const void* b,
                      const Layout* lb, const void* beta, const void* c, const Layout*, void* d, const Layout* ld,
                      const void*, void* workspace, size_t bytes, SoftwareStream* stream) {
  if (c != d || !workspace || bytes < 1024 || !fits(*x, *la, *lb, *ld)) return kInvalidValue;
  const auto factor = [&](const void* at) {
    return x->type == kReal64 ? *static_cast<const double*>(at) : static_cast<double>(*static_cast<const float*>(at));
  };
  const auto start = [&]<class T>(T) {
    return submit(stream, [=, scale = factor(alpha), old = factor(beta), product = *x, la = *la, lb = *lb, ld = *ld] {
      std::memset(workspace, 0xff, bytes);
      multiply(product, la, lb, ld, scale, static_cast<const T*>(a), static_cast<const T*>(b), old, static_cast<T*>(d));
      return kSuccess;
    });
  };
  switch (ld->type) {
    case kReal64: return start(double{});
    case kReal16: return start(Half{});
    case kBfloat16: return start(BFloat{});
    default: return start(float{});
  }
}
