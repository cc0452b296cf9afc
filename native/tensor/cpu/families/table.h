// The table of the kernels of one instruction set. The source files of the other families define these kernels.
#include "tensor/cpu/levels.h"

namespace ringwise::tensor::RINGWISE_LEVEL {

#define RINGWISE_DECLARE(kernel, Type) void kernel(const Type&);
RINGWISE_EACH_KERNEL(RINGWISE_DECLARE)
#undef RINGWISE_DECLARE

constexpr Kernels make_kernels(CpuLevel level, const char* name) {
  Kernels k{};
  k.level = level;
  k.name = name;
#define RINGWISE_SET(kernel, Type) k.kernel = &kernel;
  RINGWISE_EACH_KERNEL(RINGWISE_SET)
#undef RINGWISE_SET
  return k;
}

}  // namespace ringwise::tensor::RINGWISE_LEVEL

namespace ringwise::tensor {
const Kernels RINGWISE_TABLE = RINGWISE_LEVEL::make_kernels(CpuLevel::RINGWISE_LEVEL_NAME, RINGWISE_LEVEL_TEXT);
}
