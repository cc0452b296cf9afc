// Steps of an LSTM: the host's side of kernels/recurrent.cu.
#include <algorithm>

#include "tensor/cuda/launch/kernels.h"
#include "tensor/cuda/launch/launch.h"

namespace ringwise::tensor::cuda {

namespace {

/// Launches a block for each row, or for each kThreads elements of one.
template <class Arguments>
void launch_rows(KernelId kernel, const Arguments& x) {
  constexpr int64_t kMostBlocks = 65535;  // in y, on every device
  if (x.rows == 0 || x.width == 0) return;
  const Grid grid{static_cast<unsigned>(std::min((x.width + kThreads - 1) / kThreads, kMostBlocks)),
                  static_cast<unsigned>(std::min(x.rows, kMostBlocks))};
  current_device().launch(kernel, grid, block_threads(static_cast<size_t>(x.width)), x);
}

}  // namespace

void lstm(const Lstm& s) {
  const LstmArguments x{s.gates,
                        s.hidden,
                        s.cell,
                        s.out,
                        s.hidden_before,
                        s.cell_before,
                        s.cell_tanh,
                        static_cast<int64_t>(s.rows),
                        static_cast<int64_t>(s.width)};
  launch_rows(by_stored(s.dtype, RINGWISE_STORED(lstm)), x);
}

void lstm_grad(const LstmGrad& s) {
  const LstmGradArguments x{s.grad_gates,
                            s.grad_cell,
                            s.gates,
                            s.cell_before,
                            s.cell_tanh,
                            s.grad_hidden,
                            s.grad_out,
                            static_cast<int64_t>(s.rows),
                            static_cast<int64_t>(s.width)};
  launch_rows(by_stored(s.dtype, RINGWISE_STORED(lstm_grad)), x);
}

}  // namespace ringwise::tensor::cuda
