// GFLOP/s of the matrix product, at every instruction set or at one, beside libraries that have sgemm_ (a BLAS, or
// PyTorch's libtorch_cpu.so, which has MKL's). All run in turns, and the fastest turn counts. `ratio` is the time of
// the fastest library over ours, above 1 where ours is faster. `apart` is the largest difference of an element from the
// product of the last library.
//
//   cmake -S native -B build -DRINGWISE_TESTS=ON -DRINGWISE_CUDA=OFF && cmake --build build --target gemm_bench
//   export OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 OMP_NUM_THREADS=1   for the speed of one core
//   build/bench/gemm_bench all|avx512|avx2|baseline [libopenblas.so.0 ...]
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
#include "test/tensor/tensor_walk.h"

using namespace ringwise;

namespace {

struct Shape {
  const char* what;
  int m, n, k;
  bool trans_a, trans_b;
};

constexpr Shape kShapes[] = {
    {"square", 64, 64, 64, false, false},
    {"square", 128, 128, 128, false, false},
    {"square", 256, 256, 256, false, false},
    {"square", 512, 512, 512, false, false},
    {"square", 1024, 1024, 1024, false, false},
    {"square, A transposed", 512, 512, 512, true, false},
    {"square, B transposed", 512, 512, 512, false, true},
    {"layer 1 forward", 32, 512, 784, false, true},
    {"layer 1 weight gradient", 512, 784, 32, true, false},
    {"layer 2 forward", 32, 512, 512, false, true},
    {"layer 2 weight gradient", 512, 512, 32, true, false},
    {"layer 2 input gradient", 32, 512, 512, false, false},
    {"head forward", 32, 10, 512, false, true},
    {"head weight gradient", 10, 512, 32, true, false},
    {"head input gradient", 32, 512, 10, false, false},
    {"batch 512 forward", 512, 512, 784, false, true},
    {"batch 512 weight gradient", 512, 784, 512, true, false},
    {"batch 512 input gradient", 512, 512, 512, false, false},
    {"GPT qkv forward", 1024, 384, 128, false, true},
    {"GPT qkv weight gradient", 384, 128, 1024, true, false},
    {"GPT qkv input gradient", 1024, 128, 384, false, false},
    {"GPT up forward", 1024, 512, 128, false, true},
    {"GPT up weight gradient", 512, 128, 1024, true, false},
    {"GPT down forward", 1024, 128, 512, false, true},
    {"GPT down input gradient", 1024, 512, 128, false, false},
    {"tiny", 32, 10, 32, false, true},
    {"one row", 1, 512, 784, false, true},
};

// The Fortran interface: matrices are column-major, and all arguments are addresses. Column-major C = A B is row-major
// Cᵀ = Bᵀ Aᵀ.
using Sgemm = void (*)(const char* trans_a, const char* trans_b, const int* m, const int* n, const int* k,
                       const float* alpha, const float* a, const int* lda, const float* b, const int* ldb,
                       const float* beta, float* c, const int* ldc);

/// A matrix of small integers, aligned as tensors are.
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

void measure(const tensor::Kernels& kernels, const Shape& s, const std::vector<Sgemm>& others) {
  const Matrix a(s.m, s.k), b(s.k, s.n);
  Matrix c(s.m, s.n), d(s.m, s.n);
  const auto ours = [&] {
    const auto m = static_cast<size_t>(s.m), n = static_cast<size_t>(s.n), k = static_cast<size_t>(s.k);
    kernels.matmul(test::product_of(c.data.get(), a.data.get(), b.data.get(),
                                    {m, n, k, s.trans_a ? m : k, s.trans_b ? k : n, s.trans_a, s.trans_b, false}));
  };
  const auto theirs = [&](Sgemm other) {
    const float one = 1, zero = 0;
    const int a_step = s.trans_a ? s.m : s.k, b_step = s.trans_b ? s.k : s.n;
    other(s.trans_b ? "T" : "N", s.trans_a ? "T" : "N", &s.n, &s.m, &s.k, &one, b.data.get(), &b_step, a.data.get(),
          &a_step, &zero, d.data.get(), &s.n);
  };
  const double flops = 2.0 * s.m * s.n * s.k;
  const int times = std::max(1, static_cast<int>(2e6 / flops)), turns = flops > 1e9 ? 20 : 100;
  double our_best = 1e9;
  std::vector<double> their_best(others.size(), 1e9);
  for (int i = 0; i < turns; i++) {
    our_best = std::min(our_best, seconds_of(ours, times));
    for (size_t j = 0; j < others.size(); j++) {
      their_best[j] = std::min(their_best[j], seconds_of([&] { theirs(others[j]); }, times));
    }
  }
  std::printf("%-8s %-26s [%4d,%4d]x[%4d,%4d] %9.1f us %6.1f GFLOP/s", kernels.name, s.what, s.m, s.k, s.k, s.n,
              our_best * 1e6, flops / our_best / 1e9);
  for (const double seconds : their_best) std::printf("   other %9.1f us %6.1f", seconds * 1e6, flops / seconds / 1e9);
  if (!others.empty()) {
    double apart = 0;
    for (size_t i = 0; i < c.count; i++)
      apart = std::max(apart, std::fabs(static_cast<double>(c.data.get()[i]) - d.data.get()[i]));
    std::printf("   ratio %.2f   apart %g", *std::min_element(their_best.begin(), their_best.end()) / our_best, apart);
  }
  std::printf("\n");
}

}  // namespace

int main(int count, char** arguments) {
  const char* wanted = count > 1 ? arguments[1] : "all";
  std::vector<Sgemm> others;
  for (int i = 2; i < count; i++) {
    void* library = dlopen(arguments[i], RTLD_NOW);
    const auto other = library ? reinterpret_cast<Sgemm>(dlsym(library, "sgemm_")) : nullptr;
    if (!other) {
      std::fprintf(stderr, "%s\n", dlerror());
      return 1;
    }
    others.push_back(other);
  }
  for (int level = static_cast<int>(best_cpu_level()); level >= 0; level--) {
    const tensor::Kernels& kernels = tensor::kernels_for(static_cast<tensor::CpuLevel>(level));
    if (std::strcmp(wanted, "all") != 0 && std::strcmp(wanted, kernels.name) != 0) continue;
    for (const Shape& shape : kShapes) measure(kernels, shape, others);
  }
}
