// The verbs that move data without computation: broadcast, allGather, gather, scatter, allToAll. Each rank offers data
// to other ranks and takes the data that they offer to it; board_plan.cc defines which parts.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/os/process_memory.h"
#include "base/os/random.h"
#include "coll/shm/board_execution.h"

namespace ringwise::coll {

/// Publishes this rank's probe, and tries to read those of the other ranks once all have published theirs. Where
/// processes cannot read each other's memory, all data goes through slots.
void BoardExecution::probe_memory() {
  Member& mine = board_.member(rank_);
  if (mine.process == 0) {
    os::random_bytes(probe_.get(), sizeof *probe_);
    mine.probe = *probe_ |= uint64_t{1} << 63;
    mine.probe_address = reinterpret_cast<uintptr_t>(probe_.get());
    mine.process = getpid();
  }
  for (int peer = 0; peer < size_; ++peer) {
    const Member& theirs = board_.member(peer);
    if (peer == rank_) continue;
    if (theirs.process == 0) return;
    uint64_t seen = 0;
    if (os::read_process_memory(theirs.process, theirs.probe_address, &seen, sizeof seen) != 0 ||
        seen != theirs.probe) {
      mine.reads = -1;
      return;
    }
  }
  mine.reads = 1;
}

bool BoardExecution::others_can_read() const {
  for (int peer = 0; peer < size_; ++peer) {
    if (peer != rank_ && board_.member(peer).reads != 1) return false;
  }
  return true;
}

/// Copies the data if all of it is complete in posts and slots, which needs no waits and no counters. Returns false
/// without copying if some is not.
bool BoardExecution::move_at_once() {
  const auto is_there = [&](int rank) { return where_of(rank) == Where::Post || where_of(rank) == Where::Slot; };
  if (!is_there(rank_)) return false;
  for (int source = 0; source < size_; ++source) {
    if (takes_from(source) && !is_there(source)) return false;
  }
  take_own();
  for (int source = 0; source < size_; ++source) {
    if (takes_from(source)) take(source, 0);
  }
  return true;
}

Program BoardExecution::move() {
  take_own();
  size_t incoming = 0;  // chunks
  for (int source = 0; source < size_; ++source) {
    if (!takes_from(source)) continue;
    const size_t count = chunks(taken_from(source).bytes);
    if (where_of(source) == Where::Chunks) {
      incoming = std::max(incoming, count);
    } else {
      for (size_t chunk = 0; chunk < count; ++chunk) take(source, chunk);
    }
  }
  const size_t outgoing = where_ == Where::Chunks ? chunks(most_offered()) : 0;
  for (size_t chunk = 0; chunk < std::max(incoming, outgoing); ++chunk) {
    if (chunk < outgoing) {
      co_await reached(Counter::Taken, chunk < 2 ? 0 : chunk - 1, takers());
      stage(chunk);
      publish(Counter::Staged, chunk + 1);
    }
    if (chunk < incoming) {
      for (int source = 0; source < size_; ++source) {
        if (!takes_from(source) || where_of(source) != Where::Chunks) continue;
        if (chunk >= chunks(taken_from(source).bytes)) continue;
        co_await reached(Counter::Staged, chunk + 1, only(source));
        take(source, chunk);
      }
      publish(Counter::Taken, chunk + 1);
    }
  }
  publish(Counter::Taken, Board::kAll);
  if (where_ == Where::Arena || where_ == Where::Memory) co_await reached(Counter::Taken, Board::kAll, takers());
}

void BoardExecution::take(int source, size_t chunk) {
  const Part to = chunk_of(taken_from(source), chunk);
  if (where_of(source) == Where::Memory) {
    const uint64_t address = board_.post(source, number_).offset + chunk_of(offered_by(source), chunk).offset;
    const int error = os::read_process_memory(board_.member(source).process, address, op_.output + to.offset, to.bytes);
    if (error == ESRCH)
      throw Failure(FailureCode::PeerLost, rank_, {source},
                    "lost rank " + std::to_string(source) + " (its process has ended)");
    if (error != 0) throw system_failure(rank_, "reading the memory of rank " + std::to_string(source), error);
    return;
  }
  if (to.bytes > 0) std::memcpy(op_.output + to.offset, data_of(source, chunk), to.bytes);
}

/// Copies the part that this rank sends to itself.
void BoardExecution::take_own() {
  const bool is_root = rank_ == op_.root;
  Part from, to;
  switch (op_.verb) {
    case Verb::AllGather:
    case Verb::Gather:
      if (op_.verb == Verb::Gather && !is_root) return;
      to = parts_[rank_];
      from = {0, to.bytes};
      break;
    case Verb::Scatter:
      if (!is_root) return;
      from = parts_[rank_];
      to = {0, from.bytes};
      break;
    case Verb::AllToAll:
      from = parts_[rank_];
      to = received_[rank_];
      break;
    default: return;
  }
  if (from.bytes > 0) std::memmove(op_.output + to.offset, op_.input + from.offset, from.bytes);
}

}  // namespace ringwise::coll
