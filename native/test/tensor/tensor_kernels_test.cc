// Tests the kernels of elementwise operations, copies, reductions, lookups and losses at every instruction set, against
// the C library and plain loops.
#include <algorithm>
#include <limits>

#include "base/half.h"
#include "test/tensor/tensor_oracle.h"
#include "test/tensor/tensor_walk.h"

using namespace ringwise;
using tensor::Kernels;
using tensor::MapOp;
using tensor::ReduceOp;
using test::all_levels;
using test::floats;
using test::Guarded;
using test::noise;
using test::View;
using test::walk_of;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr size_t kSizes[] = {0, 1, 3, 4, 7, 8, 15, 16, 17, 33, 100, 1025};

/// Returns the difference between two floats of the same sign, in units in the last place.
double ulps(float got, double want) {
  const float rounded = static_cast<float>(want);
  if (got == rounded || (got != got && want != want)) return 0;
  const double unit = std::fabs(std::nextafter(rounded, kInf) - static_cast<double>(rounded));
  return std::fabs(got - want) / unit;
}

double worst(const Kernels& kernels, MapOp op, double (*exact)(double), const std::vector<float>& inputs) {
  std::vector<float> out(inputs.size());
  kernels.map({op, DType::Float32, walk_of({inputs.size()}, {floats(out.data()), floats(inputs.data())})});
  double most = 0;
  for (size_t i = 0; i < inputs.size(); i++) most = std::max(most, ulps(out[i], exact(inputs[i])));
  return most;
}

/// Returns the special values of float32, and values from `low` to `high` in steps that hit few round numbers.
std::vector<float> sweep(float low, float high) {
  std::vector<float> inputs{0.0f, -0.0f, kInf, -kInf, NAN, 1e-45f, 1.2e-38f, 3.4e38f};
  for (int i = 0; i <= 20000; i++) inputs.push_back(low + (high - low) * static_cast<float>(i) / 20000);
  return inputs;
}

/// Returns the offsets that a walk with these strides visits.
std::vector<size_t> places(const std::vector<size_t>& shape, const std::vector<ptrdiff_t>& strides) {
  std::vector<size_t> all{0};
  for (size_t d = 0; d < shape.size(); d++) {
    std::vector<size_t> next;
    for (const size_t at : all) {
      for (size_t j = 0; j < shape[d]; j++) next.push_back(at + j * static_cast<size_t>(strides[d]));
    }
    all = next;
  }
  return all;
}

std::vector<ptrdiff_t> dense(const std::vector<size_t>& shape) {
  std::vector<ptrdiff_t> strides(shape.size());
  ptrdiff_t stride = 1;
  for (size_t d = shape.size(); d-- > 0; stride *= static_cast<ptrdiff_t>(shape[d])) strides[d] = stride;
  return strides;
}

}  // namespace

TEST("exp, log, tanh, sigmoid and erf are within a few units in the last place, and right at the edges") {
  for (const auto* k : all_levels()) {
    CHECK(worst(*k, MapOp::Exp, [](double x) { return std::exp(x); }, sweep(-87, 88.7f)) < 2.5);
    CHECK(worst(*k, MapOp::Log, [](double x) { return std::log(x); }, sweep(1e-3f, 50)) < 2.5);
    CHECK(worst(*k, MapOp::Log, [](double x) { return std::log(x); }, sweep(1e-45f, 1e-37f)) < 2.5);
    CHECK(worst(*k, MapOp::Tanh, [](double x) { return std::tanh(x); }, sweep(-10, 10)) < 2.5);
    CHECK(worst(*k, MapOp::Sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, sweep(-80, 80)) < 4);
    CHECK(worst(*k, MapOp::Erf, [](double x) { return std::erf(x); }, sweep(-6, 6)) < 4);
    std::vector<float> tiny{-88, -90, -100, -103, -103.9f, -104, -110, -1000}, out(tiny.size());
    k->map({MapOp::Exp, DType::Float32, walk_of({tiny.size()}, {floats(out.data()), floats(tiny.data())})});
    for (size_t i = 0; i < tiny.size(); i++) CHECK_NEAR(out[i], std::exp(static_cast<double>(tiny[i])), 1.5e-45);
  }
}

