// Everything but the matrix product, at every instruction set, against the C library and plain loops.
#include <algorithm>
#include <limits>

#include "tensor_oracle.h"

using namespace ringwise;
using tensor::BinaryOp;
using tensor::Kernels;
using tensor::ReduceOp;
using tensor::UnaryOp;
using tensor::Walk;
using test::all_levels;
using test::noise;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr size_t kSizes[] = {0, 1, 3, 4, 7, 8, 15, 16, 17, 33, 100, 1025};

/// Units in the last place between two floats of the same sign.
double ulps(float got, double want) {
  const float rounded = static_cast<float>(want);
  if (got == rounded || (got != got && want != want)) return 0;
  const double unit = std::fabs(std::nextafter(rounded, kInf) - static_cast<double>(rounded));
  return std::fabs(got - want) / unit;
}

double worst(const Kernels& kernels, UnaryOp op, double (*exact)(double), const std::vector<float>& inputs) {
  std::vector<float> out(inputs.size());
  kernels.unary(op, out.data(), inputs.data(), inputs.size());
  double most = 0;
  for (size_t i = 0; i < inputs.size(); i++) most = std::max(most, ulps(out[i], exact(inputs[i])));
  return most;
}

/// From `low` to `high` in steps that hit no round numbers, and the edges of float32.
std::vector<float> sweep(float low, float high) {
  std::vector<float> inputs{0.0f, -0.0f, kInf, -kInf, NAN, 1e-45f, 1.2e-38f, 3.4e38f};
  for (int i = 0; i <= 20000; i++) inputs.push_back(low + (high - low) * static_cast<float>(i) / 20000);
  return inputs;
}

template <int N>
Walk<N> walk_of(std::initializer_list<size_t> shape, std::initializer_list<std::initializer_list<ptrdiff_t>> strides) {
  Walk<N> walk;
  walk.rank = static_cast<int>(shape.size());
  std::copy(shape.begin(), shape.end(), walk.shape);
  int i = 0;
  for (const auto& input : strides) std::copy(input.begin(), input.end(), walk.strides[i++]);
  return walk;
}

/// Where input i of a walk reads for each element of the output.
template <int N>
std::vector<size_t> reads(const Walk<N>& walk, int i) {
  std::vector<size_t> all{0};
  for (int d = 0; d < walk.rank; d++) {
    std::vector<size_t> next;
    for (const size_t at : all) {
      for (size_t j = 0; j < walk.shape[d]; j++) next.push_back(at + j * static_cast<size_t>(walk.strides[i][d]));
    }
    all = next;
  }
  return all;
}

}  // namespace

TEST("exp, log, tanh and sigmoid are within 2.5 units in the last place, and right at the edges") {
  for (const auto* k : all_levels()) {
    CHECK(worst(*k, UnaryOp::Exp, [](double x) { return std::exp(x); }, sweep(-87, 88.7f)) < 2.5);
    CHECK(worst(*k, UnaryOp::Log, [](double x) { return std::log(x); }, sweep(1e-3f, 50)) < 2.5);
    CHECK(worst(*k, UnaryOp::Log, [](double x) { return std::log(x); }, sweep(1e-45f, 1e-37f)) < 2.5);
    CHECK(worst(*k, UnaryOp::Tanh, [](double x) { return std::tanh(x); }, sweep(-10, 10)) < 2.5);
    CHECK(worst(*k, UnaryOp::Sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, sweep(-80, 80)) < 4);
    std::vector<float> tiny{-88, -90, -100, -103, -103.9f, -104, -110, -1000}, out(tiny.size());
    k->unary(UnaryOp::Exp, out.data(), tiny.data(), tiny.size());
    for (size_t i = 0; i < tiny.size(); i++) CHECK_NEAR(out[i], std::exp(static_cast<double>(tiny[i])), 1.5e-45);
  }
}

