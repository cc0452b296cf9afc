#include "coll/reduce/reduce.h"

#include <algorithm>
#include <cstring>

namespace ringwise::coll {

extern const ReduceKernels kBaselineReduce;
#if defined(__x86_64__) && !defined(RINGWISE_BASELINE_ONLY)
extern const ReduceKernels kAvx2Reduce, kAvx512Reduce;
#endif

namespace {

// Elements that are processed at a time, so that the blocks of all arrays fit the L1 cache.
constexpr size_t kBlock = 1024;

const ReduceKernels& best() {
  static const ReduceKernels& kernels = reduce_kernels();
  return kernels;
}

}  // namespace

const ReduceKernels& reduce_kernels(CpuLevel cap) {
  switch (std::min(cap, best_cpu_level())) {
#if defined(__x86_64__) && !defined(RINGWISE_BASELINE_ONLY)
    case CpuLevel::Avx512: return kAvx512Reduce;
    case CpuLevel::Avx2: return kAvx2Reduce;
#endif
    default: return kBaselineReduce;
  }
}

void widen(DType dtype, std::byte* accumulator, const std::byte* input, size_t count) {
  best().widen(dtype, accumulator, input, count);
}

void accumulate(DType dtype, ReduceOp op, std::byte* accumulator, const std::byte* input, size_t count) {
  best().accumulate(dtype, op, accumulator, input, count);
}

void narrow(DType dtype, ReduceOp op, int size, std::byte* output, const std::byte* accumulator, size_t count) {
  best().narrow(dtype, op, size, output, accumulator, count);
}

void scale(DType dtype, double factor, std::byte* output, const std::byte* input, size_t count) {
  best().scale(dtype, factor, output, input, count);
}

void combine(DType dtype, ReduceOp op, const std::byte* const* sources, int size, std::byte* const* outputs,
             int output_count, size_t count) {
  const ReduceKernels& kernels = best();
  const size_t element = byte_size(dtype);
  if (size == 2 && !is_narrow(dtype)) {
    if (output_count == 1 && op != ReduceOp::Avg)
      return kernels.join(dtype, op, outputs[0], sources[0], sources[1], count);
    // Writing to cache lines that have been read is cheap. For other outputs, memcpy is faster: it writes without
    // reading.
    if (output_count == 2 && (outputs[1] == sources[0] || outputs[1] == sources[1])) {
      return kernels.join_twice(dtype, op, outputs[0], outputs[1], sources[0], sources[1], count);
    }
  }
  alignas(64) std::byte memory[kBlock * sizeof(uint64_t)];
  for (size_t done = 0; done < count; done += kBlock) {
    const size_t block = std::min(kBlock, count - done);
    const size_t offset = done * element;
    std::byte* first = outputs[0] + offset;
    // One or two sources are combined directly in the output. With more, the output may be a source that is read later.
    std::byte* accumulator = size <= 2 && !is_narrow(dtype) ? first : memory;
    if (size == 1) {
      if (accumulator != sources[0] + offset) kernels.widen(dtype, accumulator, sources[0] + offset, block);
    } else {
      kernels.join(dtype, op, accumulator, sources[0] + offset, sources[1] + offset, block);
    }
    for (int i = 2; i < size; ++i) kernels.accumulate(dtype, op, accumulator, sources[i] + offset, block);
    kernels.narrow(dtype, op, size, first, accumulator, block);
    for (int i = 1; i < output_count; ++i) std::memcpy(outputs[i] + offset, first, block * element);
  }
}

}  // namespace ringwise::coll
