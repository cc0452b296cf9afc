// GFLOP/s of the matrix product on one core, at every instruction set, beside another BLAS when its path is given.
// Both run in turns, the fastest turn counts, and each product is compared with the other library's.
//
//   c++ -std=c++20 -O3 -I native native/bench/gemm_bench.cc native/tensor/*.cc native/tensor/cpu/*.cc -ldl -o gemm
//   OPENBLAS_NUM_THREADS=1 ./gemm [/usr/lib/x86_64-linux-gnu/libopenblas.so.0] [level]
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "tensor/kernels.h"

using namespace ringwise;

namespace {

struct Shape {
  const char* what;
  int m, n, k;
  bool trans_a, trans_b;
};

constexpr Shape kShapes[] = {
    {"square", 64, 64, 64, false, false},
    {"square", 256, 256, 256, false, false},
    {"square", 512, 512, 512, false, false},
    {"square", 1024, 1024, 1024, false, false},
    {"square, A transposed", 1024, 1024, 1024, true, false},
    {"square, B transposed", 1024, 1024, 1024, false, true},
    {"layer 1 forward", 32, 512, 784, false, true},
    {"layer 1 weight gradient", 512, 784, 32, true, false},
    {"layer 1 input gradient", 32, 784, 512, false, false},
    {"layer 2 forward", 32, 512, 512, false, true},
    {"layer 2 weight gradient", 512, 512, 32, true, false},
    {"layer 2 input gradient", 32, 512, 512, false, false},
    {"head forward", 32, 10, 512, false, true},
    {"head weight gradient", 10, 512, 32, true, false},
    {"head input gradient", 32, 512, 10, false, false},
    {"tiny", 32, 10, 32, false, true},
    {"one row", 1, 512, 784, false, true},
};

using Sgemm = void (*)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float* a, int lda,
                       const float* b, int ldb, float beta, float* c, int ldc);

/// Aligned as tensors are.
struct Matrix {
  explicit Matrix(int rows, int cols)
      : count(static_cast<size_t>(rows) * cols),
        data(static_cast<float*>(::operator new(count * sizeof(float), std::align_val_t{64}))) {
    for (size_t i = 0; i < count; i++) data.get()[i] = static_cast<float>(i % 7) - 3;
  }
  struct Free {
    void operator()(float* p) const { ::operator delete(p, std::align_val_t{64}); }
  };
  size_t count;
  std::unique_ptr<float, Free> data;
};

double seconds_of(const auto& body, int times) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < times; i++) body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / times;
}

void measure(const tensor::Kernels& kernels, const Shape& s, Sgemm other) {
  const Matrix a(s.m, s.k), b(s.k, s.n);
  Matrix c(s.m, s.n), d(s.m, s.n);
  const auto ours = [&] {
    const auto m = static_cast<size_t>(s.m), n = static_cast<size_t>(s.n), k = static_cast<size_t>(s.k);
    kernels.matmul(c.data.get(), a.data.get(), b.data.get(),
                   {m, n, k, s.trans_a ? m : k, s.trans_b ? k : n, s.trans_a, s.trans_b, false});
  };
  const auto theirs = [&] {
    constexpr int kRowMajor = 101, kPlain = 111, kTransposed = 112;
    other(kRowMajor, s.trans_a ? kTransposed : kPlain, s.trans_b ? kTransposed : kPlain, s.m, s.n, s.k, 1,
          a.data.get(), s.trans_a ? s.m : s.k, b.data.get(), s.trans_b ? s.k : s.n, 0, d.data.get(), s.n);
  };
  const double flops = 2.0 * s.m * s.n * s.k;
  const int times = std::max(1, static_cast<int>(2e6 / flops)), turns = flops > 1e9 ? 30 : 150;
  double our_best = 1e9, their_best = 1e9;
  for (int i = 0; i < turns; i++) {
    our_best = std::min(our_best, seconds_of(ours, times));
    if (other) their_best = std::min(their_best, seconds_of(theirs, times));
  }
  std::printf("%-8s %-24s [%4d,%4d]x[%4d,%4d] %9.1f us %7.1f GFLOP/s", kernels.name, s.what, s.m, s.k, s.k, s.n,
              our_best * 1e6, flops / our_best / 1e9);
  if (other) {
    double apart = 0;
    for (size_t i = 0; i < c.count; i++) apart = std::max(apart, std::fabs(static_cast<double>(c.data.get()[i]) - d.data.get()[i]));
    std::printf("   other %9.1f us %7.1f   ratio %.2f   apart %g", their_best * 1e6, flops / their_best / 1e9,
                their_best / our_best, apart);
  }
  std::printf("\n");
}

}  // namespace

int main(int count, char** arguments) {
  Sgemm other = nullptr;
  if (count > 1 && std::strcmp(arguments[1], "-") != 0) {
    void* library = dlopen(arguments[1], RTLD_NOW);
    if (library) other = reinterpret_cast<Sgemm>(dlsym(library, "cblas_sgemm"));
    if (!other) {
      std::fprintf(stderr, "%s\n", dlerror());
      return 1;
    }
  }
  for (int level = static_cast<int>(best_cpu_level()); level >= 0; level--) {
    const tensor::Kernels& kernels = tensor::kernels_for(static_cast<tensor::CpuLevel>(level));
    if (count > 2 && std::strcmp(arguments[2], kernels.name) != 0) continue;
    for (const Shape& shape : kShapes) measure(kernels, shape, other);
  }
}
