// What the kernels are designed for, by names: the bytes whose loads begin before the first of them is used, as their
// sources say, and what an H100 is expected to reach. A device has not confirmed any of it.

// Families of kernels: pattern, bytes in flight per thread, and the expected share of the roofline. The first pattern
// that matches a name counts. Where a kernel has several operands or dtypes, the bytes are those of its usual call.
const families = [
  [/^map_packs/, 16, '85–90 % of memory; two or three operands have twice and three times as much in flight'],
  [/^map_dense_float/, 16, '80 % of memory; mixed dtypes'],
  [/^map_dense/, 32, '80 % of memory'],
  [/^map_strided/, 8, '30–50 % of memory: single elements, at any strides'],
  [/^reduce_|^arg_most/, 64, '80 % of memory for packs; half of it for single elements of 2 bytes'],
  [/^channel_chunks|^norm_grad_chunks/, 8, 'a second launch of a few µs'],
  [/^channel_/, 64, '80 % of memory; rows of odd length 60 %'],
  [/^(log_softmax|cross_entropy)_grad/, 16, '70–80 % of memory: an exponential for each element'],
  [/^(log_softmax|cross_entropy)/, 16, '80–90 % of memory in float32, 60–80 % in 16 bits'],
  [/^nll_grad/, 0, '80 % of memory: writes only'],
  [/^nll/, 4, 'bound by latency: one load for each row'],
  [/^lookup/, 4, '50 % of memory for rows of 256 elements and more: one load after that of its index'],
  [/^scatter_runs/, 32, 'half of memory; the rows are in any order'],
  [/^scatter_(few|join)/, 4, 'bound by latency: at most 8 indices, or the ends of pieces'],
  [/^triangle/, 4, '50 % of memory: single elements, two 64-bit divisions for each'],
  [/^sort_tiles_narrow/, 16, 'bound by instructions: about 200 for each element'],
  [/^sort_tiles_wide/, 32, 'bound by instructions: about 300 for each element'],
  [/^sort_merge_narrow/, 64, 'a third of memory: 20 dependent reads begin each block'],
  [/^sort_merge_wide/, 128, 'a third of memory: 20 dependent reads begin each block'],
  [/^cumsum_float/, 32, '70–80 % of memory; in 16 bits half of that'],
  [/^cumsum/, 64, '70–80 % of memory'],
  [/^matmul_(half|bfloat)/, 64, '250–350 TFLOP/s of the tensor cores'],
  [/^matmul_small/, 32, 'half of matmul_half: bound by shared memory'],
  [/^matmul_double/, 64, 'bound by float64 multiply-adds: 10–15 TFLOP/s'],
  [/^matmul/, 32, 'bound by float32 multiply-adds: 10–15 TFLOP/s'],
  [/^optimize_float/, 64, '85 % of memory: AdamW reads four arrays and writes three'],
  [/^optimize_double/, 128, '85 % of memory'],
  [/^(squares|scale)_float/, 16, '80 % of memory'],
  [/^(squares|scale)_double/, 32, '80 % of memory'],
  [/^root_of_sum/, 8, 'one block, 1–2 µs'],
  [/^conv2d/, 8, 'below 1 TFLOP/s: one window after another; cuDNN computes convolutions where it is found'],
  [/^(max|avg)_pool/, 4, '30–50 % of memory: overlapping windows hit the cache'],
  [/^norm_long/, 16, '70 % of memory for the first pass; later passes read L2'],
  [/^norm_grad_long/, 32, '70 % of memory for the first pass; later passes read L2'],
  [/^norm_grad_columns/, 64, '80 % of memory'],
  [/^norm_grad_warp_(half|bfloat)/, 96, '80 % of memory (rows of 768)'],
  [/^norm_grad_warp_float/, 192, '80 % of memory (rows of 768)'],
  [/^norm_grad_warp_double/, 384, '80 % of memory (rows of 768)'],
  [/^norm_grad_block_(half|bfloat)/, 128, '80 % of memory (rows of 8192)'],
  [/^norm_grad_block_float/, 256, '80 % of memory (rows of 8192)'],
  [/^norm_grad_block_double/, 512, '80 % of memory (rows of 8192)'],
  [/^norm_warp_(half|bfloat)/, 48, '80 % of memory (rows of 768)'],
  [/^norm_warp_float/, 96, '80 % of memory (rows of 768)'],
  [/^norm_warp_double/, 192, '80 % of memory (rows of 768)'],
  [/^norm_block_(half|bfloat)/, 64, '80 % of memory (rows of 8192)'],
  [/^norm_block_float/, 128, '80 % of memory (rows of 8192)'],
  [/^norm_block_double/, 256, '80 % of memory (rows of 8192)'],
  [/^group_norm_grad_float/, 32, '60–70 % of memory for the first pass; later passes read L2'],
  [/^group_norm_grad_double/, 64, '60–70 % of memory for the first pass; later passes read L2'],
  [/^group_norm_float/, 16, '60–70 % of memory for the first pass; later passes read L2'],
  [/^group_norm_double/, 32, '60–70 % of memory for the first pass; later passes read L2'],
  [/^lstm_grad_(half|bfloat)/, 18, '60 % of memory: single elements of nine arrays'],
  [/^lstm_grad_float/, 36, '80 % of memory'],
  [/^lstm_grad_double/, 72, '80 % of memory'],
  [/^lstm_(half|bfloat)/, 12, '50 % of memory: five exponentials for each element of the state'],
  [/^lstm_float/, 24, '60–70 % of memory: five exponentials for each element of the state'],
  [/^lstm_double/, 48, 'bound by float64 exponentials'],
  [/^random_(uniform|integers|bits)/, 0, '80 % of memory: writes only, ten rounds of Philox for four words'],
  [/^random_normal/, 0, 'bound by float64 logarithms and cosines: 10–20 % of memory'],
  [/^dropout_(half|bfloat)/, 8, '60–80 % of memory: Philox for four elements'],
  [/^dropout/, 16, '80 % of memory'],
  [/^attention/, 0, 'bound by arithmetic; see the decision about tensor cores'],
];

/** Returns the design of a kernel: bytes in flight per thread, and what is expected of it. Throws if none is stated. */
export function designOf(kernel) {
  const found = families.find(([pattern]) => pattern.test(kernel));
  if (!found) throw new Error(`cuda-usage: designs.mjs says nothing about the kernel ${kernel}.`);
  const [, threadBytes, expected] = found;
  return { threadBytes, expected };
}
