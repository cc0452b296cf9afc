// Two-shot all-reduce whose messages are all rounded, for links so slow that only bytes count. The owner of a part sums
// in float32: its own values unrounded, and the rounded values of the others. The sum is rounded once more before it is
// sent, and the owner uses the rounded sum too, so all ranks get the same bits; avg divides after that.
//
// A residual keeps what rounding loses at this rank: for parts of other owners the loss of the values that this rank
// sends, for its own part the loss of the sum. (Tang et al., "DoubleSqueeze", 2019.) So the sum that all ranks get plus
// the new residuals of all ranks equals the values plus the old residuals of all ranks.
//
// Parts travel in chunks, so that rounding and summing overlap with the transfer. Both ends order the messages of a
// pair by phase (values, then sums) and chunk. Latency of 2 messages; S·(n−1)/n bytes for S bytes of float32 as
// bfloat16, half of that as int8.
#include <algorithm>

#include "coll/algo/algorithms.h"
#include "coll/algo/parts.h"
#include "coll/algo/sums.h"
#include "coll/reduce/wire.h"

namespace ringwise::coll {

namespace {

constexpr size_t kChunk = 32 * 1024;  // elements; whole blocks of int8

class Compressed {
 public:
  Compressed(const Op& op, Piece sums, Piece output, const Team& team, Schedule& schedule)
      : op_(op),
        team_(team),
        schedule_(schedule),
        inputs_(Parts::cut(sums, op.dtype, team.size)),
        outputs_(Parts::cut(output, op.dtype, team.size)),
        residuals_(Parts::cut({Region::Residual, output.offset, output.count}, op.dtype, team.size)),
        largest_(std::min(outputs_.of(0).count, kChunk)),
        chunks_((outputs_.of(0).count + kChunk - 1) / kChunk),
        sends_before_(schedule.sends.size()),
        arriving_(packed(largest_)) {}

  void plan() {
    for (size_t chunk = 0; chunk < chunks_; ++chunk) send_values(chunk);
    const Piece sum = scratch_sums(op_, largest_, schedule_);
    for (size_t chunk = 0; chunk < chunks_; ++chunk)
      send_sums(chunk, slice(op_, sum, 0, of(outputs_, team_.index, chunk).count));
    for (size_t chunk = 0; chunk < chunks_; ++chunk) take_results(chunk);
  }

 private:
  Piece of(const Parts& parts, int owner, size_t chunk) const {
    return slice(op_, parts.of(owner), chunk * kChunk, kChunk);
  }

  /// Reserves scratch for `count` packed values.
  Piece packed(size_t count) const {
    const size_t words = packed_words(op_.wire, count);
    return {Region::Scratch, schedule_.scratch(words * sizeof(float)), words};
  }

  Piece arriving(size_t count) const { return {Region::Scratch, arriving_.offset, packed_words(op_.wire, count)}; }

  void pack(Piece target, Piece values, Piece residual) {
    schedule_.work(Local::Pack, target, values, sends_before_);
    if (op_.residual != nullptr) schedule_.steps.back().residual = residual;
  }

  /// Plans the writes to the residual and then the output. They must wait until all handshakes agree and the values are
  /// no longer needed.
  void finish(Piece output, Piece packed, Piece residual, Piece values) {
    if (op_.residual != nullptr) schedule_.work(Local::KeepLoss, residual, values, sends_before_);
    schedule_.work(Local::Unpack, output, packed, sends_before_);
  }

  void send_values(size_t chunk) {
    for (int k = 1; k < team_.size; ++k) {
      const int owner = (team_.index + k) % team_.size;
      const Piece values = of(inputs_, owner, chunk);
      if (values.count == 0) continue;
      const Piece message = packed(values.count);
      pack(message, values, of(residuals_, owner, chunk));
      schedule_.send(team_.after(k), message, schedule_.steps.size());
    }
  }

  /// Sums this rank's own part and sends the sums to all.
  void send_sums(size_t chunk, Piece sum) {
    if (sum.count == 0) return;
    schedule_.work(Local::Copy, sum, of(inputs_, team_.index, chunk), sends_before_);
    for (int k = 1; k < team_.size; ++k) {
      schedule_.receive(team_.before(k), arriving(sum.count), Take::Store, sends_before_);
      schedule_.work(Local::AddPacked, sum, arriving(sum.count), sends_before_);
    }
    const Piece message = packed(sum.count), residual = of(residuals_, team_.index, chunk);
    pack(message, sum, residual);
    for (int k = 1; k < team_.size; ++k) schedule_.send(team_.after(k), message, schedule_.steps.size());
    finish(of(outputs_, team_.index, chunk), message, residual, sum);
  }

  void take_results(size_t chunk) {
    for (int k = 1; k < team_.size; ++k) {
      const int owner = (team_.index - k + team_.size) % team_.size;
      const Piece output = of(outputs_, owner, chunk);
      if (output.count == 0) continue;
      const Piece message = arriving(output.count);
      schedule_.receive(team_.before(k), message, Take::Store, sends_before_);
      finish(output, message, of(residuals_, owner, chunk), of(inputs_, owner, chunk));
    }
  }

  const Op& op_;
  const Team& team_;
  Schedule& schedule_;
  const Parts inputs_, outputs_, residuals_;
  const size_t largest_;       // elements of the longest chunk
  const size_t chunks_;        // chunks of the largest part, which is the first
  const size_t sends_before_;  // local work waits for these sends, which may read this rank's values
  const Piece arriving_;       // scratch for one arriving message at a time
};

}  // namespace

void compressed_all_reduce(const Op& op, Piece sums, Piece output, const Team& team, Schedule& schedule) {
  Compressed(op, sums, output, team, schedule).plan();
}

}  // namespace ringwise::coll
