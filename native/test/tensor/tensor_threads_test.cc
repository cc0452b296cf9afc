// Tests the thread pool, and that kernels give the same bits for any number of threads. Also runs with ThreadSanitizer.
#include "tensor/threads.h"

#include <atomic>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "test/tensor/tensor_oracle.h"
#include "test/tensor/tensor_walk.h"

using namespace ringwise;
using tensor::Activation;
using tensor::MapOp;
using tensor::ReduceOp;
using test::all_levels;
using test::floats;
using test::noise;
using test::walk_of;

namespace {

/// Sets the number of threads until the end of a scope.
struct Threads {
  explicit Threads(int count) : before(tensor::thread_count()) { tensor::set_thread_count(count); }
  ~Threads() { tensor::set_thread_count(before); }
  int before;
};

/// Runs `kernel(out)` with one thread and with several, and checks that the bits are the same.
template <class Kernel>
void check_same(const char* what, size_t count, Kernel kernel) {
  std::vector<float> alone(count, 7), shared(count, 7);
  {
    Threads one(1);
    kernel(alone.data());
  }
  for (const int threads : {2, 3, 8}) {
    Threads several(threads);
    kernel(shared.data());
    if (std::memcmp(alone.data(), shared.data(), count * sizeof(float)) != 0)
      test::fail(what, threads, "differs from one thread");
  }
}

}  // namespace

TEST("every part runs once, whatever the number of threads") {
  for (const int threads : {1, 2, 5}) {
    Threads several(threads);
    for (const size_t parts : {0, 1, 2, 7, 100}) {
      std::vector<std::atomic<int>> runs(parts);
      tensor::for_each_part(parts, [&](size_t i) { runs[i]++; });
      for (const auto& count : runs) CHECK_EQ(count.load(), 1);
    }
  }
}

TEST("parallel_for covers its range once, and cuts nothing that is small") {
  Threads four(4);
  std::vector<int> seen(1000);
  tensor::parallel_for(seen.size(), 100, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; i++) seen[i]++;
  });
  CHECK(seen == std::vector<int>(1000, 1));
  int calls = 0;
  tensor::parallel_for(199, 100, [&](size_t, size_t) { calls++; });
  CHECK_EQ(calls, 1);
}

TEST("parts may have parts, which run on the thread of the outer part") {
  Threads three(3);
  std::atomic<int> sum = 0;
  tensor::for_each_part(6, [&](size_t) {
    const auto self = std::this_thread::get_id();
    tensor::for_each_part(5, [&](size_t i) { sum += std::this_thread::get_id() == self ? static_cast<int>(i) : 1000; });
  });
  CHECK_EQ(sum.load(), 6 * 10);
}

TEST("the exception of a part reaches the caller, and the pool goes on") {
  Threads three(3);
  for (int round = 0; round < 20; round++) {
    bool thrown = false;
    try {
      tensor::for_each_part(9, [&](size_t i) {
        if (i == 4) throw std::bad_alloc();
      });
    } catch (const std::bad_alloc&) {
      thrown = true;
    }
    CHECK(thrown);
  }
  std::atomic<int> count = 0;
  tensor::for_each_part(9, [&](size_t) { count++; });
  CHECK_EQ(count.load(), 9);
}

