#include "mpi/p2p/mailbox.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "mpi/types.h"

namespace ringwise::mpi {

using coll::Verb;

namespace {

/// Returns the tag of a long message's payload. Several long messages of one pair may be in flight, so each has its own
/// tag. MPI guarantees tags up to 32767.
int payload_tag(uint64_t message) { return kPayloadTag + static_cast<int>(message % 32'000); }

size_t bytes_of(const coll::Op& op) { return op.count * byte_size(op.dtype); }

}  // namespace

Mailbox::Mailbox(MPI_Comm comm, int rank, int size, Outbox& outbox, OnEnd on_end)
    : comm_(comm),
      rank_(rank),
      size_(size),
      outbox_(outbox),
      on_end_(std::move(on_end)),
      sent_(static_cast<size_t>(size)),
      come_(static_cast<size_t>(size)),
      incoming_(sizeof(Envelope) + kShort) {
  listen();
  check(MPI_Irecv(&ready_message_, sizeof ready_message_, MPI_BYTE, MPI_ANY_SOURCE, kReadyTag, comm_, ready_.slot()),
        "MPI_Irecv");
}

Mailbox::~Mailbox() { clear(); }

std::vector<std::pair<coll::Op, bool>> Mailbox::clear() {
  std::vector<std::pair<coll::Op, bool>> cleared;
  for (Pending& pending : pending_) {
    cleared.emplace_back(pending.op, pending.is_moving);
    if (pending.moving.is_active()) pending.moving.abandon();
  }
  pending_.clear();
  early_.clear();
  return cleared;
}

void Mailbox::listen() {
  const int size = static_cast<int>(incoming_.size());
  check(MPI_Irecv(incoming_.data(), size, MPI_BYTE, MPI_ANY_SOURCE, kEnvelopeTag, comm_, envelope_.slot()),
        "MPI_Irecv");
}

void Mailbox::post(const coll::Op& op) {
  const auto pending = pending_.emplace(pending_.end());
  pending->op = op;
  pending->peer = op.root;
  if (op.verb == Verb::Recv) {
    const auto early =
        std::find_if(early_.begin(), early_.end(), [&](const Arrived& one) { return fits(*pending, one); });
    if (early == early_.end()) return;
    const Arrived taken = std::move(*early);
    early_.erase(early);
    match(pending, taken);
    return;
  }
  const bool is_short = bytes_of(op) <= kShort;
  const Envelope envelope{coll::signature_of(op, rank_, size_), is_short ? 0 : ++messages_};
  std::string bytes(reinterpret_cast<const char*>(&envelope), sizeof envelope);
  if (is_short) bytes.append(reinterpret_cast<const char*>(op.input), bytes_of(op));
  outbox_.send(op.root, kEnvelopeTag, std::move(bytes));
  ++sent_[static_cast<size_t>(op.root)];
  pending->message = envelope.message;
  if (is_short) end(pending, -1);
}

bool Mailbox::advance() {
  bool moved = false;
  while (take_envelope()) moved = true;
  while (take_ready()) moved = true;
  for (auto pending = pending_.begin(); pending != pending_.end();) {
    if (!pending->is_moving || !pending->moving.test()) {
      ++pending;
      continue;
    }
    moved = true;
    pending->moved += std::min(max_count(pending->op.dtype), pending->op.count - pending->moved);
    if (pending->moved < pending->op.count)
      move_piece(*pending);
    else
      pending = end(pending, pending->op.verb == Verb::Recv ? pending->peer : -1);
  }
  return moved;
}

bool Mailbox::take_envelope() {
  MPI_Status status;
  if (!envelope_.test(&status)) return false;
  int length = 0;
  check(MPI_Get_count(&status, MPI_BYTE, &length), "MPI_Get_count");
  Arrived early{};
  early.from = status.MPI_SOURCE;
  ++come_[static_cast<size_t>(early.from)];
  std::memcpy(&early.envelope, incoming_.data(), sizeof early.envelope);
  early.inside.assign(incoming_.data() + sizeof early.envelope, incoming_.data() + length);
  listen();
  const auto receive =
      std::find_if(pending_.begin(), pending_.end(), [&](const Pending& one) { return fits(one, early); });
  if (receive != pending_.end())
    match(receive, early);
  else
    early_.push_back(std::move(early));
  return true;
}

bool Mailbox::take_ready() {
  MPI_Status status;
  if (!ready_.test(&status)) return false;
  const uint64_t message = ready_message_;
  check(MPI_Irecv(&ready_message_, sizeof ready_message_, MPI_BYTE, MPI_ANY_SOURCE, kReadyTag, comm_, ready_.slot()),
        "MPI_Irecv");
  const auto send = std::find_if(pending_.begin(), pending_.end(), [&](const Pending& one) {
    return one.message == message && one.op.verb == Verb::Send;
  });
  if (send != pending_.end()) begin_move(*send, message);
  return true;
}

bool Mailbox::fits(const Pending& receive, const Arrived& early) const {
  const coll::Op& op = receive.op;
  return op.verb == Verb::Recv && !receive.is_moving && op.tag == early.envelope.signature.tag &&
         (op.root < 0 || op.root == early.from);
}

void Mailbox::match(std::list<Pending>::iterator receive, const Arrived& early) {
  coll::Signature mine = coll::signature_of(receive->op, rank_, size_);
  const coll::Signature& theirs = early.envelope.signature;
  // A receive takes the message's number from the message, and a receive from any rank also its sender.
  mine.seq = theirs.seq;
  coll::Signature likewise = mine;
  likewise.source = theirs.source;
  if (!coll::same(likewise, theirs)) throw coll::disagreement(rank_, mine, early.from, theirs);
  receive->peer = early.from;
  if (early.envelope.message == 0) {
    if (!early.inside.empty()) std::memcpy(receive->op.output, early.inside.data(), early.inside.size());
    end(receive, early.from);
    return;
  }
  begin_move(*receive, early.envelope.message);
  const uint64_t message = early.envelope.message;
  outbox_.send(early.from, kReadyTag, std::string(reinterpret_cast<const char*>(&message), sizeof message));
}

void Mailbox::begin_move(Pending& pending, uint64_t message) {
  pending.is_moving = true;
  pending.message = message;
  move_piece(pending);
}

void Mailbox::move_piece(Pending& pending) {
  const coll::Op& op = pending.op;
  const int count = static_cast<int>(std::min(max_count(op.dtype), op.count - pending.moved));
  const size_t offset = pending.moved * byte_size(op.dtype);
  const int tag = payload_tag(pending.message);
  if (op.verb == Verb::Send)
    check(MPI_Isend(op.input + offset, count, copy_type_of(op.dtype), pending.peer, tag, comm_, pending.moving.slot()),
          "MPI_Isend");
  else
    check(MPI_Irecv(op.output + offset, count, copy_type_of(op.dtype), pending.peer, tag, comm_, pending.moving.slot()),
          "MPI_Irecv");
}

std::list<Mailbox::Pending>::iterator Mailbox::end(std::list<Pending>::iterator pending, int source) {
  const coll::Op op = pending->op;
  const auto next = pending_.erase(pending);
  on_end_(op, source);
  return next;
}

}  // namespace ringwise::mpi
