// Sums by channel over [outer, channels, inner], for batch normalisation. Totals are float64. Squared distances from
// the mean are summed instead of squares, so that nothing cancels. Included only by families/.
namespace ringwise::tensor::RINGWISE_LEVEL {

// Computes out[s, c] = total s of channel c / `divisor`. run(c, offset, count, totals) adds `count` elements from
// `offset` on to totals[0 … kSums - 1].
template <size_t kSums, class T, class Run>
inline void channel_totals(T* out, size_t outer, size_t channels, size_t inner, size_t divisor, Run run) {
  double totals[kTile][kSums];
  for (size_t first = 0; first < channels; first += kTile) {
    const size_t count = std::min(channels - first, kTile);
    std::memset(totals, 0, sizeof totals);
    const auto add = [&](size_t o, size_t j) { run(first + j, (o * channels + first + j) * inner, inner, totals[j]); };
    if (inner == 1) {  // in the order of memory
      for (size_t o = 0; o < outer; o++)
        for (size_t j = 0; j < count; j++) add(o, j);
    } else {
      for (size_t j = 0; j < count; j++)
        for (size_t o = 0; o < outer; o++) add(o, j);
    }
    for (size_t j = 0; j < count; j++) {
      for (size_t s = 0; s < kSums; s++)
        out[s * channels + first + j] = static_cast<T>(totals[j][s] / static_cast<double>(divisor));
    }
  }
}

// Return Σ (a - mean)² of a run.
inline double square_run(const float* a, float mean, size_t count) {
  WideSum squares;
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const Vec distance = load(a + i) - splat(mean);
    squares.add(distance * distance);
  }
  double total = squares.total();
  for (; i < count; i++) total += static_cast<double>(a[i] - mean) * static_cast<double>(a[i] - mean);
  return total;
}
inline double square_run(const double* a, double mean, size_t count) {
  double total = 0;
  for (size_t i = 0; i < count; i++) total += (a[i] - mean) * (a[i] - mean);
  return total;
}

// Add Σ grad and Σ grad · (a - mean) of a run to totals[0] and totals[1].
inline void grad_run(const float* grad, const float* a, float mean, size_t count, double* totals) {
  WideSum grads, products;
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const Vec g = load(grad + i);
    grads.add(g);
    products.add(g * (load(a + i) - splat(mean)));
  }
  totals[0] += grads.total();
  totals[1] += products.total();
  for (; i < count; i++) {
    totals[0] += static_cast<double>(grad[i]);
    totals[1] += static_cast<double>(grad[i]) * static_cast<double>(a[i] - mean);
  }
}
inline void grad_run(const double* grad, const double* a, double mean, size_t count, double* totals) {
  for (size_t i = 0; i < count; i++) {
    totals[0] += grad[i];
    totals[1] += grad[i] * (a[i] - mean);
  }
}

void channel_moments(const ChannelMoments& x) {
  const size_t outer = x.outer, channels = x.channels, inner = x.inner;
  with_float(x.dtype, [&](auto type) {
    using T = decltype(type);
    T* mean = static_cast<T*>(x.out);
    const T* from = static_cast<const T*>(x.a);
    const size_t per_channel = std::max<size_t>(1, outer * inner);
    channel_totals<1>(mean, outer, channels, inner, per_channel, [&](size_t, size_t at, size_t count, double* totals) {
      totals[0] = Sum<T>::run(totals[0], from + at, count);
    });
    channel_totals<1>(
        mean + channels, outer, channels, inner, 1,
        [&](size_t c, size_t at, size_t count, double* totals) { totals[0] += square_run(from + at, mean[c], count); });
  });
}

void channel_grad_sums(const ChannelGradSums& x) {
  with_float(x.dtype, [&](auto type) {
    using T = decltype(type);
    const T *g = static_cast<const T*>(x.grad), *from = static_cast<const T*>(x.a),
            *middle = static_cast<const T*>(x.mean);
    channel_totals<2>(static_cast<T*>(x.out), x.outer, x.channels, x.inner, 1,
                      [&](size_t c, size_t at, size_t count, double* totals) {
                        grad_run(g + at, from + at, middle[c], count, totals);
                      });
  });
}

}  // namespace ringwise::tensor::RINGWISE_LEVEL
