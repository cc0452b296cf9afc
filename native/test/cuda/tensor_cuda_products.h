// Compares matrix products in all float types with sums in double, for our kernels and for cuBLASLt.
#pragma once

#include "test/cuda/tensor_cuda_twin.h"

namespace ringwise::test {

/// Returns a walk over `batch` products, with strides in bytes. Each product has its own matrix A, and all share one B.
inline Walk walk_of(size_t batch, const Twin& c, const Twin& a, const Twin& b) {
  Walk walk;
  walk.rank = 1;
  walk.operands = 3;
  walk.shape[0] = batch;
  const size_t bytes = byte_size(c.dtype()), steps[] = {c.count() / batch * bytes, a.count() / batch * bytes, 0};
  const Twin* const twins[] = {&c, &a, &b};
  for (int i = 0; i < 3; i++) {
    walk.operand[i].dtype = c.dtype();
    walk.operand[i].data = twins[i]->device<char>();
    walk.operand[i].strides[0] = static_cast<ptrdiff_t>(steps[i]);
  }
  return walk;
}

/// Computes c = A · B in host memory, or adds the product to c if the sizes say so.
inline void multiply_on_host(size_t batch, Twin& c, Twin& a, Twin& b, const MatmulSizes& x) {
  const size_t a_count = a.count() / batch, c_count = c.count() / batch;
  for (size_t i = 0; i < batch; i++) {
    for (size_t row = 0; row < x.m; row++) {
      for (size_t col = 0; col < x.n; col++) {
        const size_t at = i * c_count + row * x.n + col;
        double sum = x.accumulate ? value_at(c.dtype(), c.host(), at) : 0;
        for (size_t k = 0; k < x.k; k++) {
          sum += value_at(a.dtype(), a.host(), i * a_count + (x.trans_a ? k * x.a_step + row : row * x.a_step + k)) *
                 value_at(b.dtype(), b.host(), x.trans_b ? col * x.b_step + k : k * x.b_step + col);
        }
        set(c.dtype(), c.host(), at, sum);
      }
    }
  }
}

/// Compares one batch of products. `multiply` as below. With `has_infinity`, the last element of every row of A is
/// infinite.
template <class Multiply>
void check_product(DType dtype, size_t batch, const MatmulSizes& x, Multiply multiply, bool has_infinity = false) {
  const size_t a_rows = x.trans_a ? x.k : x.m, a_cols = x.trans_a ? x.m : x.k,
               a_last = (a_rows - 1) * x.a_step + a_cols;
  const size_t b_last = x.trans_b ? (x.n - 1) * x.b_step + x.k : (x.k - 1) * x.b_step + x.n;
  Twin c(dtype, batch * x.m * x.n), a(dtype, batch * a_last), b(dtype, b_last);
  if (has_infinity) {
    for (size_t i = 0; i < batch; i++) {
      for (size_t row = 0; row < x.m; row++)
        set(dtype, a.host(), i * a_last + (x.trans_a ? (x.k - 1) * x.a_step + row : row * x.a_step + x.k - 1),
            INFINITY);
    }
    a.upload();
  }
  multiply_on_host(batch, c, a, b, x);
  CHECK(multiply(walk_of(batch, c, a, b), x));
  c.compare(dtype == DType::Float32 ? 1e-4 : tolerance_of(dtype), std::string("matmul of ") + name_of(dtype));
}

/// Compares `rounds` products of random sizes, row steps, transposes and batches, in every float type. multiply(walk,
/// sizes) computes one on the device; it returns false if it does not support the product.
template <class Multiply>
void check_products(int rounds, Multiply multiply) {
  for (int round = 0; round < rounds; round++) {
    const size_t m = 1 + below(100), n = 1 + below(100), k = 1 + below(70), batch = 1 + below(3);
    const bool trans_a = below(2), trans_b = below(2), accumulate = below(2);
    const size_t a_step = (trans_a ? m : k) + below(3), b_step = (trans_b ? k : n) + below(3);
    check_product(kFloats[round % 4], batch, {m, n, k, a_step, b_step, trans_a, trans_b, accumulate}, multiply);
  }
}

}  // namespace ringwise::test
