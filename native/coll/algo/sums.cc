#include "coll/algo/sums.h"

#include <algorithm>

#include "coll/reduce/reduce.h"

namespace ringwise::coll {

Piece contribution(const Op& op, Piece input, Schedule& schedule) {
  if (op.reduce != ReduceOp::PremulSum) return input;
  const Piece scaled{Region::Scratch, schedule.scratch(input.count * byte_size(op.dtype)), input.count};
  schedule.work(Local::Scale, scaled, input);
  return scaled;
}

Piece widened(const Op& op, Piece sums, Schedule& schedule) {
  if (!is_narrow(op.dtype) || sums.wide) return sums;
  const Piece wide = scratch_sums(op, sums.count, schedule);
  schedule.work(Local::Widen, wide, sums);
  return wide;
}

Piece scratch_sums(const Op& op, size_t count, Schedule& schedule) {
  return {Region::Scratch, schedule.scratch(count * byte_size(accumulator_of(op.dtype))), count, is_narrow(op.dtype)};
}

Piece accumulator_for(const Op& op, Piece output, Schedule& schedule) {
  return is_narrow(op.dtype) ? scratch_sums(op, output.count, schedule) : output;
}

void finish(const Op& op, Piece output, Piece sums, Schedule& schedule, size_t after) {
  const bool is_there = sums.region == output.region && sums.offset == output.offset;
  if (sums.wide || op.reduce == ReduceOp::Avg) return schedule.work(Local::Narrow, output, sums, after);
  if (!is_there) schedule.work(Local::Copy, output, sums, after);
}

Piece slice(const Op& op, Piece piece, size_t begin, size_t count) {
  const size_t element = byte_size(piece.wide ? accumulator_of(op.dtype) : op.dtype);
  const size_t first = std::min(begin, piece.count);
  piece.offset += first * element;
  piece.count = std::min(count, piece.count - first);
  return piece;
}

}  // namespace ringwise::coll
