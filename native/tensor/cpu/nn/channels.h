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

// Calls add(sums, i, io) for the vectors of a run, which adds to kSums sums in float32, and adds the sums of every
// kSumBlock vectors to totals[0 … kSums - 1].
template <size_t kSums, class Add>
RINGWISE_INLINE inline void add_blocks(size_t count, double* totals, Add add) {
  constexpr size_t kBlock = kSumBlock * kLanes;
  WideSum wide[kSums];
  size_t i = 0;
  for (; i + kBlock <= count; i += kBlock) {
    Vec sums[kSums] = {};
    unrolled<kSumBlock>([&](auto j) RINGWISE_INLINE { add(sums, i + j * kLanes, FullVec{}); });
    for (size_t s = 0; s < kSums; s++) wide[s].add(sums[s]);
  }
  if (i < count) {
    Vec sums[kSums] = {};
    for_each_vec(count - i, [&](size_t j, auto io) RINGWISE_INLINE { add(sums, i + j, io); });
    for (size_t s = 0; s < kSums; s++) wide[s].add(sums[s]);
  }
  for (size_t s = 0; s < kSums; s++) totals[s] += wide[s].total();
}

// Return Σ (a - mean)² of a run.
inline double square_run(const float* a, float mean, size_t count) {
  const Vec middle = splat(mean);
  double total = 0;
  add_blocks<1>(count, &total, [&](Vec* sums, size_t i, auto io) RINGWISE_INLINE {
    const Vec distance = io.load(a + i, mean) - middle;
    sums[0] += distance * distance;
  });
  return total;
}
inline double square_run(const double* a, double mean, size_t count) {
  double total = 0;
  for (size_t i = 0; i < count; i++) total += (a[i] - mean) * (a[i] - mean);
  return total;
}

// Add Σ grad and Σ grad · (a - mean) of a run to totals[0] and totals[1].
inline void grad_run(const float* grad, const float* a, float mean, size_t count, double* totals) {
  const Vec middle = splat(mean);
  add_blocks<2>(count, totals, [&](Vec* sums, size_t i, auto io) RINGWISE_INLINE {
    const Vec g = io.load(grad + i);
    sums[0] += g;
    sums[1] += g * (io.load(a + i) - middle);
  });
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
