// Tests optimiser steps at every instruction set against the formulas of torch.optim in double, written out one element
// at a time.
#include <limits>

#include "test/tensor/tensor_oracle.h"

using namespace ringwise;
using tensor::OptimizerKind;
using tensor::OptimizerRule;
using tensor::OptimizerTensor;
using test::all_levels;
using test::noise;

namespace {

constexpr size_t kSizes[] = {0, 1, 3, 4, 15, 16, 17, 33, 1025};

/// A parameter of one element, and up to three optimiser states of it.
struct Cell {
  double value, a = 0, b = 0, c = 0;
};

void sgd(Cell& x, double grad, const OptimizerRule& rule, int step, bool has_state) {
  double g = (rule.maximize ? -grad : grad) + rule.weight_decay * x.value;
  if (has_state) {
    x.a = step == 1 ? g : rule.momentum * x.a + (1 - rule.smoothing) * g;
    g = rule.variant ? g + rule.momentum * x.a : x.a;
  }
  x.value -= rule.lr * g;
}

void adam(Cell& x, double grad, const OptimizerRule& rule, int step, bool has_most) {
  double g = rule.maximize ? -grad : grad;
  if (rule.variant)
    x.value *= 1 - rule.lr * rule.weight_decay;
  else
    g += rule.weight_decay * x.value;
  x.a = rule.momentum * x.a + (1 - rule.momentum) * g;
  x.b = rule.smoothing * x.b + (1 - rule.smoothing) * g * g;
  x.c = std::max(x.c, x.b);
  const double mean = x.a / (1 - std::pow(rule.momentum, step));
  const double square = (has_most ? x.c : x.b) / (1 - std::pow(rule.smoothing, step));
  x.value -= rule.lr * mean / (std::sqrt(square) + rule.epsilon);
}

void rmsprop(Cell& x, double grad, const OptimizerRule& rule, bool has_velocity) {
  const double g = (rule.maximize ? -grad : grad) + rule.weight_decay * x.value;
  x.a = rule.smoothing * x.a + (1 - rule.smoothing) * g * g;
  x.c = rule.smoothing * x.c + (1 - rule.smoothing) * g;
  double step = g / (std::sqrt(rule.variant ? x.a - x.c * x.c : x.a) + rule.epsilon);
  if (has_velocity) step = x.b = rule.momentum * x.b + step;
  x.value -= rule.lr * step;
}

void lion(Cell& x, double grad, const OptimizerRule& rule) {
  const double g = rule.maximize ? -grad : grad;
  const double blend = rule.momentum * x.a + (1 - rule.momentum) * g;
  x.value = x.value * (1 - rule.lr * rule.weight_decay) - rule.lr * (blend > 0 ? 1 : blend < 0 ? -1 : 0);
  x.a = rule.smoothing * x.a + (1 - rule.smoothing) * g;
}

/// Runs five steps over two tensors in one call, in float or double, and compares the values with the formulas.
template <class T>
void five_steps(const OptimizerRule& rule, bool first_state, bool second_state, bool third_state, double tolerance) {
  for (const auto* k : all_levels()) {
    for (const size_t count : kSizes) {
      const std::vector<float> start = noise(2 * count, 1);
      std::vector<T> param(start.begin(), start.end()),
          states[3] = {std::vector<T>(2 * count), std::vector<T>(2 * count), std::vector<T>(2 * count)};
      std::vector<Cell> want;
      for (const T value : param) want.push_back({static_cast<double>(value)});
      for (int step = 1; step <= 5; step++) {
        const std::vector<float> noise_now = noise(2 * count, 10 + step);
        const std::vector<T> grad(noise_now.begin(), noise_now.end());
        std::vector<OptimizerTensor> tensors;
        for (const size_t from : {size_t{0}, count}) {
          tensors.push_back(
              {sizeof(T) == 8 ? DType::Float64 : DType::Float32,
               count,
               static_cast<double>(step),
               param.data() + from,
               grad.data() + from,
               {first_state ? states[0].data() + from : nullptr, second_state ? states[1].data() + from : nullptr,
                third_state ? states[2].data() + from : nullptr}});
        }
        k->optimize({rule, tensors.data(), tensors.size()});
        for (size_t i = 0; i < want.size(); i++) {
          const double g = grad[i];
          if (rule.kind == OptimizerKind::Sgd)
            sgd(want[i], g, rule, step, first_state);
          else if (rule.kind == OptimizerKind::Adam)
            adam(want[i], g, rule, step, third_state);
          else if (rule.kind == OptimizerKind::Rmsprop)
            rmsprop(want[i], g, rule, second_state);
          else
            lion(want[i], g, rule);
        }
      }
      for (size_t i = 0; i < want.size(); i++) {
        CHECK_NEAR(param[i], want[i].value, tolerance);
        if (first_state) CHECK_NEAR(states[0][i], want[i].a, tolerance);
      }
    }
  }
}

void both_types(const OptimizerRule& rule, bool first_state, bool second_state, bool third_state) {
  five_steps<float>(rule, first_state, second_state, third_state, 2e-5);
  five_steps<double>(rule, first_state, second_state, third_state, 1e-12);
}

OptimizerRule rule_of(OptimizerKind kind, double momentum, double smoothing, bool variant, bool maximize) {
  OptimizerRule rule;
  rule.kind = kind;
  rule.lr = 0.05;
  rule.weight_decay = 0.03;
  rule.momentum = momentum;
  rule.smoothing = smoothing;
  rule.epsilon = 1e-3;
  rule.variant = variant;
  rule.maximize = maximize;
  return rule;
}

}  // namespace

