// Binomial tree towards the root (see binomial_blocks.h), for many small parts: a rank collects its block and sends it
// on as a whole. ⌈log2 n⌉ steps, S·(n−1)/n bytes at the root for a result of S, up to S/2 elsewhere.
#include "coll/algo/algorithms.h"
#include "coll/algo/rooted/binomial_blocks.h"

namespace ringwise::coll {

void tree_gather(const Op& op, int rank, int size, Schedule& schedule) {
  const Parts parts = Parts::per_rank(Region::Output, op.dtype, size, op.count, op.counts);
  const Piece input{Region::Input, 0, parts.of(rank).count};
  const BinomialBlocks tree(rank, op.root, size);
  const size_t element = byte_size(op.dtype);

  handshake_all(rank, size, schedule);
  if (!tree.is_root() && tree.is_leaf()) return schedule.exchange(tree.parent(), input, -1, {}, Take::Store);
  const size_t staged = tree.is_root() ? 0 : schedule.scratch(tree.block_elements(parts) * element);
  schedule.work(Local::Copy, tree.is_root() ? parts.of(rank) : Piece{Region::Scratch, staged, input.count}, input);
  for (int bit = 1; bit < tree.bit() && tree.has_child(bit); bit <<= 1) {
    tree.each_message(bit, parts, staged, element,
                      [&](Piece piece) { schedule.exchange(-1, {}, tree.child(bit), piece, Take::Store); });
  }
  if (tree.is_root()) return;
  tree.each_message(0, parts, staged, element,
                    [&](Piece piece) { schedule.exchange(tree.parent(), piece, -1, {}, Take::Store); });
}

}  // namespace ringwise::coll
