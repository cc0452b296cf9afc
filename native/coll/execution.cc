#include "coll/execution.h"

#include <algorithm>
#include <cstring>

#include "coll/failure.h"
#include "coll/reduce.h"

namespace ringwise::coll {

namespace {

constexpr std::byte kZeros[kAlign] = {};

size_t padded(size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

}  // namespace

void Execution::begin(const Op& op, int rank, int size) {
  op_ = op;
  rank_ = rank;
  size_ = size;
  element_ = byte_size(op.dtype);
  signature_ = signature_of(op, rank);
  plan(op, rank, size, schedule_);
  if (scratch_memory_.size() < schedule_.scratch_bytes + kAlign) scratch_memory_.resize(schedule_.scratch_bytes + kAlign);
  const auto address = reinterpret_cast<uintptr_t>(scratch_memory_.data());
  scratch_ = scratch_memory_.data() + (kAlign - address % kAlign) % kAlign;
  greet_index_ = greet_offset_ = heard_count_ = step_ = pushed_ = pulled_ = 0;
  heard_.assign(schedule_.greeted_by.size(), 0);
}

bool Execution::done() const {
  return step_ == schedule_.steps.size() && greet_index_ == schedule_.greets.size() && heard_all();
}

bool Execution::advance(Links& links) {
  bool moved = greet(links);
  moved |= hear_greetings(links);
  while (step_ < schedule_.steps.size() && run_step(links)) moved = true;
  return moved;
}

bool Execution::greet(Links& links) {
  bool moved = false;
  while (greet_index_ < schedule_.greets.size()) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&signature_);
    Link& link = *links[schedule_.greets[greet_index_]];
    const size_t sent = link.send(bytes + greet_offset_, sizeof(Signature) - greet_offset_);
    if (sent == 0) break;
    moved = true;
    greet_offset_ += sent;
    if (greet_offset_ == sizeof(Signature)) {
      greet_offset_ = 0;
      ++greet_index_;
    }
  }
  return moved;
}

bool Execution::hear_greetings(Links& links) {
  if (heard_all()) return false;
  bool moved = false;
  for (size_t i = 0; i < schedule_.greeted_by.size(); ++i) {
    if (heard_[i]) continue;
    const int peer = schedule_.greeted_by[i];
    const auto bytes = links[peer]->peek(sizeof(Signature));
    if (bytes.size() < sizeof(Signature)) continue;
    Signature theirs;
    std::memcpy(&theirs, bytes.data(), sizeof(Signature));
    if (!same(theirs, signature_)) throw disagreement(rank_, signature_, peer, theirs);
    links[peer]->consume(sizeof(Signature));
    heard_[i] = 1;
    ++heard_count_;
    moved = true;
  }
  return moved;
}

/// True if the current step moved anything or ended.
bool Execution::run_step(Links& links) {
  const Step& step = schedule_.steps[step_];
  if (step.local != Local::None) {
    if (step.target.place == Place::Output && !heard_all()) return false;
    work(step);
    ++step_;
    return true;
  }
  bool moved = false;
  if (step.to >= 0 && greet_index_ == schedule_.greets.size()) moved |= push(step, *links[step.to]);
  if (step.from >= 0 && heard_all()) moved |= pull(step, *links[step.from]);
  const bool pushed_all = step.to < 0 || pushed_ == padded(step.outgoing.count * element_);
  const bool pulled_all = step.from < 0 || pulled_ == padded(step.incoming.count * element_);
  if (pushed_all && pulled_all) {
    pushed_ = pulled_ = 0;
    ++step_;
    return true;
  }
  return moved;
}

bool Execution::push(const Step& step, Link& link) {
  const size_t payload = step.outgoing.count * element_;
  const size_t before = pushed_;
  while (pushed_ < payload) {
    const size_t sent = link.send(at(step.outgoing) + pushed_, payload - pushed_);
    if (sent == 0) return pushed_ != before;
    pushed_ += sent;
    if (step.from >= 0) return true;  // take turns with the incoming message
  }
  while (pushed_ < padded(payload)) {
    const size_t sent = link.send(kZeros, padded(payload) - pushed_);
    if (sent == 0) break;
    pushed_ += sent;
  }
  return pushed_ != before;
}

bool Execution::pull(const Step& step, Link& link) {
  const size_t payload = step.incoming.count * element_;
  const size_t before = pulled_;
  if (pulled_ < payload && step.take == Take::Store) {
    pulled_ += link.receive(at(step.incoming) + pulled_, payload - pulled_);
  } else if (pulled_ < payload) {
    const auto bytes = link.peek(payload - pulled_);
    const size_t count = bytes.size() / element_;
    const size_t accumulator = byte_size(accumulator_of(op_.dtype));
    if (count > 0) {
      accumulate(op_.dtype, op_.reduce, at(step.incoming) + pulled_ / element_ * accumulator, bytes.data(), count);
      link.consume(count * element_);
      pulled_ += count * element_;
    }
  }
  while (pulled_ >= payload && pulled_ < padded(payload)) {
    const auto bytes = link.peek(padded(payload) - pulled_);
    if (bytes.empty()) break;
    pulled_ += bytes.size();
    link.consume(bytes.size());
  }
  return pulled_ != before;
}

void Execution::work(const Step& step) {
  std::byte* target = at(step.target);
  const std::byte* source = at(step.source);
  const size_t count = step.source.count;
  switch (step.local) {
    case Local::None:
      return;
    case Local::Copy:
      if (target != source) std::memmove(target, source, count * element_);
      return;
    case Local::Scale:
      return scale(op_.dtype, op_.factor, target, source, count);
    case Local::Widen:
      return widen(op_.dtype, target, source, count);
    case Local::Accumulate:
      return accumulate(op_.dtype, op_.reduce, target, source, count);
    case Local::Narrow:
      return narrow(op_.dtype, op_.reduce, size_, target, source, count);
  }
}

std::byte* Execution::at(const Piece& piece) const {
  switch (piece.place) {
    case Place::Input:
      return const_cast<std::byte*>(op_.input) + piece.offset;  // only ever a source
    case Place::Output:
      return op_.output + piece.offset;
    case Place::Scratch:
      break;
  }
  return scratch_ + piece.offset;
}

void Execution::waiting_for(std::vector<int>& ranks) const {
  ranks.clear();
  const auto add = [&](int rank) {
    if (rank >= 0 && std::find(ranks.begin(), ranks.end(), rank) == ranks.end()) ranks.push_back(rank);
  };
  if (greet_index_ < schedule_.greets.size()) add(schedule_.greets[greet_index_]);
  for (size_t i = 0; i < heard_.size(); ++i) {
    if (!heard_[i]) add(schedule_.greeted_by[i]);
  }
  if (step_ < schedule_.steps.size() && ranks.empty()) {
    const Step& step = schedule_.steps[step_];
    if (step.to >= 0 && pushed_ < padded(step.outgoing.count * element_)) add(step.to);
    if (step.from >= 0 && pulled_ < padded(step.incoming.count * element_)) add(step.from);
  }
  std::sort(ranks.begin(), ranks.end());
}

}  // namespace ringwise::coll
