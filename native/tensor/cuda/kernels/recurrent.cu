// One step of an LSTM and its gradient, after the product with the hidden state. A thread computes elements of the
// states; neighbouring threads read neighbouring elements of each gate.
#include "tensor/cuda/kernels/shared/functions.cuh"

namespace ringwise::tensor::cuda {

/// Calls body(element of the states, element of the first gate) for the elements of this thread. Blocks share a row in
/// x, and rows in y, so that nothing is divided.
template <class Arguments, class Body>
__device__ inline void for_each_state(const Arguments& x, Body body) {
  for (int64_t r = blockIdx.y; r < x.rows; r += gridDim.y) {
    const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
    for (int64_t j = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; j < x.width; j += step)
      body(r * x.width + j, 4 * r * x.width + j);
  }
}

template <class E, class T>
__device__ void lstm(const LstmArguments& x) {
  for_each_state(x, [&](int64_t at, int64_t gate) {
    E* gates = static_cast<E*>(x.gates) + gate;
    E &hidden = static_cast<E*>(x.hidden)[at], &cell = static_cast<E*>(x.cell)[at];
    const E hidden_before = hidden, cell_before = cell;
    T i = read_as<T>(gates[0]), f = read_as<T>(gates[x.width]), g = read_as<T>(gates[2 * x.width]),
      o = read_as<T>(gates[3 * x.width]), next = 0, bounded = 0;
    // The image has both functions once: inlined at every use, they would be most of it.
#pragma unroll 1
    for (int k = 0; k < 5; k++) {
      if (k == 4) next = i * g + f * read_as<T>(cell_before);
      const T from = k == 0 ? i : k == 1 ? f : k == 2 ? o : k == 3 ? g : next;
      const T value = k < 3 ? sigmoid_of(from) : tanh(from);
      i = k == 0 ? value : i;
      f = k == 1 ? value : f;
      o = k == 2 ? value : o;
      g = k == 3 ? value : g;
      bounded = value;
    }
    gates[0] = write_as<E>(i);
    gates[x.width] = write_as<E>(f);
    gates[2 * x.width] = write_as<E>(g);
    gates[3 * x.width] = write_as<E>(o);
    static_cast<E*>(x.hidden_before)[at] = hidden_before;
    static_cast<E*>(x.cell_before)[at] = cell_before;
    static_cast<E*>(x.cell_tanh)[at] = write_as<E>(bounded);
    cell = write_as<E>(next);
    static_cast<E*>(x.out)[at] = hidden = write_as<E>(o * bounded);
  });
}

template <class E, class T>
__device__ void lstm_grad(const LstmGradArguments& x) {
  for_each_state(x, [&](int64_t at, int64_t gate) {
    const auto load = [](const void* data, int64_t i) { return read_as<T>(static_cast<const E*>(data)[i]); };
    const T i = load(x.gates, gate), f = load(x.gates, gate + x.width), g = load(x.gates, gate + 2 * x.width),
            o = load(x.gates, gate + 3 * x.width), bounded = load(x.cell_tanh, at);
    const T hidden = load(x.grad_hidden, at) + load(x.grad_out, at);
    const T cell = load(x.grad_cell, at) + hidden * o * (T(1) - bounded * bounded);
    E* to = static_cast<E*>(x.grad_gates) + gate;
    to[0] = write_as<E>(cell * g * i * (T(1) - i));
    to[x.width] = write_as<E>(cell * load(x.cell_before, at) * f * (T(1) - f));
    to[2 * x.width] = write_as<E>(cell * i * (T(1) - g * g));
    to[3 * x.width] = write_as<E>(hidden * bounded * o * (T(1) - o));
    static_cast<E*>(x.grad_cell)[at] = write_as<E>(cell * f);
  });
}

#define RINGWISE_STEPS(name, E, T)                                       \
  RINGWISE_KERNEL(lstm_##name, LstmArguments) { lstm<E, T>(arguments); } \
  RINGWISE_KERNEL(lstm_grad_##name, LstmGradArguments) { lstm_grad<E, T>(arguments); }
RINGWISE_STEPS(float, float, float)
RINGWISE_STEPS(double, double, double)
RINGWISE_STEPS(half, Half, float)
RINGWISE_STEPS(bfloat, BFloat, float)

}  // namespace ringwise::tensor::cuda
