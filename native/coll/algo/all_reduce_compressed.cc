// The two-shot all-reduce with everything that travels rounded to bfloat16, for links so slow that bytes are all that
// counts. An owner sums in float32: its own values as they are, and those of the others as they come. The sum is rounded
// once more on its way to everybody, its owner included, so all ranks get the same bits. A term is off by at most 2^-8 of
// itself, and the result by 2^-8 of itself. Latency of 2 messages; 2(n−1) messages, S·(n−1)/n bytes for S of float32.
#include "coll/algo/algorithms.h"
#include "coll/algo/parts.h"
#include "coll/algo/sums.h"

namespace ringwise::coll {

void compressed_all_reduce(const Op& op, Piece sums, Piece output, const Team& team, Schedule& schedule) {
  const int n = team.size;
  Piece packed{Place::Scratch, schedule.scratch(sums.count * byte_size(DType::BFloat16)), sums.count};
  packed.half = true;
  const Parts inputs = Parts::cut(sums, op.dtype, n);
  const Parts halves = Parts::cut(packed, op.dtype, n);
  const Piece mine = inputs.of(team.place);
  const Piece sum = scratch_sums(op, mine.count, schedule);
  Piece arriving = sum;
  arriving.half = true;

  const size_t sends_before = schedule.sends.size();
  for (int k = 1; k < n; ++k) {
    const int owner = (team.place + k) % n;
    schedule.work(Local::Compress, halves.of(owner), inputs.of(owner), sends_before);
    schedule.send(team.after(k), halves.of(owner), schedule.steps.size());
  }
  schedule.work(Local::Copy, sum, mine, sends_before);
  for (int k = 1; k < n; ++k) schedule.receive(team.before(k), arriving, Take::Accumulate, sends_before);
  schedule.work(Local::CompressResult, halves.of(team.place), sum, sends_before);
  spread_from_owners(halves, team, schedule);
  schedule.work(Local::Expand, output, packed);
}

}  // namespace ringwise::coll
