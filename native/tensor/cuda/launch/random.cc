// Random numbers and dropout: the host's side of kernels/random.cu.
#include "tensor/cuda/launch/kernels.h"
#include "tensor/cuda/launch/launch.h"

namespace ringwise::tensor::cuda {

namespace {

RandomArguments arguments_of(void* out, size_t count, const tensor::Stream& stream) {
  RandomArguments x{};
  x.out = out;
  x.count = static_cast<int64_t>(count);
  x.stream = {stream.seed, stream.offset, stream.live};
  return x;
}

}  // namespace

void random(const Random& given) {
  RandomArguments x = arguments_of(given.out, given.count, given.stream);
  x.low = given.low;
  x.high = given.high;
  x.use_packs = takes_packs(DType::Float32, {given.out});
  // Blocks of four random words, each of which one thread computes.
  const size_t blocks = given.kind == RandomKind::Bits ? (given.count + 1) / 2 : (given.count + 3) / 4;
  switch (given.kind) {
    case RandomKind::Uniform: return launch_over(blocks, KernelId::random_uniform, x);
    case RandomKind::Normal: return launch_over(blocks, KernelId::random_normal, x);
    case RandomKind::Integers: return launch_over(blocks, KernelId::random_integers, x);
    case RandomKind::Bits: return launch_over(blocks, KernelId::random_bits, x);
    case RandomKind::Count: return;
  }
}

void dropout(const Dropout& given) {
  RandomArguments x = arguments_of(given.out, given.count, given.stream);
  x.a = given.a;
  x.scale = 1 / (1 - given.p);
  x.limit = static_cast<uint32_t>(given.p * 4294967296.0);
  x.use_packs = takes_packs(given.dtype, {given.out, given.a});
  launch_over((given.count + 3) / 4, by_stored(given.dtype, RINGWISE_STORED(dropout)), x);
}

}  // namespace ringwise::tensor::cuda
