// One step of an LSTM and its gradient (Hochreiter, Schmidhuber: "Long Short-Term Memory", 1997; gate f: Gers,
// Schmidhuber, Cummins: "Learning to Forget", 2000), after the product with the hidden state. Included only by
// families/.
namespace ringwise::tensor::RINGWISE_LEVEL {

// Calls use(row) for all sequences; threads share them.
template <class Use>
inline void for_each_sequence(size_t rows, size_t width, Use use) {
  parallel_for(rows, kGrain / (4 * width + 1) + 1, [&](size_t begin, size_t end) {
    for (size_t r = begin; r < end; r++) use(r);
  });
}

template <class T>
void lstm_of(const Lstm& x) {
  const size_t width = x.width;
  for_each_sequence(x.rows, width, [&](size_t r) {
    const auto row = [&](void* data) { return static_cast<T*>(data) + r * width; };
    T *hidden = row(x.hidden), *cell = row(x.cell), *out = row(x.out);
    T *hidden_before = row(x.hidden_before), *cell_before = row(x.cell_before), *cell_tanh = row(x.cell_tanh);
    T *in = static_cast<T*>(x.gates) + r * 4 * width, *forget = in + width, *next = forget + width, *to = next + width;
    for_each_element<T>(width, [&](size_t j, auto io) RINGWISE_INLINE {
      const auto i = sigmoid_of(io.load(in + j)), f = sigmoid_of(io.load(forget + j));
      const auto g = tanh_of(io.load(next + j)), o = sigmoid_of(io.load(to + j));
      const auto before = io.load(cell + j), after = i * g + f * before;
      const auto bounded = tanh_of(after), result = o * bounded;
      io.store(in + j, i);
      io.store(forget + j, f);
      io.store(next + j, g);
      io.store(to + j, o);
      io.store(hidden_before + j, io.load(hidden + j));
      io.store(cell_before + j, before);
      io.store(cell_tanh + j, bounded);
      io.store(cell + j, after);
      io.store(hidden + j, result);
      io.store(out + j, result);
    });
  });
}

template <class T>
void lstm_grad_of(const LstmGrad& x) {
  const size_t width = x.width;
  for_each_sequence(x.rows, width, [&](size_t r) {
    const auto row = [&](const void* data) { return static_cast<const T*>(data) + r * width; };
    const T *grad_hidden = row(x.grad_hidden), *grad_out = row(x.grad_out);
    const T *cell_before = row(x.cell_before), *cell_tanh = row(x.cell_tanh);
    const T* gates = static_cast<const T*>(x.gates) + r * 4 * width;
    T *grad_gates = static_cast<T*>(x.grad_gates) + r * 4 * width,
      *grad_cell = static_cast<T*>(x.grad_cell) + r * width;
    for_each_element<T>(width, [&](size_t j, auto io) RINGWISE_INLINE {
      const auto i = io.load(gates + j), f = io.load(gates + width + j), g = io.load(gates + 2 * width + j),
                 o = io.load(gates + 3 * width + j);
      const auto one = like(i, 1), bounded = io.load(cell_tanh + j);
      const auto hidden = io.load(grad_hidden + j) + io.load(grad_out + j);
      const auto cell = io.load(grad_cell + j) + hidden * o * (one - bounded * bounded);
      io.store(grad_gates + j, cell * g * i * (one - i));
      io.store(grad_gates + width + j, cell * io.load(cell_before + j) * f * (one - f));
      io.store(grad_gates + 2 * width + j, cell * i * (one - g * g));
      io.store(grad_gates + 3 * width + j, hidden * bounded * o * (one - o));
      io.store(grad_cell + j, cell * f);
    });
  });
}

void lstm(const Lstm& x) {
  with_float(x.dtype, [&](auto type) { lstm_of<decltype(type)>(x); });
}

void lstm_grad(const LstmGrad& x) {
  with_float(x.dtype, [&](auto type) { lstm_grad_of<decltype(type)>(x); });
}

}  // namespace ringwise::tensor::RINGWISE_LEVEL
