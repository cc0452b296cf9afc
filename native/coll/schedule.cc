#include "coll/schedule.h"

#include "coll/algo/algorithms.h"

namespace ringwise::coll {

namespace {
// Up to here one message to every rank costs less than two phases over parts of the buffer.
constexpr size_t kOneShotBytes = 2048;
}  // namespace

void Schedule::clear() {
  greets.clear();
  greeted_by.clear();
  steps.clear();
  scratch_bytes = 0;
}

void Schedule::exchange(int to, Piece outgoing, int from, Piece incoming, Take take) {
  Step step;
  if (outgoing.count > 0) {
    step.to = to;
    step.outgoing = outgoing;
  }
  if (incoming.count > 0) {
    step.from = from;
    step.incoming = incoming;
    step.take = take;
  }
  if (step.to >= 0 || step.from >= 0) steps.push_back(step);
}

void Schedule::work(Local local, Piece target, Piece source) {
  if (source.count == 0) return;
  Step step;
  step.local = local;
  step.target = target;
  step.source = source;
  steps.push_back(step);
}

size_t Schedule::scratch(size_t bytes) {
  const size_t offset = scratch_bytes;
  scratch_bytes += (bytes + 63) / 64 * 64;
  return offset;
}

void plan(const Op& op, int rank, int size, Schedule& schedule) {
  schedule.clear();
  switch (op.verb) {
    case Verb::AllReduce:
      if (op.count * byte_size(op.dtype) <= kOneShotBytes) return one_shot_all_reduce(op, rank, size, schedule);
      return two_shot_all_reduce(op, rank, size, schedule);
    case Verb::ReduceScatter:
      return direct_reduce_scatter(op, rank, size, schedule);
    case Verb::AllGather:
      return direct_all_gather(op, rank, size, schedule);
    case Verb::Broadcast:
      return tree_broadcast(op, rank, size, schedule);
    case Verb::Barrier:
      return greeting_barrier(op, rank, size, schedule);
    case Verb::Send:
      schedule.greets.push_back(op.root);
      return schedule.exchange(op.root, {Place::Input, 0, op.count}, -1, {}, Take::Store);
    case Verb::Recv:
      schedule.greeted_by.push_back(op.root);
      return schedule.exchange(-1, {}, op.root, {Place::Output, 0, op.count}, Take::Store);
  }
}

}  // namespace ringwise::coll
