// The compiled kernels: one image for each .cu file below kernels/, which holds code for several architectures and is
// made when the addon is built. images.cc embeds them; a build without CUDA kernels has no_images.cc instead.
#pragma once

namespace ringwise::tensor::cuda {

enum class Image : int {
  Map,
  Reduce,
  Softmax,
  Order,
  Matmul,
  Optimizer,
  Layers,
  Channels,
  Norm,
  GroupNorm,
  Recurrent,
  Random,
  Attention,
  AttentionHalves,
  Scan,
  Sort,
  Count
};

/// Returns an image; null when this build has no kernels. With the software device of the tests, which has the kernels
/// itself, it is some pointer that the device ignores.
const void* image_of(Image image);

/// Returns the version of CUDA that compiled the images, like Driver::version; 0 without images. Older drivers cannot
/// load them.
int version_of_images();

/// Tells whether kernels can run: this build has images, or the driver is the software device of the tests.
inline bool has_kernels() { return image_of(Image::Map) != nullptr; }

// Lists the kernels of a name, one for each stored type.
// clang-format off
#define RINGWISE_CUDA_BY_STORED(X, name, image) \
  X(name##_float, image) X(name##_double, image) X(name##_half, image) X(name##_bfloat, image)
// Lists the kernels of a name for the 16-bit types, one for each class of widths.
#define RINGWISE_CUDA_BY_WIDTH(X, name, image) \
  X(name##_narrow_half, image) X(name##_middle_half, image) X(name##_wide_half, image) \
  X(name##_narrow_bfloat, image) X(name##_middle_bfloat, image) X(name##_wide_bfloat, image)
// clang-format on

// Lists every kernel: its symbol, and the image that has it.
// clang-format off
#define RINGWISE_CUDA_KERNELS(X)                                                                                    \
  X(map_packs_float, Map) X(map_packs_half, Map) X(map_packs_bfloat, Map)                                           \
  X(map_dense_float, Map) X(map_dense_double, Map) X(map_dense_long, Map)                                           \
  X(map_strided_float, Map) X(map_strided_double, Map) X(map_strided_long, Map)                                     \
  X(reduce_sum_float, Reduce) X(reduce_sum_double, Reduce) X(reduce_sum_long, Reduce)                               \
  X(reduce_prod_float, Reduce) X(reduce_prod_double, Reduce) X(reduce_prod_long, Reduce)                            \
  X(reduce_most_float, Reduce) X(reduce_most_double, Reduce) X(reduce_most_long, Reduce)                            \
  X(arg_most_float, Reduce) X(arg_most_double, Reduce) X(arg_most_long, Reduce)                                     \
  RINGWISE_CUDA_BY_STORED(X, log_softmax, Softmax) RINGWISE_CUDA_BY_STORED(X, log_softmax_grad, Softmax)            \
  RINGWISE_CUDA_BY_STORED(X, nll, Softmax) RINGWISE_CUDA_BY_STORED(X, nll_grad, Softmax)                            \
  RINGWISE_CUDA_BY_STORED(X, cross_entropy, Softmax) RINGWISE_CUDA_BY_STORED(X, cross_entropy_grad, Softmax)        \
  X(lookup, Order) X(scatter_few, Order) X(scatter_runs, Order) X(scatter_join, Order) X(triangle, Order)            \
  X(sort_tiles_narrow, Sort) X(sort_tiles_wide, Sort) X(sort_merge_narrow, Sort) X(sort_merge_wide, Sort)           \
  X(cumsum_float, Scan) X(cumsum_double, Scan) X(cumsum_long, Scan)                                                 \
  RINGWISE_CUDA_BY_STORED(X, matmul, Matmul) X(matmul_small_half, Matmul) X(matmul_small_bfloat, Matmul)            \
  X(optimize_float, Optimizer) X(optimize_double, Optimizer)                                                        \
  X(squares_float, Optimizer) X(squares_double, Optimizer) X(root_of_sum, Optimizer)                                \
  X(scale_float, Optimizer) X(scale_double, Optimizer)                                                              \
  RINGWISE_CUDA_BY_STORED(X, conv2d, Layers) RINGWISE_CUDA_BY_STORED(X, conv2d_grad_input, Layers)                  \
  RINGWISE_CUDA_BY_STORED(X, conv2d_grad_weight, Layers)                                                            \
  RINGWISE_CUDA_BY_STORED(X, max_pool, Layers) RINGWISE_CUDA_BY_STORED(X, avg_pool, Layers)                         \
  RINGWISE_CUDA_BY_STORED(X, avg_pool_grad, Layers)                                                                 \
  X(channel_moments_float, Channels) X(channel_moments_double, Channels)                                            \
  X(channel_grad_sums_float, Channels) X(channel_grad_sums_double, Channels)                                        \
  X(channel_chunks_float, Channels) X(channel_chunks_double, Channels)                                              \
  RINGWISE_CUDA_BY_STORED(X, norm_warp, Norm) RINGWISE_CUDA_BY_STORED(X, norm_block, Norm)                          \
  RINGWISE_CUDA_BY_STORED(X, norm_long, Norm) RINGWISE_CUDA_BY_STORED(X, norm_grad_warp, Norm)                      \
  RINGWISE_CUDA_BY_STORED(X, norm_grad_block, Norm) RINGWISE_CUDA_BY_STORED(X, norm_grad_long, Norm)                \
  RINGWISE_CUDA_BY_STORED(X, norm_grad_columns, Norm) RINGWISE_CUDA_BY_STORED(X, norm_grad_chunks, Norm)            \
  X(group_norm_float, GroupNorm) X(group_norm_double, GroupNorm)                                                    \
  X(group_norm_grad_float, GroupNorm) X(group_norm_grad_double, GroupNorm)                                          \
  RINGWISE_CUDA_BY_STORED(X, lstm, Recurrent) RINGWISE_CUDA_BY_STORED(X, lstm_grad, Recurrent)                      \
  X(random_uniform, Random) X(random_normal, Random) X(random_integers, Random) X(random_bits, Random)              \
  RINGWISE_CUDA_BY_STORED(X, dropout, Random)                                                                       \
  X(attention_float, Attention) X(attention_double, Attention)                                                      \
  X(attention_grad_queries_float, Attention) X(attention_grad_queries_double, Attention)                            \
  X(attention_grad_keys_float, Attention) X(attention_grad_keys_double, Attention)                                  \
  RINGWISE_CUDA_BY_STORED(X, attention_dots, Attention)                                                             \
  RINGWISE_CUDA_BY_WIDTH(X, attention, AttentionHalves)                                                             \
  RINGWISE_CUDA_BY_WIDTH(X, attention_grad_queries, AttentionHalves)                                                \
  RINGWISE_CUDA_BY_WIDTH(X, attention_grad_keys, AttentionHalves)
// clang-format on

enum class KernelId : int {
#define RINGWISE_NAME(name, image) name,
  RINGWISE_CUDA_KERNELS(RINGWISE_NAME)
#undef RINGWISE_NAME
      Count
};

}  // namespace ringwise::tensor::cuda
