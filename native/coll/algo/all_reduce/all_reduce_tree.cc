// Binary tree: sums travel up to member 0 and results travel down again, in pipelined segments (pipelined trees: Chan,
// Heimlich, Purkayastha, van de Geijn, "Collective communication: theory, practice, and experience", 2007). Member v
// has the children 2v+1 and 2v+2. Every rank exchanges data with at most three others; all ranks together send 2(n−1)
// messages per segment. 2·⌊log2 n⌋ levels of two messages each; up to 3·S bytes in and out.
#include "coll/algo/algorithms.h"
#include "coll/algo/sums.h"

namespace ringwise::coll {

namespace {
constexpr size_t kSegment = 64 * 1024;  // bytes
}

void tree_all_reduce(const Op& op, Piece sums, Piece output, const Team& team, Schedule& schedule) {
  const int parent = team.index == 0 ? -1 : team.rank((team.index - 1) / 2);
  int children[2];
  int child_count = 0;
  for (int child = 2 * team.index + 1; child <= 2 * team.index + 2 && child < team.size; ++child) {
    children[child_count++] = team.rank(child);
  }
  const size_t elements = kSegment / byte_size(op.dtype);
  const auto segment = [&](Piece piece, size_t begin) { return slice(op, piece, begin, elements); };
  const auto send_down = [&](Piece piece) {
    const size_t after = schedule.steps.size();
    for (int i = 0; i < child_count; ++i) schedule.send(children[i], piece, after);
  };

  sums = widened(op, sums, schedule);
  // Only complete sums may be written to the output. Only the root has them, once it has added its last child's sums.
  const Piece between = child_count + (parent < 0 ? 0 : 1) > 1 ? scratch_sums(op, sums.count, schedule) : Piece{};
  const Piece complete = parent < 0 ? accumulator_for(op, output, schedule) : between;
  for (size_t begin = 0; begin < sums.count; begin += elements) {
    Piece sum = segment(sums, begin);
    for (int i = 0; i < child_count; ++i) {
      const Piece target = segment(i + 1 < child_count ? between : complete, begin);
      schedule.receive(children[i], target, Take::Append, 0, sum);
      sum = target;
    }
    if (parent >= 0) {
      schedule.send(parent, sum, schedule.steps.size());
    } else {
      finish(op, segment(output, begin), sum, schedule, 0);
      send_down(segment(output, begin));
    }
  }
  if (parent < 0) return;
  // The output may be the input, so a segment of the result waits until that segment of the sums has been sent up.
  size_t sent_up = schedule.sends.size() - (sums.count + elements - 1) / elements;
  for (size_t begin = 0; begin < sums.count; begin += elements) {
    schedule.receive(parent, segment(output, begin), Take::Store, ++sent_up);
    send_down(segment(output, begin));
  }
}

}  // namespace ringwise::coll