TEST("an element's result does not depend on where in the array it stands") {
  const auto values = noise(1200);
  for (const auto* k : all_levels()) {
    for (int op = 0; op <= static_cast<int>(MapOp::Erfinv); op++) {
      if (op > static_cast<int>(MapOp::LogicalNot) && op < static_cast<int>(MapOp::Log1p)) continue;  // of two
      std::vector<float> all(values.size()), part(values.size() - 13);
      const auto map = [&](std::vector<float>& out, const float* in) {
        k->map({static_cast<MapOp>(op), DType::Float32, walk_of({out.size()}, {floats(out.data()), floats(in)})});
      };
      map(all, values.data());
      map(part, values.data() + 13);
      for (size_t i = 0; i < part.size(); i++) CHECK(part[i] == all[i + 13] || part[i] != part[i]);
    }
  }
}

TEST("operations follow any strides, and stay inside of their operands") {
  struct Case {
    std::vector<size_t> shape;
    std::vector<ptrdiff_t> a, b;
  };
  const Case cases[] = {{{}, {}, {}},
                        {{33}, {1}, {0}},
                        {{33}, {0}, {1}},
                        {{1033}, {3}, {2}},
                        {{5, 17}, {17, 1}, {0, 1}},
                        {{5, 17}, {17, 1}, {1, 0}},
                        {{5, 17}, {1, 5}, {17, 1}},
                        {{3, 1, 4, 6}, {24, 99, 6, 1}, {6, 0, 0, 1}},
                        {{2, 3, 4, 5}, {1, 2, 6, 24}, {60, 0, 5, 1}},
                        {{4, 0, 3}, {3, 3, 1}, {0, 0, 0}}};
  for (const auto* k : all_levels()) {
    for (const auto& [shape, a_strides, b_strides] : cases) {
      const auto from_a = places(shape, a_strides), from_b = places(shape, b_strides);
      const size_t count = from_a.size();
      const size_t a_count = count ? *std::max_element(from_a.begin(), from_a.end()) + 1 : 0;
      const size_t b_count = count ? *std::max_element(from_b.begin(), from_b.end()) + 1 : 0;
      const auto a = noise(a_count, 2), b = noise(b_count, 3);
      const Guarded left(a), right(b), out(std::vector<float>(count, NAN));
      k->map({MapOp::Sub, DType::Float32,
              walk_of(shape, {floats(out.data(), dense(shape)), floats(left.data(), a_strides),
                              floats(right.data(), b_strides)})});
      for (size_t i = 0; i < count; i++) CHECK_EQ(out.data()[i], a[from_a[i]] - b[from_b[i]]);
      k->copy({walk_of(shape, {floats(out.data(), dense(shape)), floats(left.data(), a_strides)})});
      for (size_t i = 0; i < count; i++) CHECK_EQ(out.data()[i], a[from_a[i]]);
    }
  }
}

TEST("integers wrap around and convert towards zero") {
  for (const auto* k : all_levels()) {
    const std::vector<int32_t> a{INT32_MAX, 65537, -5}, b{1, 65537, 3};
    std::vector<int32_t> out(3);
    const tensor::Walk walk =
        walk_of({3}, {{out.data(), DType::Int32, {1}}, {a.data(), DType::Int32, {1}}, {b.data(), DType::Int32, {1}}});
    k->map({MapOp::Add, DType::Int32, walk});
    CHECK((out == std::vector<int32_t>{INT32_MIN, 131074, -2}));
    k->map({MapOp::Mul, DType::Int32, walk});
    CHECK((out == std::vector<int32_t>{INT32_MAX, 131073, -15}));
    const std::vector<float> from{1.9f, -1.9f, 3e9f, -3e9f, NAN};
    std::vector<int32_t> narrow(5);
    std::vector<int64_t> wide(5);
    k->copy({walk_of({5}, {{narrow.data(), DType::Int32, {1}}, floats(from.data())})});
    k->copy({walk_of({5}, {{wide.data(), DType::Int64, {1}}, floats(from.data())})});
    CHECK((narrow == std::vector<int32_t>{1, -1, INT32_MIN, INT32_MIN, INT32_MIN}));
    CHECK((wide == std::vector<int64_t>{1, -1, 3000000000, -3000000000, INT64_MIN}));
  }
}

