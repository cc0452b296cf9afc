#include "coll/plan/schedule.h"

#include <algorithm>

namespace ringwise::coll {

void Schedule::clear() {
  handshake_targets.clear();
  handshake_sources.clear();
  sends.clear();
  steps.clear();
  scratch_bytes = 0;
}

void Schedule::exchange(int to, Piece outgoing, int from, Piece incoming, Take take) {
  const size_t sends_before = sends.size();
  send(to, outgoing, steps.size());
  const size_t steps_before = steps.size();
  receive(from, incoming, take, sends_before, outgoing);
  if (steps.size() > steps_before) steps.back().trails = take == Take::Append || take == Take::Prepend;
}

void Schedule::work(Local local, Piece target, Piece source, size_t after) {
  if (source.count == 0) return;
  Step& step = steps.emplace_back();
  step.local = local;
  step.piece = target;
  step.source = source;
  step.after = after;
}

void Schedule::send(int to, Piece piece, size_t after) {
  if (piece.count > 0) sends.push_back({to, piece, after});
}

void Schedule::receive(int from, Piece piece, Take take, size_t after, Piece source) {
  if (piece.count == 0) return;
  Step& step = steps.emplace_back();
  step.from = from;
  step.take = take;
  step.piece = piece;
  step.source = source;
  step.after = after;
}

size_t Schedule::scratch(size_t bytes) {
  const size_t offset = scratch_bytes;
  scratch_bytes += (bytes + 63) / 64 * 64;
  return offset;
}

void Schedule::handshake_partners() {
  const auto collect = [](std::vector<int>& ranks, const auto& list, auto rank_of) {
    for (const auto& entry : list) {
      const int rank = rank_of(entry);
      if (rank >= 0 && (ranks.empty() || ranks.back() != rank)) ranks.push_back(rank);
    }
    std::ranges::sort(ranks);
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  };
  collect(handshake_targets, sends, [](const Send& send) { return send.to; });
  collect(handshake_sources, steps, [](const Step& step) { return step.from; });
}

}  // namespace ringwise::coll
