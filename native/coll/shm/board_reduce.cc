// Reductions on the board. One-shot: every rank that gets results reduces them itself from all data. Two-shot: every
// rank reduces one part for all ranks, then takes the other parts (Rabenseifner, "Optimization of Collective Reduction
// Operations", 2004, over shared memory). In place: like two-shot, but the buffers lie in arenas, so every part is
// read, reduced and written in the buffers themselves, in one pass over the memory.
#include <algorithm>
#include <cstring>

#include "coll/reduce/grid.h"
#include "coll/reduce/reduce.h"
#include "coll/shm/board_execution.h"

namespace ringwise::coll {

bool BoardExecution::all_in_arenas() const {
  for (int rank = 0; rank < size_; ++rank) {
    if (where_of(rank) != Where::Arena) return false;
  }
  return true;
}

bool BoardExecution::takes_results() const {
  return op_.verb == Verb::AllReduce || (op_.verb == Verb::Reduce && rank_ == op_.root);
}

/// Reduces `bytes` bytes of sources_ into the first outputs_.
void BoardExecution::combine_sources(int output_count, size_t bytes) {
  const size_t count = bytes / element_;
  if (op_.reproducible)
    grid_kernels().combine(op_.dtype, op_.reduce, sources_.data(), size_, outputs_.data(), output_count, count);
  else
    combine(op_.dtype, op_.reduce, sources_.data(), size_, outputs_.data(), output_count, count);
}

void BoardExecution::reduce_whole() {
  // A reduce-scatter needs only this rank's part.
  const Part part = op_.verb == Verb::ReduceScatter ? parts_[rank_] : Part{0, op_.count * element_};
  const bool own_staged = op_.reduce == ReduceOp::PremulSum;
  for (int rank = 0; rank < size_; ++rank) {
    const bool own = rank == rank_ && !own_staged;
    sources_[rank] = (own ? op_.input : data_of(rank, 0)) + part.offset;
  }
  outputs_[0] = op_.output;
  combine_sources(1, part.bytes);
}

/// Runs a one-shot in which some ranks, but not all, have their buffers in arenas. These ranks copy their data into
/// slots now, because they learn only from the posts that not all buffers are in arenas.
Program BoardExecution::late_one_shot() {
  const bool late = where_ == Where::Arena;
  where_ = Where::Slot;
  if (late) {
    stage(0);
    publish(Counter::Staged, 1);
  }
  for (int rank = 0; rank < size_; ++rank) {
    Post& post = board_.post(rank, number_);
    if (rank == rank_ || post.where != Where::Arena) continue;
    co_await reached(Counter::Staged, 1, only(rank));
  }
  for (int rank = 0; rank < size_; ++rank) {
    sources_[rank] = rank == rank_ ? op_.input : board_.slot(rank, number_, 0);
  }
  outputs_[0] = op_.output;
  combine_sources(1, op_.count * element_);
}

Program BoardExecution::two_shot() {
  size_t most = 0;
  for (const Part& part : parts_) most = std::max(most, part.bytes);
  const size_t total = chunks(most);
  const bool has_results = op_.verb != Verb::ReduceScatter;
  if (where_ == Where::Arena) publish(Counter::Staged, Board::kAll);
  for (size_t chunk = 0; chunk < total; ++chunk) {
    const size_t before_last = chunk < 2 ? 0 : chunk - 1;  // chunks to consume before the slot is reused
    if (where_ == Where::Chunks) {
      co_await reached(Counter::Reduced, before_last, everybody());
      stage(chunk);
      publish(Counter::Staged, chunk + 1);
    }
    co_await reached(Counter::Staged, chunk + 1, everybody());
    if (has_results) co_await reached(Counter::Taken, before_last, everybody());
    reduce_part(chunk);
    publish(Counter::Reduced, chunk + 1);
    if (chunk > 0 && takes_results()) {
      co_await reached(Counter::Reduced, chunk, everybody());
      take_results(chunk - 1);
    }
    publish(Counter::Taken, chunk);
  }
  if (takes_results() && total > 0) {
    co_await reached(Counter::Reduced, total, everybody());
    take_results(total - 1);
  }
  publish(Counter::Taken, Board::kAll);
  publish(Counter::Reduced, Board::kAll);
  if (where_ == Where::Arena) co_await reached(Counter::Reduced, Board::kAll, everybody());
}

/// Reduces one chunk of this rank's part, for itself and for the ranks that take it.
void BoardExecution::reduce_part(size_t chunk) {
  const Part mine = chunk_of(parts_[rank_], chunk);
  const bool own_staged = op_.reduce == ReduceOp::PremulSum;
  for (int rank = 0; rank < size_; ++rank) {
    sources_[rank] = rank == rank_ && !own_staged ? op_.input + mine.offset : data_of(rank, chunk);
  }
  int count = 0;
  if (op_.verb == Verb::ReduceScatter) {
    outputs_[count++] = op_.output + (mine.offset - parts_[rank_].offset);
  } else {
    if (takes_results()) outputs_[count++] = op_.output + mine.offset;
    outputs_[count++] = board_.result(rank_, number_, chunk);
  }
  combine_sources(count, mine.bytes);
}

void BoardExecution::take_results(size_t chunk) {
  for (int rank = 0; rank < size_; ++rank) {
    if (rank == rank_) continue;
    const Part part = chunk_of(parts_[rank], chunk);
    if (part.bytes > 0) std::memcpy(op_.output + part.offset, board_.result(rank, number_, chunk), part.bytes);
  }
}

std::span<const std::byte> BoardExecution::exposed() const {
  const bool has_posted = phase_ == Phase::Meet || phase_ == Phase::Run;
  if (!has_posted || where_ != Where::Arena || !takes_results()) return {};
  return {op_.input, op_.count * element_};
}

Program BoardExecution::in_place() {
  if (parts_.empty()) cut_evenly(op_.count);
  reduce_in_place();
  publish(Counter::Reduced, Board::kAll);
  co_await reached(Counter::Reduced, Board::kAll, everybody());
}

/// Reduces this rank's part of all buffers, and writes the result into all of them (allReduce), the root's buffer
/// (reduce), or this rank's output (reduceScatter).
void BoardExecution::reduce_in_place() {
  const Part mine = parts_[rank_];
  int count = 0;
  for (int rank = 0; rank < size_; ++rank) {
    std::byte* memory = rank == rank_ ? const_cast<std::byte*>(op_.input)
                                      : context_.arenas.memory(rank) + board_.post(rank, number_).offset;
    sources_[rank] = memory + mine.offset;
    const bool is_output = op_.verb == Verb::AllReduce || (op_.verb == Verb::Reduce && rank == op_.root);
    if (is_output) outputs_[count++] = memory + mine.offset;
  }
  if (op_.verb == Verb::ReduceScatter) outputs_[count++] = op_.output;
  combine_sources(count, mine.bytes);
}

}  // namespace ringwise::coll