TEST("float16 and bfloat16 read and write every pattern as base/half.h does") {
  for (const auto* k : all_levels()) {
    for (const DType dtype : {DType::Float16, DType::BFloat16}) {
      std::vector<uint16_t> bits(65536), back(65536);
      std::vector<float> values(65536);
      for (size_t i = 0; i < bits.size(); i++) bits[i] = static_cast<uint16_t>(i);
      k->copy({walk_of({65536}, {floats(values.data()), {bits.data(), dtype, {1}}})});
      k->copy({walk_of({65536}, {{back.data(), dtype, {1}}, floats(values.data())})});
      for (size_t i = 0; i < bits.size(); i++) {
        const float want = dtype == DType::Float16 ? to_float(Half{bits[i]}) : to_float(BFloat{bits[i]});
        CHECK(values[i] == want || (values[i] != values[i] && want != want));
        CHECK(back[i] == bits[i] || want != want);
      }
    }
  }
}

TEST("reductions over the middle dimension") {
  for (const auto* k : all_levels()) {
    for (const size_t outer : {1, 3}) {
      for (const size_t size : kSizes) {
        for (const size_t inner : {1, 5, 17, 64, 700}) {
          const auto a = noise(outer * size * inner);
          const Guarded in(a);
          std::vector<float> sum(outer * inner), most(outer * inner);
          std::vector<int64_t> at(outer * inner);
          const auto over_middle = [&](const void* out, DType dtype) {
            const auto step = static_cast<ptrdiff_t>(inner);
            return walk_of({outer, size, inner}, {{out, dtype, {step, 0, 1}},
                                                  floats(in.data(), {step * static_cast<ptrdiff_t>(size), step, 1})});
          };
          k->reduce({ReduceOp::Sum, over_middle(sum.data(), DType::Float32)});
          k->reduce({ReduceOp::Max, over_middle(most.data(), DType::Float32)});
          if (size > 0) k->arg_reduce({true, over_middle(at.data(), DType::Int64)});
          for (size_t i = 0; i < outer * inner; i++) {
            double total = 0, magnitude = 0;
            float best = -kInf;
            int64_t best_at = 0;
            for (size_t s = 0; s < size; s++) {
              const float value = a[(i / inner * size + s) * inner + i % inner];
              total += value;
              magnitude += std::fabs(value);
              if (value > best) best_at = static_cast<int64_t>(s);
              best = std::max(best, value);
            }
            CHECK_NEAR(sum[i], total, 1e-6 * magnitude);
            CHECK_EQ(most[i], best);
            if (size > 0) CHECK_EQ(at[i], best_at);
          }
        }
      }
    }
  }
}

TEST("lookups, sums into places, running sums, sorting and triangles stay inside of their operands") {
  for (const auto* k : all_levels()) {
    const tensor::LookupSizes rows{2, 3, 5, 7, false};
    const std::vector<int64_t> index{4, 0, 4};
    const auto a = noise(70);
    const Guarded in(a), out(std::vector<float>(42, NAN)), total(std::vector<float>(70, 0.0f));
    k->lookup({rows, DType::Float32, out.data(), in.data(), index.data()});
    for (size_t i = 0; i < 42; i++) {
      CHECK_EQ(out.data()[i], a[(i / 21 * 5 + static_cast<size_t>(index[i / 7 % 3])) * 7 + i % 7]);
    }
    k->scatter({rows, DType::Float32, total.data(), out.data(), index.data(), tensor::ScatterOp::Add});
    for (size_t i = 0; i < 70; i++) CHECK_EQ(total.data()[i], a[i] * (i / 7 % 5 == 4 ? 2 : i / 7 % 5 == 0 ? 1 : 0));
    k->cumsum({DType::Float32, total.data(), in.data(), 2, 5, 7, false});
    CHECK_NEAR(total.data()[34], a[6] + a[13] + a[20] + a[27] + a[34], 1e-6);
    std::vector<int64_t> order(20);
    k->sort({DType::Float32, out.data(), order.data(), in.data(), 10, 2, 7, true});
    for (size_t r = 0; r < 10; r++) CHECK_EQ(out.data()[2 * r], *std::max_element(&a[7 * r], &a[7 * r] + 7));
    k->triangle({DType::Float32, total.data(), in.data(), 2, 5, 7, -1, false});
    for (size_t i = 0; i < 70; i++) CHECK_EQ(total.data()[i], i % 7 < i / 7 % 5 ? a[i] : 0);
  }
}

