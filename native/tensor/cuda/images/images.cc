#include "tensor/cuda/images/images.h"

#define RINGWISE_EMBED(name)                                                                 \
  asm(".section .rodata\n.balign 64\n.globl ringwise_image_" #name "\nringwise_image_" #name \
      ":\n"                                                                                  \
      ".incbin \"" RINGWISE_IMAGE_FOLDER "/" #name ".fatbin\"\n.previous\n");                \
  extern "C" __attribute__((visibility("hidden"))) const char ringwise_image_##name[];

RINGWISE_EMBED(map)
RINGWISE_EMBED(reduce)
RINGWISE_EMBED(softmax)
RINGWISE_EMBED(order)
RINGWISE_EMBED(matmul)
RINGWISE_EMBED(optimizer)
RINGWISE_EMBED(layers)
RINGWISE_EMBED(channels)
RINGWISE_EMBED(norm)
RINGWISE_EMBED(group_norm)
RINGWISE_EMBED(recurrent)
RINGWISE_EMBED(random)
RINGWISE_EMBED(attention)
RINGWISE_EMBED(attention_halves)
RINGWISE_EMBED(scan)
RINGWISE_EMBED(sort)

namespace ringwise::tensor::cuda {

const void* image_of(Image image) {
  static constexpr const char* kImages[] = {
      ringwise_image_map,       ringwise_image_reduce,           ringwise_image_softmax,   ringwise_image_order,
      ringwise_image_matmul,    ringwise_image_optimizer,        ringwise_image_layers,    ringwise_image_channels,
      ringwise_image_norm,      ringwise_image_group_norm,       ringwise_image_recurrent, ringwise_image_random,
      ringwise_image_attention, ringwise_image_attention_halves, ringwise_image_scan,      ringwise_image_sort};
  static_assert(sizeof kImages / sizeof *kImages == static_cast<int>(Image::Count));
  return kImages[static_cast<int>(image)];
}

int version_of_images() { return RINGWISE_IMAGE_VERSION; }

}  // namespace ringwise::tensor::cuda
