#include "coll/engine/execution.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/time/clock.h"
#include "coll/reduce/reduce.h"
#include "coll/reduce/wire.h"

namespace ringwise::coll {

namespace {

// rest_ns() estimates only messages longer than kTimedBytes, and only rates below kFastBytes per microsecond.
constexpr size_t kTimedBytes = 32 * 1024;
constexpr int64_t kFastBytes = 300;

// Maximum bytes of one send while arriving data are reduced: few enough that the data are still in the cache when they
// are reduced, and enough that the cost of a system call does not matter.
constexpr size_t kPortion = 256 * 1024;

constexpr std::byte kZeros[kAlign] = {};

size_t padded(size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

}  // namespace

void Execution::begin(const Op& op, const Topology& topology, const Algorithm& algorithm, bool may_run_ahead) {
  op_ = op;
  rank_ = topology.rank;
  size_ = topology.size();
  element_ = byte_size(op.dtype);
  accumulator_ = byte_size(accumulator_of(op.dtype));
  algorithm_ = algorithm.name;
  signature_ = signature_of(op, rank_, size_);
  signature_.algorithm = static_cast<uint8_t>(number_of(op.verb, algorithm));
  signature_.tuning = topology.rules().digest();
  schedule_.clear();
  algorithm.plan(op, topology, schedule_);
  if (scratch_memory_.size() < schedule_.scratch_bytes + kAlign)
    scratch_memory_.resize(schedule_.scratch_bytes + kAlign);
  const auto address = reinterpret_cast<uintptr_t>(scratch_memory_.data());
  scratch_ = scratch_memory_.data() + (kAlign - address % kAlign) % kAlign;
  handshake_index_ = handshake_offset_ = heard_count_ = send_ = pushed_ = step_ = pulled_ = 0;
  heard_.assign(schedule_.handshake_sources.size(), 0);
  pending_.resize(size_);
  deferred_.resize(size_);
  ahead_in_.resize(size_, kVerbCount);
  find_role(may_run_ahead);
  // The handshake to the rank that gets the first message goes last, so that the two can share a packet.
  if (schedule_.sends.empty()) return;
  auto& handshake_targets = schedule_.handshake_targets;
  const auto first = std::find(handshake_targets.begin(), handshake_targets.end(), schedule_.sends.front().to);
  if (first != handshake_targets.end()) std::iter_swap(first, handshake_targets.end() - 1);
}

bool Execution::done() const {
  return send_ == schedule_.sends.size() && step_ == schedule_.steps.size() &&
         handshake_index_ == schedule_.handshake_targets.size() && late_.empty() && heard_all();
}

bool Execution::advance(Links& links) {
  bool moved = send_handshakes(links);
  if (handshake_goes_with_message())
    moved |= run_send(links);  // so that the peer gets it even if a disagreement ends the operation below
  if (!runs_ahead_) moved |= receive_handshakes(links);
  while (static_cast<int>(run_send(links)) | static_cast<int>(run_step(links))) moved = true;
  if (runs_ahead_) moved |= run_ahead(links);
  return moved;
}

/// Advances the current send; returns true if it moved or ended.
bool Execution::run_send(Links& links) {
  if (send_ == schedule_.sends.size() ||
      (handshake_index_ < schedule_.handshake_targets.size() && !handshake_goes_with_message()))
    return false;
  const Send& send = schedule_.sends[send_];
  if (step_ < send.after || !push(send, *links[send.to])) return false;
  if (pushed_ == padded_bytes(send.piece)) {
    pushed_ = 0;
    ++send_;
  }
  return true;
}

/// Advances the current step; returns true if it moved or ended.
bool Execution::run_step(Links& links) {
  if (step_ == schedule_.steps.size()) return false;
  const Step& step = schedule_.steps[step_];
  if (send_ < step.after) return false;
  if (step.from < 0) {
    if (step.piece.region != Region::Scratch && !heard_all()) return false;
    work(step);
    ++step_;
    return true;
  }
  if (!heard_all() || !pull(step, *links[step.from])) return false;
  if (pulled_ == padded_bytes(step.piece)) {
    pulled_ = 0;
    ++step_;
  }
  return true;
}

/// Gives the link the rest of the send, or one portion if the send takes turns with a step that reduces.
bool Execution::push(const Send& send, Link& link) {
  const size_t payload = send.piece.count * width(send.piece);
  const bool has_handshake = handshake_index_ < schedule_.handshake_targets.size();
  if (has_handshake && !deferred_.send(send.to, link)) return false;
  Signature handshake;
  Link::Part parts[3];
  if (has_handshake) {
    handshake = handshake_for(send.to);
    parts[0] = Link::Part(reinterpret_cast<const std::byte*>(&handshake), sizeof handshake).subspan(handshake_offset_);
  }
  const bool reduces = step_ < schedule_.steps.size() && schedule_.steps[step_].take != Take::Store;
  const size_t end = reduces ? std::min(payload, pushed_ + kPortion) : payload;
  if (pushed_ < payload) parts[1] = {at(send.piece) + pushed_, end - pushed_};
  if (end == payload) parts[2] = {kZeros, padded(payload) - std::max(payload, pushed_)};
  size_t sent = link.send(parts);
  const bool moved = sent > 0;
  if (has_handshake) {
    const size_t of_handshake = std::min(sent, parts[0].size());
    handshake_offset_ += of_handshake;
    sent -= of_handshake;
    if (handshake_offset_ == sizeof handshake) {
      handshake_offset_ = 0;
      ++handshake_index_;
    }
  }
  pushed_ += sent;
  return moved;
}

bool Execution::pull(const Step& step, Link& link) {
  const size_t element = width(step.piece);
  const size_t payload = step.piece.count * element;
  const size_t before = pulled_;
  if (pulled_ < payload && step.take == Take::Store) {
    pulled_ += link.receive(at(step.piece) + pulled_, payload - pulled_);
  } else if (pulled_ < payload) {
    const auto bytes = link.peek(std::min(payload, may_pull(step)) - pulled_);
    const size_t count = bytes.size() / element;
    if (count > 0) {
      take(step, bytes, count);
      link.consume(count * element);
      pulled_ += count * element;
    }
  }
  while (pulled_ >= payload && pulled_ < padded(payload)) {
    const auto bytes = link.peek(padded(payload) - pulled_);
    if (bytes.empty()) break;
    pulled_ += bytes.size();
    link.consume(bytes.size());
  }
  if (before == 0 && pulled_ > 0) {
    const bool is_timed = pulled_ + kTimedBytes <= payload;
    pull_begin_ns_ = is_timed ? now_ns() : 0;
    pull_begin_ = is_timed ? pulled_ : 0;
  }
  return pulled_ != before;
}

int64_t Execution::rest_ns() const {
  if (step_ == schedule_.steps.size() || pulled_ == 0) return 0;
  const Step& step = schedule_.steps[step_];
  const size_t bytes = step.piece.count * width(step.piece);
  if (pull_begin_ == 0 || pulled_ <= pull_begin_ || pulled_ >= bytes) return 0;
  const int64_t so_far_ns = now_ns() - pull_begin_ns_, came = static_cast<int64_t>(pulled_ - pull_begin_);
  return so_far_ns * kFastBytes < came * 1'000 ? 0 : so_far_ns * static_cast<int64_t>(bytes - pulled_) / came;
}

/// Returns how many bytes of the message may be received. A step that trails a send overwrites the memory that the send
/// reads, so it must not receive more bytes than have been sent.
size_t Execution::may_pull(const Step& step) const {
  if (!step.trails || send_ > step.after) return SIZE_MAX;
  return std::max(pushed_, pulled_);
}

void Execution::take(const Step& step, std::span<const std::byte> bytes, size_t count) {
  const DType dtype = step.piece.wide ? accumulator_of(op_.dtype) : op_.dtype;
  const size_t first = pulled_ / width(step.piece);
  std::byte* target = at(step.piece) + first * accumulator_;
  if (step.take == Take::Accumulate) return accumulate(dtype, op_.reduce, target, bytes.data(), count);
  const std::byte* source = at(step.source) + first * width(step.source);
  const bool append = step.take == Take::Append;
  reduce_kernels().join(dtype, op_.reduce, target, append ? source : bytes.data(), append ? bytes.data() : source,
                        count);
}

void Execution::work(const Step& step) {
  std::byte* target = at(step.piece);
  const std::byte* source = at(step.source);
  const size_t count = step.source.count;
  switch (step.local) {
    case Local::None: return;
    case Local::Copy:
      if (target != source) std::memmove(target, source, count * element_);
      return;
    case Local::Scale: return scale(op_.dtype, op_.factor, target, source, count);
    case Local::Widen: return widen(op_.dtype, target, source, count);
    case Local::Accumulate: return accumulate(op_.dtype, op_.reduce, target, source, count);
    case Local::Narrow: return narrow(op_.dtype, op_.reduce, size_, target, source, count);
    case Local::Pack:
      return pack(op_.wire, source, step.residual.count > 0 ? at(step.residual) : nullptr, target, count);
    case Local::KeepLoss: return keep_loss(source, target, count);
    case Local::AddPacked: return add_packed(op_.wire, source, target, step.piece.count);
    case Local::Unpack:
      return unpack(op_.wire, source, op_.reduce == ReduceOp::Avg ? size_ : 1, target, step.piece.count);
  }
}

std::byte* Execution::at(const Piece& piece) const {
  switch (piece.region) {
    case Region::Input: return const_cast<std::byte*>(op_.input) + piece.offset;  // the input is only read
    case Region::Output: return op_.output + piece.offset;
    case Region::Residual: return reinterpret_cast<std::byte*>(op_.residual) + piece.offset;
    case Region::Scratch: break;
  }
  return scratch_ + piece.offset;
}

size_t Execution::width(const Piece& message) const { return message.wide ? accumulator_ : element_; }

size_t Execution::padded_bytes(const Piece& message) const { return padded(message.count * width(message)); }

void Execution::waiting_for(std::vector<int>& ranks) const {
  ranks.clear();
  const auto add = [&](int rank) {
    if (rank >= 0 && std::find(ranks.begin(), ranks.end(), rank) == ranks.end()) ranks.push_back(rank);
  };
  if (handshake_index_ < schedule_.handshake_targets.size()) add(schedule_.handshake_targets[handshake_index_]);
  for (size_t i = 0; i < heard_.size(); ++i) {
    const int peer = schedule_.handshake_sources[i];
    if (!heard_[i] && (!runs_ahead_ || pending_.from(peer) == PendingHandshakes::kPerPeer)) add(peer);
  }
  if (ranks.empty()) {
    if (send_ < schedule_.sends.size() && step_ >= schedule_.sends[send_].after) add(schedule_.sends[send_].to);
    if (step_ < schedule_.steps.size()) add(schedule_.steps[step_].from);
  }
  std::ranges::sort(ranks);
}

}  // namespace ringwise::coll