TEST("callers on several threads share one pool, while its size changes") {
  Threads three(3);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; caller++) {
    callers.emplace_back([&wrong, caller] {
      for (int round = 0; round < 100; round++) {
        if (caller == 0 && round % 10 == 0) tensor::set_thread_count(1 + round / 10 % 4);
        std::atomic<size_t> sum = 0;
        tensor::for_each_part(8, [&](size_t i) { sum += i; });
        wrong += sum != 28;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK_EQ(wrong.load(), 0);
}

TEST("the number of threads: OMP_NUM_THREADS, else the cores divided among the ranks of the host") {
  using tensor::default_thread_count;
  CHECK_EQ(default_thread_count(nullptr, nullptr, 8), 8);
  CHECK_EQ(default_thread_count("3", nullptr, 8), 3);
  CHECK_EQ(default_thread_count("4,2", "2", 8), 4);
  CHECK_EQ(default_thread_count(nullptr, "2", 8), 4);
  CHECK_EQ(default_thread_count(nullptr, "16", 8), 1);
  CHECK_EQ(default_thread_count("", "", 0), 1);
  CHECK_EQ(default_thread_count("-1", "x", 2), 2);
  CHECK_EQ(default_thread_count("100000", nullptr, 2), tensor::kMostThreads);
}

TEST("elementwise kernels give the same bits for any number of threads") {
  const size_t rows = 700, cols = 401;
  const auto a = noise(rows * cols, 1), row = noise(cols, 2);
  const auto step = static_cast<ptrdiff_t>(cols);
  for (const auto* k : all_levels()) {
    check_same("dense", rows * cols, [&](float* out) {
      k->map({MapOp::Gelu, DType::Float32, walk_of({rows * cols}, {floats(out, {1}), floats(a.data(), {1})})});
    });
    check_same("broadcast", rows * cols, [&](float* out) {
      k->map(
          {MapOp::Add, DType::Float32,
           walk_of({rows, cols}, {floats(out, {step, 1}), floats(a.data(), {step, 1}), floats(row.data(), {0, 1})})});
    });
    check_same("transpose", rows * cols, [&](float* out) {
      k->copy({walk_of({cols, rows}, {floats(out, {static_cast<ptrdiff_t>(rows), 1}), floats(a.data(), {1, step})})});
    });
  }
}

TEST("reductions and softmax give the same bits for any number of threads") {
  const size_t rows = 700, cols = 401;
  const auto a = noise(rows * cols, 1), g = noise(rows * cols, 2);
  const auto step = static_cast<ptrdiff_t>(cols);
  for (const auto* k : all_levels()) {
    for (const ReduceOp op : {ReduceOp::Sum, ReduceOp::Max}) {
      check_same("rows", rows, [&](float* out) {
        k->reduce({op, walk_of({rows, cols}, {floats(out, {1, 0}), floats(a.data(), {step, 1})})});
      });
      check_same("columns", cols, [&](float* out) {
        k->reduce({op, walk_of({rows, cols}, {floats(out, {0, 1}), floats(a.data(), {step, 1})})});
      });
      check_same("all", 1, [&](float* out) {
        k->reduce({op, walk_of({rows, cols}, {floats(out, {0, 0}), floats(a.data(), {step, 1})})});
      });
    }
    check_same("log softmax", rows * cols,
               [&](float* out) { k->log_softmax({DType::Float32, out, a.data(), rows, cols}); });
    check_same("its gradient", rows * cols,
               [&](float* out) { k->log_softmax_grad({DType::Float32, out, g.data(), a.data(), rows, cols}); });
  }
}

TEST("matrix products give the same bits for any number of threads") {
  struct Shape {
    size_t m, n, k;
  };
  const Shape shapes[] = {{32, 512, 784}, {512, 784, 32},  {300, 301, 302},
                          {2, 3000, 700}, {3000, 10, 128}, {130, 1000, 401}};
  for (const auto* k : all_levels()) {
    for (const Shape& s : shapes) {
      const auto a = noise(s.m * s.k, 1), b = noise(s.k * s.n, 2);
      for (int flags = 0; flags < 8; flags++) {
        const bool trans_a = flags & 1, trans_b = flags & 2;
        check_same("matmul", s.m * s.n, [&](float* c) {
          std::fill_n(c, s.m * s.n, 7.0f);
          k->matmul(test::product_of(
              c, a.data(), b.data(),
              {s.m, s.n, s.k, trans_a ? s.m : s.k, trans_b ? s.k : s.n, trans_a, trans_b, (flags & 4) != 0}));
        });
      }
    }
  }
}

TEST("linear layers give the same bits for any number of threads") {
  const size_t rows = 200, outs = 300, ins = 150;
  const auto x = noise(rows * ins, 1), w = noise(outs * ins, 2), bias = noise(outs, 3), grad = noise(rows * outs, 4);
  for (const auto* k : all_levels()) {
    for (const size_t some : {size_t{3}, size_t{100}, rows}) {
      check_same("linear", 2 * some * outs, [&](float* out) {
        k->linear({DType::Float32, out, x.data(), w.data(), bias.data(), out + some * outs, some, outs, ins,
                   Activation::Gelu});
      });
    }
    check_same("its gradient", rows * outs + outs, [&](float* out) {
      k->linear_grad(
          {DType::Float32, out, grad.data(), grad.data(), out + rows * outs, rows, outs, Activation::GeluTanh});
    });
  }
}

TEST("attention gives the same bits for any number of threads") {
  const size_t heads = 3, length = 130, width = 40, count = 2 * heads * length * width;
  const auto operand = noise(4 * count, 1);
  const auto rows = [&](const float* data) {
    const auto step = static_cast<ptrdiff_t>(length * width);
    return tensor::HeadRows{reinterpret_cast<char*>(const_cast<float*>(data)), static_cast<ptrdiff_t>(heads) * step,
                            step, static_cast<ptrdiff_t>(width)};
  };
  for (const auto* k : all_levels()) {
    check_same("attention and its gradients", 5 * count, [&](float* out) {
      std::vector<float> lse(2 * heads * length);
      tensor::AttentionGrad x{};
      x.batch = 2;
      x.heads = heads;
      x.queries = x.keys = length;
      x.width = x.value_width = width;
      x.scale = 0.2;
      x.causal = true;
      x.dropout = 0.1;
      x.stream = {1, 0};
      x.lse = lse.data();
      x.q = rows(operand.data());
      x.k = rows(operand.data() + count);
      x.v = rows(operand.data() + 2 * count);
      x.out = rows(out);
      k->attention(x);
      std::copy(lse.begin(), lse.end(), out + 4 * count);
      x.grad_out = rows(operand.data() + 3 * count);
      x.grad_q = rows(out + count);
      x.grad_k = rows(out + 2 * count);
      x.grad_v = rows(out + 3 * count);
      k->attention_grad(x);
    });
  }
}

TEST("convolutions give the same bits for any number of threads") {
  // The planes are 18 × 18 with padding 1. At stride 2 the output is 9 × 9.
  for (const size_t stride : {size_t{1}, size_t{2}}) {
    const size_t size = 18, out_size = (size + 2 - 3) / stride + 1;
    const tensor::ConvSizes s{6, 2, 8, 12, {size, size, out_size, out_size, 3, 3, stride, stride, 1, 1, 1, 1}};
    const size_t x_count = 6 * 2 * 8 * size * size, out_count = 6 * 2 * 12 * out_size * out_size,
                 w_count = 2 * 12 * 8 * 9;
    const auto x = noise(x_count, 1), weight = noise(w_count, 2), grad = noise(out_count, 3);
    for (const auto* k : all_levels()) {
      check_same("conv2d", out_count,
                 [&](float* out) { k->conv2d({s, DType::Float32, out, x.data(), weight.data()}); });
      check_same("gradient of the input", x_count, [&](float* out) {
        k->conv2d_grad_input({s, DType::Float32, out, grad.data(), weight.data(), false});
      });
      check_same("gradient of the weight", w_count,
                 [&](float* out) { k->conv2d_grad_weight({s, DType::Float32, out, grad.data(), x.data(), false}); });
    }
  }
}

TEST("optimisers give the same bits for any number of threads, and cut tensors anywhere") {
  const size_t counts[] = {100'003, 1, 90'001, 17};
  const size_t total = 100'003 + 1 + 90'001 + 17;
  const auto params = noise(total, 1), grads = noise(total, 2);
  for (const auto* k : all_levels()) {
    check_same("adam", total, [&](float* out) {
      std::copy(params.begin(), params.end(), out);
      std::vector<float> mean(total), square(total);
      std::vector<tensor::OptimizerTensor> tensors;
      size_t at = 0;
      for (const size_t count : counts) {
        tensors.push_back(
            {DType::Float32, count, 1, out + at, grads.data() + at, {mean.data() + at, square.data() + at, nullptr}});
        at += count;
      }
      tensor::OptimizerRule rule;
      rule.kind = tensor::OptimizerKind::Adam;
      rule.lr = 0.01;
      rule.momentum = 0.9;
      rule.smoothing = 0.99;
      rule.epsilon = 1e-8;
      for (int step = 0; step < 2; step++) k->optimize({rule, tensors.data(), tensors.size()});
      float not_finite = 0;
      k->scale({tensors.data(), tensors.size(), nullptr, 0.5, &not_finite});
      CHECK_EQ(not_finite, 0.0f);
      out[total - 1] = INFINITY;
      k->scale({tensors.data(), tensors.size(), nullptr, 0.5, &not_finite});
      CHECK_EQ(not_finite, 1.0f);
    });
  }
}

int main() { return test::run_all(); }
