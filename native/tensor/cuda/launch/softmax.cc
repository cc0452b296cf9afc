// Softmax, likelihoods and cross entropy of rows: the host's side of kernels/softmax.cu.
#include <stdexcept>

#include "tensor/cuda/launch/kernels.h"
#include "tensor/cuda/launch/launch.h"

namespace ringwise::tensor::cuda {

namespace {

/// Launches one block for each row.
template <class Arguments>
void softmax_rows(KernelId kernel, const Arguments& x) {
  if (x.rows == 0) return;
  if (x.rows > INT32_MAX) throw std::invalid_argument("softmax: more than 2^31 rows do not fit into one launch.");
  current_device().launch(kernel, {static_cast<unsigned>(x.rows)}, block_threads(static_cast<size_t>(x.cols)), x);
}

template <class X>
NllArguments nll_arguments(void* out, const void* in, const X& x) {
  return {out,
          in,
          x.labels,
          current_device().fault(),
          static_cast<int64_t>(x.rows),
          static_cast<int64_t>(x.cols),
          x.labels_dtype == DType::Int64,
          0};
}

CrossEntropyArguments cross_entropy_arguments(const LabelledScores& x) {
  CrossEntropyArguments arguments{};
  arguments.kept = x.kept;
  arguments.scores = x.scores;
  arguments.labels = x.labels;
  arguments.weight = x.weight;
  arguments.fault = current_device().fault();
  arguments.rows = static_cast<int64_t>(x.rows);
  arguments.cols = static_cast<int64_t>(x.cols);
  arguments.ignored = x.ignore_index;
  arguments.smoothing = x.smoothing;
  arguments.is_long = x.labels_dtype == DType::Int64;
  return arguments;
}

}  // namespace

void log_softmax(const LogSoftmax& x) {
  softmax_rows(by_stored(x.dtype, RINGWISE_STORED(log_softmax)),
               SoftmaxArguments{x.out, x.a, nullptr, static_cast<int64_t>(x.rows), static_cast<int64_t>(x.cols)});
}

void log_softmax_grad(const LogSoftmaxGrad& x) {
  softmax_rows(
      by_stored(x.dtype, RINGWISE_STORED(log_softmax_grad)),
      SoftmaxArguments{x.grad_in, x.grad_out, x.out, static_cast<int64_t>(x.rows), static_cast<int64_t>(x.cols)});
}

void nll(const Nll& x) {
  launch_over(x.rows, by_stored(x.dtype, RINGWISE_STORED(nll)), nll_arguments(x.losses, x.log_probs, x));
}

void nll_grad(const NllGrad& x) {
  softmax_rows(by_stored(x.dtype, RINGWISE_STORED(nll_grad)), nll_arguments(x.grad_in, x.grad_losses, x));
}

void cross_entropy(const CrossEntropy& x) {
  CrossEntropyArguments arguments = cross_entropy_arguments(x);
  arguments.out = x.losses;
  arguments.counts = x.counts;
  softmax_rows(by_stored(x.dtype, RINGWISE_STORED(cross_entropy)), arguments);
}

void cross_entropy_grad(const CrossEntropyGrad& x) {
  CrossEntropyArguments arguments = cross_entropy_arguments(x);
  arguments.out = x.grad_scores;
  arguments.grad = x.grad;
  arguments.divisor = x.divisor;
  arguments.number = x.divisor_number;
  arguments.is_per_row = x.is_per_row;
  softmax_rows(by_stored(x.dtype, RINGWISE_STORED(cross_entropy_grad)), arguments);
}

}  // namespace ringwise::tensor::cuda