TEST("sgd, with and without velocity, Nesterov, maximising") {
  both_types(rule_of(OptimizerKind::Sgd, 0, 0, false, false), false, false, false);
  both_types(rule_of(OptimizerKind::Sgd, 0.9, 0.3, false, true), true, false, false);
  both_types(rule_of(OptimizerKind::Sgd, 0.9, 0, true, false), true, false, false);
}

TEST("adam, with the decay inside the gradient or beside it, with the maximum of mean squares") {
  both_types(rule_of(OptimizerKind::Adam, 0.9, 0.95, false, true), true, true, false);
  both_types(rule_of(OptimizerKind::Adam, 0.8, 0.99, true, false), true, true, true);
}

TEST("rmsprop, plain, with velocity, centered") {
  both_types(rule_of(OptimizerKind::Rmsprop, 0, 0.9, false, true), true, false, false);
  both_types(rule_of(OptimizerKind::Rmsprop, 0.7, 0.9, false, false), true, true, false);
  both_types(rule_of(OptimizerKind::Rmsprop, 0.7, 0.9, true, false), true, true, true);
}

TEST("lion") { both_types(rule_of(OptimizerKind::Lion, 0.9, 0.99, false, true), true, false, false); }

TEST("the total norm, and scaling, which notices an infinity or NaN at any position") {
  for (const auto* k : all_levels()) {
    for (const size_t count : kSizes) {
      std::vector<float> a = noise(count, 3);
      std::vector<double> b(count, 0.5);
      const OptimizerTensor tensors[] = {{DType::Float32, count, 1, a.data(), nullptr, {}},
                                         {DType::Float64, count, 1, b.data(), nullptr, {}}};
      double want = 0.25 * static_cast<double>(count);
      for (const float value : a) want += static_cast<double>(value) * value;
      float norm = -1, not_finite = 0;
      k->total_norm({tensors, 2, &norm});
      CHECK_NEAR(norm, std::sqrt(want), 1e-6 * std::sqrt(want));
      const std::vector<float> before = a;
      k->scale({tensors, 2, nullptr, 0.25, &not_finite});
      CHECK_EQ(not_finite, 0.0f);
      for (size_t i = 0; i < count; i++) {
        CHECK_EQ(a[i], before[i] * 0.25f);
        CHECK_EQ(b[i], 0.125);
      }
      for (const float odd : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                              std::numeric_limits<float>::quiet_NaN()}) {
        for (size_t i = 0; i < count; i += 7) {
          std::vector<float> spoiled = before;
          spoiled[i] = odd;
          const OptimizerTensor one{DType::Float32, count, 1, spoiled.data(), nullptr, {}};
          float found = 0;
          const float factor = 0.5;
          k->scale({&one, 1, &factor, 0, &found});
          CHECK_EQ(found, 1.0f);
        }
      }
    }
  }
}

int main() { return test::run_all(); }