TEST("an element's result does not depend on where in the array it stands") {
  const auto values = noise(200);
  for (const auto* k : all_levels()) {
    for (int op = 0; op <= static_cast<int>(UnaryOp::Tanh); op++) {
      std::vector<float> all(values.size()), part(values.size() - 13);
      k->unary(static_cast<UnaryOp>(op), all.data(), values.data(), values.size());
      k->unary(static_cast<UnaryOp>(op), part.data(), values.data() + 13, part.size());
      for (size_t i = 0; i < part.size(); i++) CHECK(part[i] == all[i + 13] || part[i] != part[i]);
    }
  }
}

TEST("binary operations follow any strides") {
  const auto a = noise(400, 2), b = noise(400, 3);
  const Walk<2> walks[] = {
      walk_of<2>({}, {{}, {}}),
      walk_of<2>({33}, {{1}, {0}}),
      walk_of<2>({33}, {{0}, {1}}),
      walk_of<2>({33}, {{3}, {2}}),
      walk_of<2>({5, 17}, {{17, 1}, {0, 1}}),
      walk_of<2>({5, 17}, {{17, 1}, {1, 0}}),
      walk_of<2>({5, 17}, {{1, 5}, {17, 1}}),
      walk_of<2>({3, 1, 4, 6}, {{24, 99, 6, 1}, {6, 0, 0, 1}}),
      walk_of<2>({2, 3, 4, 5}, {{1, 2, 6, 24}, {60, 0, 5, 1}}),
      walk_of<2>({4, 0, 3}, {{3, 3, 1}, {0, 0, 0}}),
  };
  for (const auto* k : all_levels()) {
    for (const auto& walk : walks) {
      const auto from_a = reads(walk, 0), from_b = reads(walk, 1);
      std::vector<float> out(from_a.size());
      k->binary(BinaryOp::Sub, DType::Float32, out.data(), a.data(), b.data(), walk);
      for (size_t i = 0; i < out.size(); i++) CHECK_EQ(out[i], a[from_a[i]] - b[from_b[i]]);
    }
  }
}

TEST("integers wrap around and convert towards zero") {
  for (const auto* k : all_levels()) {
    const std::vector<int32_t> a{INT32_MAX, 65537, -5}, b{1, 65537, 3};
    std::vector<int32_t> out(3);
    k->binary(BinaryOp::Add, DType::Int32, out.data(), a.data(), b.data(), walk_of<2>({3}, {{1}, {1}}));
    CHECK((out == std::vector<int32_t>{INT32_MIN, 131074, -2}));
    k->binary(BinaryOp::Mul, DType::Int32, out.data(), a.data(), b.data(), walk_of<2>({3}, {{1}, {1}}));
    CHECK((out == std::vector<int32_t>{INT32_MAX, 131073, -15}));
    const std::vector<float> floats{1.9f, -1.9f, 3e9f, -3e9f, NAN};
    std::vector<int32_t> narrow(5);
    std::vector<int64_t> wide(5);
    k->copy(DType::Int32, narrow.data(), DType::Float32, floats.data(), 5);
    k->copy(DType::Int64, wide.data(), DType::Float32, floats.data(), 5);
    CHECK((narrow == std::vector<int32_t>{1, -1, INT32_MIN, INT32_MIN, INT32_MIN}));
    CHECK((wide == std::vector<int64_t>{1, -1, 3000000000, -3000000000, INT64_MIN}));
  }
}

TEST("strided gathers any layout in both element sizes") {
  const auto a = noise(1400);
  std::vector<double> wide(a.begin(), a.end());
  const Walk<1> walks[] = {walk_of<1>({700}, {{2}}),          walk_of<1>({35, 40}, {{1, 35}}),
                           walk_of<1>({40, 35}, {{1, 40}}),   walk_of<1>({3, 50}, {{0, 7}}),
                           walk_of<1>({7, 8, 9}, {{1, 7, 56}}), walk_of<1>({20, 3, 20}, {{3, 1, 60}}),
                           walk_of<1>({}, {{}}),              walk_of<1>({0, 5}, {{5, 1}})};
  for (const auto* k : all_levels()) {
    for (const auto& walk : walks) {
      const auto from = reads(walk, 0);
      std::vector<float> out(from.size());
      std::vector<double> wide_out(from.size());
      k->strided(4, out.data(), a.data(), walk);
      k->strided(8, wide_out.data(), wide.data(), walk);
      for (size_t i = 0; i < from.size(); i++) {
        CHECK_EQ(out[i], a[from[i]]);
        CHECK_EQ(wide_out[i], wide[from[i]]);
      }
    }
  }
}

