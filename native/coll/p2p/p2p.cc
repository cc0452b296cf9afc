#include "coll/p2p/p2p.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>

#include "coll/failure/failure.h"

namespace ringwise::coll {

namespace {

// Messages up to this size (bytes) are sent in one piece: one system call, one packet.
constexpr size_t kSmall = 4096;

size_t padded(size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

size_t payload_bytes(const Signature& header) { return header.count * byte_size(static_cast<DType>(header.dtype)); }

bool matches(const Op& receive, const Signature& header) {
  return receive.tag == header.tag && (receive.root < 0 || receive.root == header.source);
}

/// Writes a message to `out`: header, payload, and zeros up to `total` bytes.
void assemble(const PointToPoint::Pending& send, std::byte* out, size_t total) {
  const size_t payload = payload_bytes(send.signature);
  std::memcpy(out, &send.signature, sizeof(Signature));
  if (payload > 0) std::memcpy(out + sizeof(Signature), send.op.input, payload);
  std::memset(out + sizeof(Signature) + payload, 0, total - sizeof(Signature) - payload);
}

}  // namespace

PointToPoint::PointToPoint(int rank, Links links, OnEnd on_end)
    : rank_(rank), on_end_(std::move(on_end)), peers_(links.size()) {
  for (size_t peer = 0; peer < links.size(); ++peer) peers_[peer].link = std::move(links[peer]);
}

void PointToPoint::post(const Op& op, bool inline_run) {
  if (spare_.empty()) spare_.emplace_back();
  pending_.splice(pending_.end(), spare_, spare_.begin());
  Pending& pending = pending_.back();
  pending = {
      op, signature_of(op, rank_, static_cast<int>(peers_.size())), inline_run, op.root, 0, std::prev(pending_.end())};
  if (op.verb == Verb::Send) {
    peers_[op.root].sends.push_back(&pending);
  } else if (!take_early(pending)) {
    posted_.push_back(&pending);
    ++(op.root < 0 ? posted_for_any_ : peers_[op.root].posted);
  }
}

bool PointToPoint::advance() {
  bool moved = false;
  const int size = static_cast<int>(peers_.size());
  for (int i = 0, rank = first_; i < size; ++i, rank = rank + 1 < size ? rank + 1 : 0) {
    Peer& peer = peers_[rank];
    if (!peer.link) continue;
    if (!peer.sends.empty()) moved |= push(peer);
    if (peer.receiving || peer.posted > 0 || posted_for_any_ > 0) moved |= pull(rank);
  }
  return moved;
}

bool PointToPoint::push(Peer& peer) {
  bool moved = false;
  while (!peer.sends.empty()) {
    Pending& send = *peer.sends.front();
    const size_t payload = payload_bytes(send.signature);
    const size_t total = sizeof(Signature) + padded(payload);
    size_t sent;
    if (total <= kSmall) {
      std::byte whole[kSmall];
      assemble(send, whole, total);
      sent = peer.link->send(whole + send.moved, total - send.moved);
    } else if (send.moved < sizeof(Signature)) {
      const auto* header = reinterpret_cast<const std::byte*>(&send.signature);
      sent = peer.link->send(header + send.moved, sizeof(Signature) - send.moved);
    } else if (send.moved < sizeof(Signature) + payload) {
      const size_t offset = send.moved - sizeof(Signature);
      sent = peer.link->send(send.op.input + offset, payload - offset);
    } else {
      constexpr std::byte kZeros[kAlign] = {};
      sent = peer.link->send(kZeros, total - send.moved);
    }
    if (sent == 0) return moved;
    moved = true;
    send.moved += sent;
    if (send.moved < total) return true;  // receive before sending more
    peer.sends.pop_front();
    finish(send);
  }
  return moved;
}

/// Receives the next header from the link to `rank`, then the part of its message that has arrived.
bool PointToPoint::pull(int rank) {
  Peer& peer = peers_[rank];
  bool moved = false;
  if (!peer.receiving) {
    const auto bytes = peer.link->peek(sizeof(Signature));
    if (bytes.size() < sizeof(Signature)) return false;
    Signature header;
    std::memcpy(&header, bytes.data(), sizeof header);
    open(rank, header);
    peer.link->consume(sizeof header);
    moved = true;
  }
  const size_t payload = payload_bytes(peer.header);
  if (peer.taken < payload) {
    std::byte* target = peer.receive != nullptr ? peer.receive->op.output : peer.early->data.get();
    const size_t received = peer.link->receive(target + peer.taken, payload - peer.taken);
    peer.taken += received;
    moved |= received > 0;
  }
  while (peer.taken >= payload && peer.taken < padded(payload)) {
    const auto bytes = peer.link->peek(padded(payload) - peer.taken);
    if (bytes.empty()) return moved;
    peer.taken += bytes.size();
    peer.link->consume(bytes.size());
  }
  if (peer.taken < payload) return moved;
  close(rank);
  return true;
}

/// Selects the target of the payload after `header`: the buffer of a posted receive, or new memory as an early message.
void PointToPoint::open(int rank, const Signature& header) {
  Peer& peer = peers_[rank];
  if (!is_message(header, rank, rank_)) {
    throw Failure(FailureCode::PeerLost, rank_, {rank},
                  "lost rank " + std::to_string(rank) + " (it sent something that is no ringwise message)");
  }
  Pending* receive = take_posted(header);
  Early* early = nullptr;
  if (receive == nullptr) {
    Early message{header, nullptr, false};
    try {
      message.data = std::make_unique_for_overwrite<std::byte[]>(payload_bytes(header));
    } catch (const std::bad_alloc&) {
      throw Failure(FailureCode::System, rank_, {rank_},
                    "no memory on rank " + std::to_string(rank_) + " for " + describe(header, rank) +
                        ", which came before its receive was posted");
    }
    early_.push_back(std::move(message));
    early = &early_.back();
  }
  peer.receiving = true;
  peer.header = header;
  peer.taken = 0;
  peer.receive = receive;
  peer.early = early;
}

/// Ends the message from `rank`, which is complete.
void PointToPoint::close(int rank) {
  Peer& peer = peers_[rank];
  peer.receiving = false;
  if (peer.receive == nullptr) {
    peer.early->whole = true;
  } else {
    finish(*peer.receive);
  }
}

/// Returns the posted receive to which `header` belongs and removes it from the list; null if there is none.
PointToPoint::Pending* PointToPoint::take_posted(const Signature& header) {
  const auto found =
      std::find_if(posted_.begin(), posted_.end(), [&](Pending* one) { return matches(one->op, header); });
  if (found == posted_.end()) return nullptr;
  Pending& receive = **found;
  agree(receive, header);
  if (receive.op.root < 0) {
    --posted_for_any_;
    first_ = header.source + 1 < static_cast<int>(peers_.size()) ? header.source + 1 : 0;
  } else {
    --peers_[receive.op.root].posted;
  }
  receive.peer = header.source;
  posted_.erase(found);
  return &receive;
}

/// Gives a new receive the message that arrived earlier, as far as it has arrived. Returns false if there is none.
bool PointToPoint::take_early(Pending& receive) {
  const auto found =
      std::find_if(early_.begin(), early_.end(), [&](const Early& one) { return matches(receive.op, one.header); });
  if (found == early_.end()) return false;
  agree(receive, found->header);
  receive.peer = found->header.source;
  Peer& peer = peers_[receive.peer];
  const size_t payload = payload_bytes(found->header);
  const size_t arrived = found->whole ? payload : std::min(peer.taken, payload);
  if (arrived > 0) std::memcpy(receive.op.output, found->data.get(), arrived);
  if (!found->whole) {
    peer.receive = &receive;  // the rest is received directly into its buffer
    peer.early = nullptr;
  }
  const bool whole = found->whole;
  early_.erase(found);
  if (whole) finish(receive);
  return true;
}

void PointToPoint::agree(const Pending& receive, const Signature& header) const {
  Signature expected = receive.signature;
  expected.source = header.source;
  expected.seq = header.seq;  // counted per pair and direction, over all tags
  if (!same(expected, header)) throw disagreement(rank_, receive.signature, header.source, header);
}

void PointToPoint::finish(Pending& pending) {
  on_end_(pending);
  spare_.splice(spare_.end(), pending_, pending.self);
}

void PointToPoint::waiting_for(const Pending& pending, std::vector<int>& ranks) const {
  ranks.clear();
  if (pending.peer >= 0) return ranks.push_back(pending.peer);
  for (int peer = 0; peer < static_cast<int>(peers_.size()); ++peer) {
    if (peer != rank_) ranks.push_back(peer);
  }
}

void PointToPoint::drain() {
  std::vector<std::byte> nowhere(64 * 1024);
  for (Peer& peer : peers_) {
    try {
      // Limited, because the other side may keep sending.
      for (int i = 0; peer.link && i < 1000 && peer.link->receive(nowhere.data(), nowhere.size()) > 0; ++i) continue;
    } catch (const Failure&) {
      continue;  // it is gone already
    }
  }
}

void PointToPoint::clear() {
  for (Peer& peer : peers_) {
    peer.sends.clear();
    peer.posted = 0;
    peer.receiving = false;
  }
  posted_.clear();
  posted_for_any_ = 0;
  early_.clear();
  spare_.splice(spare_.end(), pending_);
}

}  // namespace ringwise::coll
