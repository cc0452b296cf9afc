// The arguments of kernels whose launch needs more than their declared struct: one plain struct per launch, with the
// same layout for the host that fills it and the device that reads it (fixed widths, no pointers to host memory, at
// most the 4 KiB that every device accepts). Strides are bytes unless they say otherwise; dtypes are the numbers of
// base/dtype.h.
#pragma once

#include <cstdint>

namespace ringwise::tensor::cuda {

constexpr int kThreads = 256;  // most threads of a block; kernels whose launch does not say otherwise have as many
constexpr int kDims = 16;      // equals kMaxRank

/// The operation of copies: a number beyond those of MapOp.
constexpr int kIdentity = 1000;

/// An operand with dense elements, or one element that stands for all.
struct DenseOperand {
  void* data;  // null: `number`
  double number;
  int32_t dtype;
  int32_t step;  // 1, or 0 for one element
};
struct MapDenseArguments {
  DenseOperand operand[4];
  int64_t count;
  int32_t op, operands;
  int32_t use_packs;  // whether the dense operands begin where four elements can be moved at once
};

/// Divides indices below 2^31 by one multiplication: n / value = ((n * magic >> 32) + n) >> shift.
/// Granlund and Montgomery, "Division by Invariant Integers using Multiplication", 1994.
struct Divisor {
  uint32_t value, magic, shift;
};

/// An operand whose elements have the dtype of the result: dense along the last dimension, the same along it, or a
/// number.
struct PackOperand {
  void* data;  // null: `number`
  double number;
  int64_t strides[kDims];  // bytes; along the last dimension from pack to pack
  int32_t is_dense, unused;
};
struct MapPacksArguments {
  PackOperand operand[4];
  Divisor shape[kDims];  // of packs along the last dimension, of elements along the others
  int64_t count;         // packs
  int32_t op, operands, rank, unused;
};

struct StridedOperand {
  void* data;  // null: `number`
  double number;
  int32_t dtype, bytes;  // `bytes` of an element
  int64_t strides[kDims];
};
struct MapStridedArguments {
  StridedOperand operand[4];
  int64_t shape[kDims];
  Divisor divisors[kDims];  // of the shape, if has_divisors
  int64_t count;
  int32_t op, operands, rank, has_divisors;
};

/// The number of loads that a thread of a reduction has in flight: of packs, and of single elements. `bytes`: size of
/// the type in which it computes.
constexpr int kPacksInFlight = 4;
constexpr int elements_in_flight(int bytes) { return 32 / bytes; }
/// Returns the number of elements that a thread of a reduction loads at once: 16 bytes. In columns each of them has a
/// total of its own; the totals of a thread take 64 bytes at most.
constexpr int reduced_pack(int element_bytes, int total_bytes, bool is_column) {
  const int pack = 16 / element_bytes, totals = 64 / total_bytes;
  return is_column && totals < pack ? totals : pack;
}
/// A dimension over which elements are reduced; `in` is the input's stride. For an index n below 2^63, n / size is
/// ((n · factor / 2^64) + n) >> shift.
struct ReducedDimension {
  uint64_t size, factor;
  int64_t in, shift;
};
/// A reduction counts in units: a unit is a pack, or one element. In rows (is_column = 0) a pack has neighbouring
/// elements that are reduced to one output. In columns it has one element of each of several neighbouring outputs.
struct ReduceArguments {
  const void* in;
  void* out;
  int32_t in_dtype, out_dtype;
  int32_t kept_rank, reduced_rank;
  int64_t kept_shape[kDims], kept_in[kDims], kept_out[kDims];  // in columns the last dimension counts packs
  ReducedDimension reduced[kDims];                             // in rows the last dimension counts packs
  int64_t kept_count, reduced_count;                           // units
  int64_t chunk;                                               // units that one block reduces; blockIdx.y says which
  int64_t chunk_stride;                                        // bytes from the result of a chunk to the next one's
  int64_t divisor;                                             // of means
  int64_t pack_out;                                            // bytes from one output of a pack of outputs to the next
  int32_t tail;   // elements after the last whole pack of a row; 0 unless reduced_rank is 1
  int32_t lanes;  // packs of outputs, or outputs, that a block works on; a power of two up to kThreads
  int32_t pack;   // outputs that a thread works on: 1 in rows, and without packs
  int32_t is_column, use_packs, has_divisor;
  int32_t is_min, unused;  // is_min: extremes are minima
};

struct SoftmaxArguments {
  void* out;
  const void *a, *b;  // b: the forward's output, for the gradient alone
  int64_t rows, cols;
};

struct NllArguments {
  void* out;
  const void* in;
  const void* labels;
  int32_t* fault;
  int64_t rows, cols;
  int32_t is_long, unused;  // is_long: labels are int64
};

struct CrossEntropyArguments {
  void* out;  // losses, or the gradient of the scores
  void* counts;
  void* kept;
  const void *scores, *labels, *weight;
  const void *grad, *divisor;
  int32_t* fault;
  int64_t rows, cols, ignored;
  double smoothing, number;     // number: the divisor, where `divisor` is null
  int32_t is_long, is_per_row;  // labels are int64; there is a gradient for each row
};

struct LookupArguments {
  void* out;
  const void* a;
  const int64_t* index;
  int32_t* fault;
  int64_t outer, count, size, inner;
  int32_t dtype, per_element;
  int32_t op, unused;  // a ScatterOp; lookups do not read it
};
/// Writes by index over sorted entries (kernels/sort.cu), which a thread reads `piece` at a time. There is one list of
/// `count` entries, or one for each column if there is an index for each element.
struct ScatterArguments {
  LookupArguments lookup;
  const void* entries;
  void* partial;  // [pieces, 2, outer · inner], 8 bytes each; unused with one piece
  int64_t piece, pieces;
  int32_t is_narrow, unused;
};

/// Running sums of the columns of [outer, size, inner]. A block has 2^lane_bits columns and a chunk of `size`.
constexpr int kScanTile = 2048;  // elements that a block handles at a time
struct ScanArguments {
  void* out;  // null: the kernel writes only `totals`
  const void* a;
  void* totals;  // of each chunk, [outer, chunks, inner]; with `out`, the input: of each chunk and all before it
  int64_t columns, size, inner;
  int64_t chunk;  // positions of a chunk; blockIdx.y says which
  int64_t chunks;
  int32_t dtype, lane_bits, reverse, unused;
};

/// One launch that sorts tiles of the rows of [rows, cols], or merges sorted runs of them. A row is `runs` runs of
/// `length` elements, of each of which the first `stride` entries are kept; `to_…` describes the result.
constexpr int kSortTile = 2048;  // entries that a block handles at a time
struct SortArguments {
  const void* a;     // [rows / inner, cols, inner]
  const void* from;  // entries, of a merge
  void* to;          // entries; unused where there are values
  void* values;      // the result, in the last launch of a sort; else null
  int64_t* indices;  // with `values`
  int32_t* fault;
  int64_t rows, cols, inner;
  int64_t limit;  // above 0: `a` holds indices, which have to be below it
  int64_t length, runs, stride, to_runs, to_stride;
  int64_t tiles;  // that the grid shares
  int32_t dtype, descending, slot_bits, unused;
};

/// Rows and columns of a tile of a product. Large products of 16-bit types have wide tiles.
constexpr int kMatmulTile = 64, kMatmulWideTile = 128;
struct MatmulArguments {
  void* c;
  const void *a, *b;
  int64_t m, n, k;
  int64_t a_step, b_step;  // elements
  // The batch. Strides between its matrices are elements.
  int64_t shape[kDims], c_stride[kDims], a_stride[kDims], b_stride[kDims];
  int32_t rank, trans_a, trans_b, accumulate;
  // 16-bit types: whether all rows of a factor begin at multiples of 16 bytes, those of the result at multiples of 4.
  int32_t a_packs, b_packs, c_pairs;
  uint32_t tiles_down, tiles_across, unused;  // of the result; the grid has a block for each tile of each matrix
};

/// A tensor::Stream. With `live`, the seed is live[0], and `offset` counts from block live[1].
struct StreamArguments {
  uint64_t seed, offset;
  const double* live;
};

/// A tensor::Window.
struct WindowArguments {
  int64_t height, width, out_height, out_width, kernel_height, kernel_width;
  int64_t stride_y, stride_x, dilation_y, dilation_x, pad_top, pad_left;
};
struct ConvArguments {
  void* out;
  const void *a, *b;
  int64_t batch, groups, in_channels, out_channels;
  WindowArguments window;
  int32_t accumulate, unused;
};
struct PoolArguments {
  void* out;
  int64_t* positions;  // for maxima
  const void* a;
  const int64_t* bins;  // for means, which use only the sizes of planes and output in `window`
  int64_t planes;
  WindowArguments window;
};
/// Sums by channel, counted in units as in ReduceArguments: packs of 16 bytes, or elements.
struct ChannelArguments {
  void* out;
  const void *a, *b, *mean;  // b: the gradient; null for moments
  double* partial;           // [chunks, 2, channels]; null if there is one chunk
  int64_t channels, inner;
  int64_t count;         // elements of a channel
  int64_t units, chunk;  // of a channel, and of a chunk
  int64_t chunks;
  ReducedDimension reduced[2];
  int32_t reduced_rank, lanes;
  int32_t is_column, use_packs;
};

struct RandomArguments {
  void* out;
  const void* a;  // for dropout
  int64_t count;
  StreamArguments stream;
  double low, high;  // for uniform numbers and integers
  double scale;      // dropout: the factor of elements that are kept
  uint32_t limit;    // dropout: words below are dropped
  int32_t use_packs;
};

/// Rows of `cols` dense elements, as in tensor::Norm and tensor::NormGrad; optional operands may be null.
struct RowNormArguments {
  void *out, *mean, *rstd, *sum;
  const void *a, *addend, *gamma, *beta;
  int64_t rows, cols;
  double eps;
  int32_t use_packs, unused;  // use_packs: four elements can be moved at once, in every row
};
struct RowNormGradArguments {
  void *grad_in, *grad_gamma, *grad_beta;
  const void *grad_out, *a, *mean, *rstd, *gamma;
  void* partial;  // [chunks, 2, cols], where rows are cut into chunks
  int64_t rows, cols;
  int64_t chunk;  // rows of a chunk
  int32_t chunks, accumulate, use_packs;
  int32_t use_column_packs;  // sums over rows: whether 16 bytes of a row can be loaded at once
  int32_t lanes, unused;     // packs of columns that a block works on; a power of two up to kThreads
};

/// As tensor::GroupNorm and tensor::GroupNormGrad; `share` is 1 / (channels · inner).
struct GroupNormArguments {
  void *out, *mean, *rstd;
  const void *a, *gamma, *beta;
  int64_t batch, groups, channels, inner;
  double share, eps;
};
struct GroupNormGradArguments {
  const void *grad_out, *a, *mean, *rstd, *gamma;
  void *grad_in, *sums;
  int64_t batch, groups, channels, inner;
  double share;
  int64_t accumulate;
};

/// As tensor::Lstm and tensor::LstmGrad.
struct LstmArguments {
  void *gates, *hidden, *cell, *out, *hidden_before, *cell_before, *cell_tanh;
  int64_t rows, width;
};
struct LstmGradArguments {
  void *grad_gates, *grad_cell;
  const void *gates, *cell_before, *cell_tanh, *grad_hidden, *grad_out;
  int64_t rows, width;
};

/// A tensor::HeadRows and a tensor::AttentionMask, with strides in elements.
struct HeadArguments {
  void* data;
  int64_t batch, head, row;
};
struct MaskArguments {
  const void* data;
  int64_t batch, head, row, col;
};
/// Threads of a block of 16-bit attention, and the rows that it has of its own.
constexpr int kAttentionThreads = 128, kAttentionRows = 64;
constexpr int kDotThreads = 8;  // threads of attention_dots that share a query
struct AttentionArguments {
  HeadArguments q, k, v, out, grad_out, grad_q, grad_k, grad_v;
  MaskArguments mask;
  void* lse;   // [batch, heads, queries]
  void* dots;  // [batch, heads, queries]: Σ grad_out · out, for the gradient alone
  int64_t heads, queries, keys, width, value_width;
  int64_t tiles;  // of queries, or of keys, in one head; in attention_dots the heads of all batches
  StreamArguments stream;
  double scale;
  double keep;     // 1 / (1 - dropout)
  uint32_t limit;  // words below are dropped; 0: no dropout
  int32_t causal, is_bool_mask;
  int32_t use_packs;   // whether four elements of a row can be moved at once; of 16-bit types, eight
  int32_t mask_pairs;  // whether all elements of the mask can be loaded in pairs of neighbouring keys
  int32_t unused;
};

/// Many tensors in one launch: each has a range of blocks, and each block kOptimizerChunk elements of its tensor.
constexpr int kOptimizerRows = 36;
constexpr int64_t kOptimizerChunk = 4096;
constexpr int kOptimizerNumbers = 5, kOptimizerRowNumbers = 3;
struct OptimizerRow {
  void* param;
  const void* grad;
  void* state[3];
  int64_t count;
  int64_t first_block;
  // Numbers of this step: lr / (1 - beta1^t), sqrt(1 - beta2^t), and whether t is 1 (optimizer_numbers()).
  double numbers[kOptimizerRowNumbers];
  int32_t use_packs, numbers_at;  // numbers_at: index of the row's numbers in the step's memory
};
struct OptimizerArguments {
  OptimizerRow rows[kOptimizerRows];
  double numbers[kOptimizerNumbers];  // learning rate, weight decay, momentum, smoothing, epsilon
  const double* live;   // unless null: device memory with these instead, and at numbers_at those of each row
  double number;        // scale: the factor
  const float* factor;  // scale: unless null, device memory with the factor instead
  float* not_finite;    // scale: becomes 1 if an element is not finite; may be null
  double* partial;      // norms: one sum for each block
  int32_t row_count, kind, variant, maximize;
};
/// The last launch of a norm over many tensors: the root of the sum of `count` partial sums.
struct NormArguments {
  const double* partial;
  float* norm;
  int64_t count;
};

/// The values that a kernel writes to `fault` if an index or a label is out of range.
constexpr int32_t kLookupFault = 1, kLabelFault = 2;

}  // namespace ringwise::tensor::cuda
