// Group normalisation (Wu, He: "Group Normalization", 2018). A group of one sample is read several times, from the
// cache if it fits there. Totals are float64. Included only by families/.
namespace ringwise::tensor::RINGWISE_LEVEL {

// Calls use(sample's group r, its group, its first element) for the groups of all samples; threads share them.
template <class Sizes, class Use>
inline void for_each_group(const Sizes& x, Use use) {
  const size_t size = x.channels * x.inner;
  parallel_for(x.batch * x.groups, kGrain / (size + 1) + 1, [&](size_t begin, size_t end) {
    for (size_t r = begin; r < end; r++) use(r, r % x.groups * x.channels, r * size);
  });
}

template <class T>
void group_norm_of(const GroupNorm& x) {
  const T *gamma = static_cast<const T*>(x.gamma), *beta = static_cast<const T*>(x.beta);
  const size_t size = x.channels * x.inner;
  const auto divisor = static_cast<double>(size);
  for_each_group(x, [&](size_t r, size_t channel, size_t at) {
    const T* a = static_cast<const T*>(x.a) + at;
    T* out = static_cast<T*>(x.out) + at;
    const T mean = static_cast<T>(Sum<T>::run(0, a, size) / divisor);
    const T rstd = static_cast<T>(1 / std::sqrt(square_run(a, mean, size) / divisor + x.eps));
    static_cast<T*>(x.mean)[r] = mean;
    static_cast<T*>(x.rstd)[r] = rstd;
    for (size_t c = 0; c < x.channels; c++, a += x.inner, out += x.inner) {
      const T scale = gamma ? rstd * gamma[channel + c] : rstd, shift = beta ? beta[channel + c] : 0;
      for_each_element<T>(x.inner, [&](size_t i, auto io) RINGWISE_INLINE {
        const auto value = io.load(a + i);
        io.store(out + i, (value - like(value, mean)) * like(value, scale) + like(value, shift));
      });
    }
  });
}

// With y = (a - mean) * rstd and g = grad_out * gamma: grad_in = rstd * (g - avg(g) - y * avg(g * y)). The averages
// come from the sums of the channels.
template <class T>
void group_norm_grad_of(const GroupNormGrad& x) {
  const T* gamma = static_cast<const T*>(x.gamma);
  const auto divisor = static_cast<double>(x.channels * x.inner);
  const size_t all = x.batch * x.groups * x.channels;
  for_each_group(x, [&](size_t r, size_t channel, size_t at) {
    const T *grad = static_cast<const T*>(x.grad_out) + at, *a = static_cast<const T*>(x.a) + at;
    const T mean = static_cast<const T*>(x.mean)[r], rstd = static_cast<const T*>(x.rstd)[r];
    T* sums = static_cast<T*>(x.sums) + r * x.channels;
    double sum = 0, product = 0;
    for (size_t c = 0; c < x.channels; c++) {
      double totals[2] = {};
      grad_run(grad + c * x.inner, a + c * x.inner, mean, x.inner, totals);
      totals[1] *= static_cast<double>(rstd);
      sums[c] = static_cast<T>(totals[0]);
      sums[all + c] = static_cast<T>(totals[1]);
      const double scale = gamma ? static_cast<double>(gamma[channel + c]) : 1;
      sum += scale * totals[0];
      product += scale * totals[1];
    }
    if (!x.grad_in) return;
    T* to = static_cast<T*>(x.grad_in) + at;
    const T average = static_cast<T>(sum / divisor) * rstd, slope = static_cast<T>(product / divisor) * rstd * rstd;
    for (size_t c = 0; c < x.channels; c++, grad += x.inner, a += x.inner, to += x.inner) {
      const T scale = gamma ? rstd * gamma[channel + c] : rstd;
      for_each_element<T>(x.inner, [&](size_t i, auto io) RINGWISE_INLINE {
        const auto g = io.load(grad + i), distance = io.load(a + i) - like(g, mean);
        const auto value = g * like(g, scale) - like(g, average) - distance * like(g, slope);
        io.store(to + i, x.accumulate ? io.load(to + i) + value : value);
      });
    }
  });
}

void group_norm(const GroupNorm& x) {
  with_float(x.dtype, [&](auto type) { group_norm_of<decltype(type)>(x); });
}

void group_norm_grad(const GroupNormGrad& x) {
  with_float(x.dtype, [&](auto type) { group_norm_grad_of<decltype(type)>(x); });
}

}  // namespace ringwise::tensor::RINGWISE_LEVEL