TEST("log-softmax and its gradient, row by row") {
  for (const auto* k : all_levels()) {
    for (const size_t cols : kSizes) {
      const size_t rows = 3;
      auto a = noise(rows * cols);
      for (float& value : a) value *= 20;
      const auto grad = noise(rows * cols, 4);
      std::vector<float> out(rows * cols), grad_in(rows * cols);
      k->log_softmax({DType::Float32, out.data(), a.data(), rows, cols});
      k->log_softmax_grad({DType::Float32, grad_in.data(), grad.data(), out.data(), rows, cols});
      for (size_t r = 0; r < rows; r++) {
        double sum = 0, grad_sum = 0;
        const float most = cols ? *std::max_element(&a[r * cols], &a[r * cols] + cols) : 0;
        for (size_t c = 0; c < cols; c++) sum += std::exp(static_cast<double>(a[r * cols + c]) - most);
        for (size_t c = 0; c < cols; c++) grad_sum += grad[r * cols + c];
        for (size_t c = 0; c < cols; c++) {
          const size_t i = r * cols + c;
          const double want = a[i] - most - std::log(sum);
          CHECK_NEAR(out[i], want, 1e-5);
          CHECK_NEAR(grad_in[i], grad[i] - std::exp(want) * grad_sum, 2e-4);
        }
      }
    }
  }
}

TEST("losses pick the label's column in both integer types") {
  const auto a = noise(12);
  const std::vector<int32_t> narrow{2, 0, 3};
  const std::vector<int64_t> wide{2, 0, 3};
  for (const auto* k : all_levels()) {
    std::vector<float> losses(3), grad(12, 7.0f);
    k->nll({DType::Float32, a.data(), losses.data(), DType::Int32, narrow.data(), 3, 4});
    CHECK((losses == std::vector<float>{-a[2], -a[4], -a[11]}));
    k->nll_grad({DType::Float32, grad.data(), losses.data(), DType::Int64, wide.data(), 3, 4});
    for (size_t i = 0; i < 12; i++) CHECK_EQ(grad[i], i == 2 ? a[2] : i == 4 ? a[4] : i == 11 ? a[11] : 0.0f);
  }
}

TEST("cross entropy and its gradient, with ignored rows, weights and smoothing, inside their memory") {
  for (const auto* k : all_levels()) {
    for (const size_t cols : {1, 3, 16, 31, 70}) {
      constexpr size_t kRows = 5;
      constexpr int64_t kIgnored = -3;
      const std::vector<float> a = noise(kRows * cols), weights(cols, 0.5f);
      const Guarded scores(a), weight(weights), grad(noise(kRows));
      const std::vector<int64_t> labels{0, static_cast<int64_t>(cols) - 1, kIgnored, static_cast<int64_t>(cols / 2), 0};
      for (const double smoothing : {0.0, 0.3}) {
        const Guarded kept(std::vector<float>(2 * kRows)), losses(std::vector<float>(kRows, NAN)),
            counts(std::vector<float>(kRows, NAN)), into(std::vector<float>(kRows * cols, NAN));
        const tensor::LabelledScores x{scores.data(), DType::Int64, labels.data(), weight.data(), kept.data(),
                                       kRows,         cols,         kIgnored,      smoothing};
        k->cross_entropy({x, DType::Float32, losses.data(), counts.data()});
        k->cross_entropy_grad({x, DType::Float32, into.data(), grad.data(), nullptr, 2, true});
        for (size_t r = 0; r < kRows; r++) {
          const bool is_ignored = labels[r] == kIgnored;
          double sum = 0, loss = 0;
          for (size_t c = 0; c < cols; c++) sum += std::exp(static_cast<double>(a[r * cols + c]));
          for (size_t c = 0; c < cols; c++) {
            const double log_prob = a[r * cols + c] - std::log(sum);
            const double hit = labels[r] == static_cast<int64_t>(c) ? 1 - smoothing : 0;
            const double target = is_ignored ? 0 : 0.5 * (hit + smoothing / static_cast<double>(cols));
            loss -= target * log_prob;
            const double want = is_ignored ? 0 : grad.data()[r] / 2 * (0.5 * std::exp(log_prob) - target);
            CHECK_NEAR(into.data()[r * cols + c], want, 2e-6);
          }
          CHECK_NEAR(losses.data()[r], loss, 2e-5);
          CHECK_EQ(counts.data()[r], is_ignored ? 0.0f : 0.5f);
        }
      }
    }
  }
}

int main() { return test::run_all(); }
