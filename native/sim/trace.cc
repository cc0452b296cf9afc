#include "sim/trace.h"

#include "coll/handshake/signature.h"
#include "coll/reduce/reduce.h"
#include "coll/transport/link.h"

namespace ringwise::sim {

namespace {

/// Returns the size of a message as Execution sends it, with padding.
size_t wire_bytes(const coll::Op& op, const coll::Piece& message) {
  const size_t bytes = message.count * byte_size(message.wide ? coll::accumulator_of(op.dtype) : op.dtype);
  return (bytes + coll::kAlign - 1) / coll::kAlign * coll::kAlign;
}

}  // namespace

void Entries::add(const Entry& entry) {
  if (!runs_.empty()) {
    Run& run = runs_.back();
    const bool alike =
        entry.bytes == run.last.bytes && (entry.peer < 0) == (run.last.peer < 0) && entry.needs >= run.last.needs;
    if (run.count == 1 && alike) {
      run.peer_step = entry.peer < 0 ? 0 : (entry.peer - run.last.peer + ranks_) % ranks_;
      run.needs_step = entry.needs - run.last.needs;
    }
    Entry next = run.last;
    advance(next, run.peer_step, run.needs_step);
    if (alike && next.peer == entry.peer && next.needs == entry.needs) {
      run.last = next;
      ++run.count;
      if (runs_.size() == 1) begin_run();
      return;
    }
  }
  runs_.push_back({entry, entry});
  if (runs_.size() == 1) begin_run();
}

void Entries::begin_run() {
  const Run& run = runs_[run_];
  front_ = run.first;
  left_ = run.count;
  peer_step_ = run.peer_step;
  needs_step_ = run.needs_step;
}

size_t Entries::later_need() const {
  if (needs_step_ > 0 && left_ > 1) return needs_step_;
  for (size_t run = run_ + 1; run < runs_.size(); ++run) {
    if (runs_[run].first.needs > 0) return runs_[run].first.needs;
    if (runs_[run].needs_step > 0 && runs_[run].count > 1) return runs_[run].needs_step;
  }
  return 0;
}

Trace trace_of(const coll::Op& op, const coll::Schedule& schedule, int ranks, bool handshakes) {
  Trace trace(ranks);
  const size_t targets = handshakes ? schedule.handshake_targets.size() : 0;
  const size_t sources = handshakes ? schedule.handshake_sources.size() : 0;
  for (size_t i = 0; i < targets; ++i) trace.sends.add({schedule.handshake_targets[i], sizeof(coll::Signature), 0});
  for (size_t i = 0; i < sources; ++i) trace.steps.add({schedule.handshake_sources[i], sizeof(coll::Signature), 0});
  for (const coll::Send& send : schedule.sends) {
    // A send that waits for no step does not wait for handshakes either.
    trace.sends.add({send.to, wire_bytes(op, send.piece), send.after == 0 ? 0 : send.after + sources});
  }
  for (const coll::Step& step : schedule.steps) {
    const size_t needs = step.after + (step.trails ? 1 : 0);
    trace.steps.add({step.from, step.from < 0 ? 0 : wire_bytes(op, step.piece), needs == 0 ? 0 : needs + targets});
  }
  return trace;
}

}  // namespace ringwise::sim
