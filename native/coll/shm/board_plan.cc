// Plans each verb's use of its arrays: which ranks offer which parts to which ranks, how arrays are cut into parts, and
// where a rank puts its data.
#include <algorithm>

#include "coll/shm/board_execution.h"

namespace ringwise::coll {

namespace {

constexpr size_t kLine = 64;

// Up to this size (bytes), every rank that gets results reduces them from all data itself (one-shot): one wait instead
// of two.
constexpr size_t kOneShotBytes = 16 * 1024;

// From this size on, a copy into a slot costs more than waiting until the other ranks have read the arena.
constexpr size_t kArenaFromBytes = 2 * 1024;

// From this size on, one copy by the kernel (process_vm_readv) costs less than two copies through slots.
constexpr size_t kMemoryFromBytes = 128 * 1024;

size_t round_down(size_t bytes) { return bytes / kLine * kLine; }

}  // namespace

void BoardExecution::plan() {
  const size_t whole = op_.count * element_;
  by_part_ = false;
  chunk_bytes_ = board_.slot_bytes();
  method_ = Method::Move;
  parts_.clear();
  switch (op_.verb) {
    case Verb::Barrier: method_ = Method::Barrier; return;
    case Verb::AllReduce:
    case Verb::Reduce:
      method_ = whole <= kOneShotBytes ? Method::OneShot : Method::TwoShot;
      if (method_ == Method::OneShot) return;
      cut_evenly(op_.count);
      break;
    case Verb::ReduceScatter:
      cut(parts_, op_.count, op_.counts);
      method_ = parts_.back().offset + parts_.back().bytes <= kOneShotBytes ? Method::OneShot : Method::TwoShot;
      if (method_ == Method::OneShot) return;
      break;
    case Verb::Broadcast: return;
    case Verb::AllGather:
    case Verb::Gather: cut(parts_, op_.count, op_.counts); return;
    case Verb::Scatter: cut(parts_, op_.count, op_.counts); break;
    case Verb::AllToAll:
      cut(parts_, op_.count, op_.counts);
      cut(received_, op_.count, op_.recv_counts);
      break;
    case Verb::Send:
    case Verb::Recv: return;  // these never run on the board
  }
  by_part_ = true;
  chunk_bytes_ = round_down(board_.slot_bytes() / static_cast<size_t>(size_));
}

const char* BoardExecution::algorithm() const {
  switch (method_) {
    case Method::Barrier: return "board barrier";
    case Method::OneShot: return "board one-shot";
    case Method::TwoShot: return "board two-shot";
    case Method::Move: break;
  }
  return "board move";
}

/// Sets `parts` to adjacent parts of `count` elements each, or of `counts[rank]` elements.
void BoardExecution::cut(std::vector<Part>& parts, size_t count, const size_t* counts) const {
  parts.resize(size_);
  size_t offset = 0;
  for (int rank = 0; rank < size_; ++rank) {
    parts[rank] = {offset, (counts != nullptr ? counts[rank] : count) * element_};
    offset += parts[rank].bytes;
  }
}

/// Cuts `count` elements into parts_, one part per rank. Parts begin at multiples of a cache line, so that no two ranks
/// write to the same line of an aligned buffer.
void BoardExecution::cut_evenly(size_t count) {
  const size_t bytes = count * element_;
  const size_t part = (bytes / static_cast<size_t>(size_) + kLine - 1) / kLine * kLine;
  parts_.resize(size_);
  for (int rank = 0; rank < size_; ++rank) {
    const size_t begin = std::min(bytes, part * static_cast<size_t>(rank));
    const size_t end = rank == size_ - 1 ? bytes : std::min(bytes, begin + part);
    parts_[rank] = {begin, end - begin};
  }
}

/// Returns the bytes of the largest part that this rank offers to one receiver.
size_t BoardExecution::most_offered() const {
  const Ranks ranks = takers();
  size_t most = 0;
  for (int taker = ranks.first; taker < ranks.last; ++taker) most = std::max(most, offer(taker).bytes);
  return most;
}

/// Returns the bytes per receiver in the post's data if receivers get different parts, rounded down to 8.
size_t BoardExecution::post_stride() const {
  const size_t used = sizes_bytes();
  return used < sizeof(Post::data) ? (sizeof(Post::data) - used) / static_cast<size_t>(size_) / 8 * 8 : 0;
}

Where BoardExecution::choose_where() const {
  if (method_ == Method::Barrier || (!by_part_ && offered_whole(rank_) <= sizeof(Post::data))) return Where::Post;
  const Ranks ranks = takers();
  if (ranks.first == ranks.last) return Where::Post;
  const size_t most = most_offered();
  if (method_ == Method::Move && most <= post_stride()) return Where::Post;
  const bool premultiplied = op_.reduce == ReduceOp::PremulSum && method_ != Method::Move;
  // A rank may leave a one-shot while others still read its data, so the data must not stay in its buffer. Only an
  // allReduce may offer its arena: it works in place if all ranks do so, and copies otherwise (late_one_shot).
  const bool readable = op_.verb == Verb::AllReduce || method_ != Method::OneShot;
  const bool known = op_.verb != Verb::AllToAll || op_.counts == nullptr;  // receivers know where their part begins
  if (most >= kArenaFromBytes && context_.arena && !premultiplied && readable && known) {
    size_t bytes = 0;
    for (int taker = ranks.first; taker < ranks.last; ++taker)
      bytes = std::max(bytes, offer(taker).offset + offer(taker).bytes);
    if (context_.arena->offset_of(op_.input, bytes)) return Where::Arena;
  }
  if (method_ == Method::Move && most >= kMemoryFromBytes && known && others_can_read()) return Where::Memory;
  if (method_ == Method::TwoShot) return Where::Chunks;
  return most <= chunk_bytes_ ? Where::Slot : Where::Chunks;
}

/// Returns the ranks that take the data which this rank offers.
BoardExecution::Ranks BoardExecution::takers() const {
  switch (op_.verb) {
    case Verb::Barrier: return {};
    case Verb::Broadcast:
    case Verb::Scatter: return rank_ == op_.root ? everybody() : Ranks{};
    case Verb::Gather: return rank_ == op_.root ? Ranks{} : only(op_.root);
    case Verb::Reduce:
      if (method_ != Method::OneShot) return everybody();
      return rank_ == op_.root && op_.reduce != ReduceOp::PremulSum ? Ranks{} : only(op_.root);
    default: return everybody();
  }
}

/// Returns the ranks whose posts this rank waits for before it continues: all ranks if it writes any output. The
/// exception is a receiver of a broadcast that fits the root's post: it waits for the root only, so that it may run
/// ahead of the other ranks as the root does. `is_first`: this is the first call with the root.
BoardExecution::Ranks BoardExecution::to_meet(bool is_first) const {
  const bool is_root = rank_ == op_.root;
  switch (op_.verb) {
    case Verb::Broadcast:
      if (is_root) return {};
      return is_first || size_ == 2 || offered_whole(rank_) > sizeof(Post::data) ? everybody() : only(op_.root);
    case Verb::Gather: return is_root ? everybody() : Ranks{};
    case Verb::Reduce: return is_root || method_ == Method::TwoShot ? everybody() : Ranks{};
    default: return everybody();
  }
}

bool BoardExecution::takes_from(int source) const {
  if (source == rank_) return false;
  switch (op_.verb) {
    case Verb::Broadcast:
    case Verb::Scatter: return source == op_.root;
    case Verb::Gather: return rank_ == op_.root;
    default: return true;
  }
}

/// Returns the bytes that `source` offers, for verbs where every receiver gets the same data.
size_t BoardExecution::offered_whole(int source) const {
  switch (op_.verb) {
    case Verb::ReduceScatter: return parts_.back().offset + parts_.back().bytes;
    case Verb::AllGather:
    case Verb::Gather: return parts_[source].bytes;
    default: return op_.count * element_;
  }
}

/// Returns the part of this rank's input that `taker` gets.
BoardExecution::Part BoardExecution::offer(int taker) const {
  return by_part_ ? parts_[taker] : Part{0, offered_whole(rank_)};
}

/// Returns the part of the input of `source` that this rank gets. Not for allToAll with counts, where only `source`
/// knows its offset.
BoardExecution::Part BoardExecution::offered_by(int source) const {
  return by_part_ ? parts_[rank_] : Part{0, offered_whole(source)};
}

/// Returns the part of this rank's output that comes from `source`.
BoardExecution::Part BoardExecution::taken_from(int source) const {
  switch (op_.verb) {
    case Verb::AllGather:
    case Verb::Gather: return parts_[source];
    case Verb::AllToAll: return received_[source];
    case Verb::Scatter: return {0, parts_[rank_].bytes};
    default: return {0, op_.count * element_};
  }
}

BoardExecution::Part BoardExecution::chunk_of(const Part& part, size_t chunk) const {
  const size_t begin = std::min(part.bytes, chunk * chunk_bytes_);
  return {part.offset + begin, std::min(chunk_bytes_, part.bytes - begin)};
}

}  // namespace ringwise::coll