TEST("reductions over the middle") {
  for (const auto* k : all_levels()) {
    for (const size_t outer : {1, 3}) {
      for (const size_t size : kSizes) {
        for (const size_t inner : {1, 5, 17, 64}) {
          const auto a = noise(outer * size * inner);
          std::vector<float> sum(outer * inner), most(outer * inner);
          std::vector<int32_t> at(outer * inner);
          k->reduce(ReduceOp::Sum, DType::Float32, sum.data(), a.data(), outer, size, inner);
          k->reduce(ReduceOp::Max, DType::Float32, most.data(), a.data(), outer, size, inner);
          if (size > 0) k->argmax(DType::Float32, at.data(), a.data(), outer, size, inner);
          for (size_t i = 0; i < outer * inner; i++) {
            double total = 0, magnitude = 0;
            float best = -kInf;
            int32_t best_at = 0;
            for (size_t s = 0; s < size; s++) {
              const float value = a[(i / inner * size + s) * inner + i % inner];
              total += value;
              magnitude += std::fabs(value);
              if (value > best) best_at = static_cast<int32_t>(s);
              best = std::max(best, value);
            }
            CHECK_NEAR(sum[i], total, 1e-6 * magnitude);
            CHECK_EQ(most[i], best);
            CHECK_EQ(at[i], best_at);
          }
        }
      }
    }
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
      k->log_softmax(out.data(), a.data(), rows, cols);
      k->log_softmax_grad(grad_in.data(), grad.data(), out.data(), rows, cols);
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
    k->nll(losses.data(), a.data(), DType::Int32, narrow.data(), 3, 4);
    CHECK((losses == std::vector<float>{-a[2], -a[4], -a[11]}));
    k->nll_grad(grad.data(), losses.data(), DType::Int64, wide.data(), 3, 4);
    for (size_t i = 0; i < 12; i++) CHECK_EQ(grad[i], i == 2 ? a[2] : i == 4 ? a[4] : i == 11 ? a[11] : 0.0f);
  }
}

TEST("sgd takes the steps of torch.optim.SGD") {
  tensor::SgdOptions options;
  options.lr = 0.1f;
  options.weight_decay = 0.01f;
  for (const float momentum : {0.0f, 0.9f}) {
    for (const bool nesterov : {false, true}) {
      options.momentum = momentum;
      options.nesterov = nesterov;
      options.dampening = nesterov ? 0.0f : 0.3f;
      for (const auto* k : all_levels()) {
        for (const size_t count : kSizes) {
          auto param = noise(count);
          std::vector<float> velocity(count, NAN);
          std::vector<double> want(param.begin(), param.end()), speed(count);
          for (int step = 0; step < 3; step++) {
            const auto grad = noise(count, 10 + step);
            options.first = step == 0;
            k->sgd(param.data(), grad.data(), momentum == 0 ? nullptr : velocity.data(), options, count);
            for (size_t i = 0; i < count; i++) {
              double g = grad[i] + 0.01 * want[i];
              if (momentum != 0) {
                speed[i] = step == 0 ? g : 0.9 * speed[i] + (nesterov ? 1.0 : 0.7) * g;
                g = nesterov ? g + 0.9 * speed[i] : speed[i];
              }
              want[i] -= 0.1 * g;
            }
          }
          for (size_t i = 0; i < count; i++) CHECK_NEAR(param[i], want[i], 1e-6);
        }
      }
    }
  }
}

int main() { return test::run_all(); }
