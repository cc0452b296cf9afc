// Tests attention, normalisation, dropout and random numbers in float32 with the kernels of each instruction set.
// Attention is compared with the same kernels in float64, which tests in TypeScript compare with a reference. Every
// float32 operand ends where a page without access begins, so that an access past its end stops the test.
#include <functional>
#include <memory>

#include "test/tensor/tensor_oracle.h"

using namespace ringwise;
using tensor::Attention;
using tensor::AttentionGrad;
using tensor::HeadRows;
using tensor::Kernels;
using test::all_levels;
using test::Guarded;
using test::noise;

namespace {

std::vector<double> wide(const std::vector<float>& values) { return {values.begin(), values.end()}; }

void expect_close(const float* got, const std::vector<double>& want, double tolerance) {
  for (size_t i = 0; i < want.size(); i++) {
    CHECK(std::fabs(got[i] - want[i]) <= tolerance * std::max(1.0, std::fabs(want[i])));
  }
}

/// Returns a view of dense memory [batch, heads, rows, width]. Its strides count elements.
HeadRows rows_at(void* data, const Attention& x, size_t rows, size_t width) {
  const auto step = static_cast<ptrdiff_t>(rows * width);
  return {static_cast<char*>(data), static_cast<ptrdiff_t>(x.heads) * step, step, static_cast<ptrdiff_t>(width)};
}

/// Makes the arguments of attention and of its gradient, with dense operands of type `dtype`. memory(i, count) returns
/// memory for the `count` elements of operand i, in this order: q, k, v, out, lse, and the gradients of out, q, k, v.
AttentionGrad arguments(const Attention& sizes, DType dtype,
                        const std::function<void*(size_t i, size_t count)>& memory) {
  AttentionGrad g{sizes, {}, {}, {}, {}};
  Attention& x = g;
  x.dtype = dtype;
  const size_t heads = x.batch * x.heads;
  const size_t q = x.queries * x.width, k = x.keys * x.width, v = x.keys * x.value_width,
               out = x.queries * x.value_width;  // elements per head
  x.q = rows_at(memory(0, heads * q), x, x.queries, x.width);
  x.k = rows_at(memory(1, heads * k), x, x.keys, x.width);
  x.v = rows_at(memory(2, heads * v), x, x.keys, x.value_width);
  x.out = rows_at(memory(3, heads * out), x, x.queries, x.value_width);
  x.lse = memory(4, heads * x.queries);
  g.grad_out = rows_at(memory(5, heads * out), x, x.queries, x.value_width);
  g.grad_q = rows_at(memory(6, heads * q), x, x.queries, x.width);
  g.grad_k = rows_at(memory(7, heads * k), x, x.keys, x.width);
  g.grad_v = rows_at(memory(8, heads * v), x, x.keys, x.value_width);
  return g;
}

void check_attention(const Kernels& kernels, const Attention& sizes) {
  std::vector<std::vector<double>> doubles;
  const AttentionGrad want = arguments(sizes, DType::Float64, [&](size_t i, size_t count) -> void* {
    return doubles.emplace_back(wide(noise(count, static_cast<uint32_t>(i)))).data();
  });
  kernels.attention(want);
  kernels.attention_grad(want);
  std::vector<std::unique_ptr<Guarded>> floats;
  const AttentionGrad got = arguments(sizes, DType::Float32, [&](size_t i, size_t count) -> void* {
    return floats.emplace_back(std::make_unique<Guarded>(noise(count, static_cast<uint32_t>(i))))->data();
  });
  kernels.attention(got);
  kernels.attention_grad(got);
  for (size_t i = 0; i < doubles.size(); i++) expect_close(floats[i]->data(), doubles[i], 2e-5);
}

void check_norm(const Kernels& kernels, size_t rows, size_t cols) {
  const Guarded a(noise(rows * cols)), grad(noise(rows * cols, 2)), gamma(noise(cols, 3)), beta(noise(cols, 4)),
      out(noise(rows * cols)), mean(noise(rows)), rstd(noise(rows)), grad_in(noise(rows * cols)),
      grad_gamma(noise(cols)), grad_beta(noise(cols));
  kernels.norm({DType::Float32, out.data(), rstd.data(), a.data(), mean.data(), nullptr, nullptr, gamma.data(),
                beta.data(), rows, cols, 1e-5});
  kernels.norm_grad({DType::Float32, grad.data(), rstd.data(), a.data(), mean.data(), gamma.data(), grad_in.data(),
                     grad_gamma.data(), grad_beta.data(), rows, cols, false});
  for (size_t r = 0; r < rows; r++) {
    double sum = 0, grads = 0;
    for (size_t c = 0; c < cols; c++) {
      sum += (out.data()[r * cols + c] - beta.data()[c]) / gamma.data()[c];
      grads += grad_in.data()[r * cols + c];
    }
    CHECK(std::fabs(sum) < 1e-3 * static_cast<double>(cols));
    // Adding a constant to a row does not change the output, so the gradients of the row sum to 0.
    CHECK(std::fabs(grads) < 1e-3 * static_cast<double>(cols) * std::max(1.0f, rstd.data()[r]));
  }
}

}  // namespace

TEST("attention and its gradients in float32 agree with float64, and no access goes past an operand's end") {
  for (const Kernels* kernels : all_levels()) {
    for (const size_t queries : {1, 9, 33, 70}) {
      for (const size_t keys : {1, 40, 129}) {
        for (const size_t width : {1, 7, 32}) {
          Attention x{};
          x.batch = 1;
          x.heads = 2;
          x.queries = queries;
          x.keys = keys;
          x.width = width;
          x.value_width = width == 7 ? 18 : width;
          x.scale = 0.4;
          x.stream = {3, 4};  // of the random numbers that choose what dropout drops
          check_attention(*kernels, x);
          x.causal = true;
          check_attention(*kernels, x);
          x.dropout = 0.25;
          check_attention(*kernels, x);
        }
      }
    }
  }
}

TEST("normalised rows have mean 0, and the input gradients of a row sum to 0") {
  for (const Kernels* kernels : all_levels()) {
    for (const size_t cols : {2, 15, 16, 33, 200}) check_norm(*kernels, 5, cols);
  }
}

TEST("dropout scales or drops each value, random numbers lie in their range, and no access goes past the end") {
  for (const Kernels* kernels : all_levels()) {
    const Guarded values(noise(77)), out(noise(77));
    kernels->dropout({DType::Float32, out.data(), values.data(), 77, 0.5, {1, 2}});
    for (int i = 0; i < 77; i++) CHECK(out.data()[i] == 0 || out.data()[i] == 2 * values.data()[i]);
    for (const auto kind : {tensor::RandomKind::Uniform, tensor::RandomKind::Normal}) {
      const bool uniform = kind == tensor::RandomKind::Uniform;
      std::fill_n(out.data(), 77, NAN);
      kernels->random({DType::Float32, out.data(), 77, kind, {1, 2}, 0, 1});
      for (int i = 0; i < 77; i++) {
        const float value = out.data()[i];
        CHECK(uniform ? value >= 0 && value < 1 : std::fabs(value) < 7);
      }
    }
  }
}

int main() { return test::run_all(); }
