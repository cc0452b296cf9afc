#include "tensor/cuda/device/driver.h"
#include "tensor/cuda/images/images.h"

namespace ringwise::tensor::cuda {

namespace {

/// Returns null, unless the driver is the software device of the tests, which has the kernels itself. Its symbol holds
/// the version of CUDA for which it stands (native/test/software_gpu/driver.cc).
const int* kernels_of_driver() {
  static const auto* version = static_cast<const int*>(driver().library.symbol("ringwise_software_kernels"));
  return version;
}

}  // namespace

const void* image_of(Image) { return kernels_of_driver(); }
int version_of_images() { return kernels_of_driver() ? *kernels_of_driver() : 0; }

}  // namespace ringwise::tensor::cuda
