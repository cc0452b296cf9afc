// The binomial tree of gather and scatter (Thakur, Rabenseifner, Gropp 2005). Ranks are counted from the root; all
// parts of the block of ranks v … v + 2^k − 1 pass through rank v, where 2^k is the lowest set bit of v. A block that
// wraps around from rank n−1 to rank 0 travels as two messages, because it is not contiguous in the root's buffer.
#pragma once

#include <algorithm>
#include <array>
#include <utility>

#include "coll/algo/parts.h"

namespace ringwise::coll {

class BinomialBlocks {
 public:
  BinomialBlocks(int rank, int root, int size) : root_(root), size_(size), v_((rank - root + size) % size) {
    while (bit_ < size && (v_ & bit_) == 0) bit_ <<= 1;
  }

  bool is_root() const { return v_ == 0; }
  bool is_leaf() const { return bit_ == 1 || v_ + 1 >= size_; }
  /// Returns the lowest set bit of v; for the root the first power of two ≥ n.
  int bit() const { return bit_; }
  int parent() const { return real(v_ - bit_); }
  bool has_child(int bit) const { return v_ + bit < size_; }
  int child(int bit) const { return real(v_ + bit); }

  /// Calls f(piece) for each message of the block of the child at `bit` (this rank's own block for bit 0). `parts` is
  /// the root's buffer. Every other rank keeps its block in scratch at offset `staged`, in the order of v.
  template <class F>
  void each_message(int bit, const Parts& parts, size_t staged, size_t element, F&& f) const {
    const int begin = v_ + bit;
    const int end = std::min(size_, begin + (bit == 0 ? bit_ : bit));
    size_t offset = staged + elements(parts, v_, begin) * element;
    for (const auto& [first, last] : runs(begin, end)) {
      Piece piece = parts.range(first, last);
      if (!is_root()) piece = {Region::Scratch, offset, piece.count};
      offset += piece.count * element;
      f(piece);
    }
  }

  /// Counts the elements of the parts of ranks [begin, end), which are counted from the root.
  size_t elements(const Parts& parts, int begin, int end) const {
    size_t sum = 0;
    for (const auto& [first, last] : runs(begin, end)) sum += parts.range(first, last).count;
    return sum;
  }
  size_t block_elements(const Parts& parts) const { return elements(parts, v_, std::min(size_, v_ + bit_)); }

 private:
  int real(int v) const { return (v + root_) % size_; }

  /// Returns the real ranks of [begin, end), as two ranges, the second of which may be empty.
  std::array<std::pair<int, int>, 2> runs(int begin, int end) const {
    const int first = begin + root_, last = end + root_;
    if (first >= size_) return {{{first - size_, last - size_}, {0, 0}}};
    return {{{first, std::min(last, size_)}, {0, std::max(last - size_, 0)}}};
  }

  int root_;
  int size_;
  int v_;
  int bit_ = 1;
};

}  // namespace ringwise::coll
