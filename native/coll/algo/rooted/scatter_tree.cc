// Binomial tree from the root (see binomial_blocks.h), for many small parts: a rank receives its whole block, keeps its
// own part and sends each child its block. ⌈log2 n⌉ steps, S·(n−1)/n bytes at the root for an input of S, up to S/2
// elsewhere.
#include "coll/algo/algorithms.h"
#include "coll/algo/rooted/binomial_blocks.h"

namespace ringwise::coll {

void tree_scatter(const Op& op, int rank, int size, Schedule& schedule) {
  const Parts parts = Parts::per_rank(Region::Input, op.dtype, size, op.count, op.counts);
  const Piece output{Region::Output, 0, parts.of(rank).count};
  const BinomialBlocks tree(rank, op.root, size);
  const size_t element = byte_size(op.dtype);

  handshake_all(rank, size, schedule);
  if (!tree.is_root() && tree.is_leaf()) return schedule.exchange(-1, {}, tree.parent(), output, Take::Store);
  const size_t staged = tree.is_root() ? 0 : schedule.scratch(tree.block_elements(parts) * element);
  if (!tree.is_root()) {
    tree.each_message(0, parts, staged, element,
                      [&](Piece piece) { schedule.exchange(-1, {}, tree.parent(), piece, Take::Store); });
  }
  for (int bit = tree.bit() >> 1; bit > 0; bit >>= 1) {
    if (!tree.has_child(bit)) continue;
    tree.each_message(bit, parts, staged, element,
                      [&](Piece piece) { schedule.exchange(tree.child(bit), piece, -1, {}, Take::Store); });
  }
  schedule.work(Local::Copy, output, tree.is_root() ? parts.of(rank) : Piece{Region::Scratch, staged, output.count});
}

}  // namespace ringwise::coll
