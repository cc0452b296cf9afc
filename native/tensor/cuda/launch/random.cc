#include "tensor/cuda/launch/launch.h"
#include "tensor/cuda/launch/nn.h"

namespace ringwise::tensor::cuda {

namespace {

RandomArguments arguments_of(void* out, size_t count, const tensor::Stream& stream) {
  RandomArguments x{};
  x.out = out;
  x.count = static_cast<int64_t>(count);
  x.stream = {stream.seed, stream.offset, stream.live};
  return x;
}

void random(RandomKind kind, void* out, size_t count, const tensor::Stream& stream, double low, double high) {
  RandomArguments x = arguments_of(out, count, stream);
  x.low = low;
  x.high = high;
  x.is_vector = takes_packs(DType::Float32, {out});
  const size_t blocks = kind == RandomKind::Bits ? (count + 1) / 2 : (count + 3) / 4;
  switch (kind) {
    case RandomKind::Uniform: return launch_over(blocks, KernelId::random_uniform, x);
    case RandomKind::Normal: return launch_over(blocks, KernelId::random_normal, x);
    case RandomKind::Integers: return launch_over(blocks, KernelId::random_integers, x);
    case RandomKind::Bits: return launch_over(blocks, KernelId::random_bits, x);
  }
}

void dropout(DType dtype, void* out, const void* a, size_t count, double p, const tensor::Stream& stream) {
  RandomArguments x = arguments_of(out, count, stream);
  x.a = a;
  x.scale = 1 / (1 - p);
  x.limit = static_cast<uint32_t>(p * 4294967296.0);
  x.is_vector = takes_packs(dtype, {out, a});
  launch_over((count + 3) / 4, by_stored(dtype, RINGWISE_STORED(dropout)), x);
}

}  // namespace

void add_random(Kernels& table) {
  table.random = &random;
  table.dropout = &dropout;
}

}  // namespace ringwise::tensor::cuda
