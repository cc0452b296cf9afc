#include "tensor/cuda/images/images.h"

namespace ringwise::tensor::cuda {

const void* image_of(Image) { return nullptr; }
int version_of_images() { return 0; }

}  // namespace ringwise::tensor::cuda
