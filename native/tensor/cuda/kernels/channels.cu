// Sums by channel over [outer, channels, inner], for batch normalisation: two totals for each channel in one pass. The
// moments are sums of distances from an element of the channel, and of their squares. No element is further from the
// mean than √count standard deviations, so float64 totals lose at most count · 2^-53 of the variance. If there are few
// channels, they are cut into chunks, one block each; a second launch adds the totals of these in a fixed order.
#include "tensor/cuda/kernels/shared/team.cuh"

namespace ringwise::tensor::cuda {

/// Returns the number from which the distances of a channel's elements are taken.
template <class T>
__device__ inline T origin_of(const ChannelArguments& c, int64_t channel) {
  if (c.count == 0) return 0;
  if (c.b) return static_cast<const T*>(c.mean)[channel];
  const T first = static_cast<const T*>(c.a)[channel * c.inner];
  return first - first == 0 ? first : T(0);  // infinity and NaN are no origin
}

/// Writes the results of a channel from its two totals.
template <class T>
__device__ inline void write_channel(const ChannelArguments& c, int64_t channel, double first, double second) {
  T* out = static_cast<T*>(c.out);
  if (!c.b) {
    const double step = first / static_cast<double>(c.count > 0 ? c.count : 1), squares = second - first * step;
    first = static_cast<double>(origin_of<T>(c, channel)) + step;
    second = squares < 0 ? 0 : squares;
  }
  out[channel] = static_cast<T>(first);
  out[c.channels + channel] = static_cast<T>(second);
}

/// Adds the units of chunk blockIdx.y. In columns a pack has one element of each of kPack channels.
template <class T, int kPack, bool kIsColumn, bool kIsGrad>
__device__ inline void add_channels(const ChannelArguments& c, double* shared) {
  constexpr int kChannels = kIsColumn ? kPack : 1, kInFlight = (kPack > 1 ? 4 : 8) / (kIsGrad ? 2 : 1);
  const Team team(c.lanes, c.is_column);
  const int64_t channel = (static_cast<int64_t>(blockIdx.x) * team.lanes + team.lane) * kChannels;
  const int64_t begin = static_cast<int64_t>(blockIdx.y) * c.chunk;
  const int64_t end = channel >= c.channels ? 0 : begin + c.chunk < c.units ? begin + c.chunk : c.units;
  const auto data_of = [&](const void* data) {
    return reinterpret_cast<const char*>(static_cast<const T*>(data) + channel * c.inner);
  };
  const char *a = data_of(c.a), *grad = kIsGrad ? data_of(c.b) : nullptr;
  T origins[kChannels];
#pragma unroll
  for (int k = 0; k < kChannels; k++) origins[k] = end > 0 ? origin_of<T>(c, channel + k) : T(0);
  double totals[2 * kChannels] = {};
  for (int64_t j = begin + team.way; j < end; j += kInFlight * team.ways) {
    Elements<T, kPack> values[kInFlight], grads[kInFlight];
#pragma unroll
    for (int u = 0; u < kInFlight; u++) {
      const int64_t at = j + u * team.ways;
      const int64_t offset = reduced_offset(c.reduced, c.reduced_rank, at < end ? at : j);
      values[u] = load_elements<T, kPack>(a + offset);
      if constexpr (kIsGrad) grads[u] = load_elements<T, kPack>(grad + offset);
    }
#pragma unroll
    for (int u = 0; u < kInFlight; u++) {
      if (j + u * team.ways >= end) continue;
#pragma unroll
      for (int k = 0; k < kPack; k++) {
        const int channel_of_k = kIsColumn ? k : 0;
        const T origin = origins[channel_of_k];
        double &first = totals[channel_of_k], &second = totals[kChannels + channel_of_k];
        if constexpr (kIsGrad) {
          const auto g = static_cast<double>(grads[u].at[k]);
          first += g;
          second += g * static_cast<double>(values[u].at[k] - origin);
        } else {
          const double distance = static_cast<double>(values[u].at[k]) - static_cast<double>(origin);
          first += distance;
          second += distance * distance;
        }
      }
    }
  }
  add_pairs<kChannels>(team, c.channels, totals, shared, [&](int64_t i, double first, double second) {
    if (!c.partial) return write_channel<T>(c, i, first, second);
    double* to = c.partial + static_cast<int64_t>(blockIdx.y) * 2 * c.channels;
    to[i] = first;
    to[c.channels + i] = second;
  });
}

template <class T, bool kIsGrad>
__device__ void sum_channels(const ChannelArguments& c) {
  constexpr int kPack = 16 / sizeof(T);
  __shared__ double shared[2 * kPack * kThreads];
  if (!c.use_packs)
    add_channels<T, 1, false, kIsGrad>(c, shared);
  else if (c.is_column)
    add_channels<T, kPack, true, kIsGrad>(c, shared);
  else
    add_channels<T, kPack, false, kIsGrad>(c, shared);
}

template <class T>
__device__ void add_channel_chunks(const ChannelArguments& c) {
  __shared__ double shared[2 * kThreads];
  add_chunks(c.partial, c.chunks, c.channels, shared,
             [&](int64_t i, double first, double second) { write_channel<T>(c, i, first, second); });
}

RINGWISE_BLOCK_KERNEL(channel_moments_float, ChannelArguments) { sum_channels<float, false>(arguments); }
RINGWISE_BLOCK_KERNEL(channel_moments_double, ChannelArguments) { sum_channels<double, false>(arguments); }
RINGWISE_BLOCK_KERNEL(channel_grad_sums_float, ChannelArguments) { sum_channels<float, true>(arguments); }
RINGWISE_BLOCK_KERNEL(channel_grad_sums_double, ChannelArguments) { sum_channels<double, true>(arguments); }
RINGWISE_BLOCK_KERNEL(channel_chunks_float, ChannelArguments) { add_channel_chunks<float>(arguments); }
RINGWISE_BLOCK_KERNEL(channel_chunks_double, ChannelArguments) { add_channel_chunks<double>(arguments); }

}  // namespace ringwise::tensor::cuda
