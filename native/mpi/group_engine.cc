// The functions of MpiGroup that the holder of the engine runs: receive messages, advance operations, and decide the
// root cause of failures.
#include <algorithm>
#include <string>
#include <utility>

#include "base/time/clock.h"
#include "mpi/group.h"

namespace ringwise::mpi {

using coll::Failure;
using coll::FailureCode;
using coll::Verb;

namespace {

// Most time that a rank waits for the root cause, the arbiter's participation query included.
constexpr int64_t kRootCausePatience = 2000 * kMillisecond;
constexpr int64_t kParticipationPatience = 500 * kMillisecond;  // most time of that query

/// Returns text such as "rank 2" or "ranks 2, 5".
std::string rank_list(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i) text.append(i == 0 ? "" : ", ").append(std::to_string(ranks[i]));
  return text;
}

/// Returns the failure of needing a rank that has said goodbye: it has closed the group, or destroyed it while idle.
Failure lost(int rank, int peer) {
  return {FailureCode::PeerLost, rank, {peer}, "lost rank " + std::to_string(peer) + " (it has closed the group)"};
}

}  // namespace

/// Polls once; returns true if anything moved.
bool MpiGroup::poll() {
  bool moved = false;
  try {
    moved = channel_->outbox.advance() | take_requests() | listen();
    const int64_t now = now_ns();
    if (participation_) end_participation_query(now);
    if (reported_ && !participation_ && !poison_ && now > root_cause_deadline_ns_) announce_root_cause(*reported_);
    if (poison_) {
      end_everything();
    } else if (!reported_) {
      // After a failure, operations do not advance any more.
      moved |= channel_->mailbox->advance();
      moved |= advance_collective();
      if (!moved) check_losses();
      if (!moved && !reported_) check_deadlines(now);
    }
  } catch (const Failure& failure) {
    moved = true;
    try {
      report(failure);
    } catch (const Failure&) {
      poison(failure);  // MPI itself fails, so the other ranks cannot be told
    }
  }
  return moved;
}

bool MpiGroup::take_requests() {
  if (!requests_.has_news()) return false;
  requests_.see();
  const std::deque<coll::Op> requests = requests_.take_all();
  const std::optional<Failure> aborted = requests_.take_abort();
  for (const coll::Op& op : requests) {
    if (!op.is_point_to_point()) {
      called_ = op.seq + 1;
      queued_.push_back(op);
    } else if (poison_ || reported_) {
      queued_.push_back(op);  // never begins
    } else {
      channel_->mailbox->post(op);
    }
  }
  if (aborted) report(*aborted);
  return !requests.empty();
}

bool MpiGroup::listen() {
  bool heard_any = false;
  while (const auto heard = channel_->control->hear()) {
    heard_any = true;
    const auto from = static_cast<size_t>(heard->from);
    switch (heard->notice) {
      case Notice::Left: channel_->note_goodbye(*heard); break;
      case Notice::Report:
        if (poison_)
          // the sender had not received the root cause yet
          channel_->control->tell(heard->from, Notice::RootCause, 0, poison_.get());
        else if (!participation_)
          decide(heard->failure, heard->number);
        break;
      case Notice::RootCause:
        if (!poison_) poison(heard->failure);
        break;
      case Notice::Question: channel_->control->tell(heard->from, Notice::Answer, called_); break;
      case Notice::Answer:
        if (participation_) participation_->called[from] = heard->number;
        break;
    }
  }
  return heard_any;
}

bool MpiGroup::advance_collective() {
  bool moved = false;
  if (!running_) {
    if (queued_.empty()) return false;
    running_ = std::make_unique<Running>(queued_.front(), channel_->comm, rank_, size_, channel_->outbox);
    queued_.pop_front();
    moved = true;
  }
  Running& running = *running_;
  moved |= running.agreement.advance();
  if (!running.agreement.done()) return moved;
  if (!running.transfer) {
    if (running.op.verb == Verb::AllToAll && !compare_parts()) return moved;
    running.transfer.emplace(channel_->comm, rank_, size_).begin(running.op);
    moved = true;
  }
  moved |= running.transfer->advance();
  if (running.transfer->done()) {
    const uint64_t id = running.op.id;
    running_.reset();
    end(id, nullptr);
  }
  return moved;
}

/// Compares the lengths of the parts of an allToAll: each rank must send the length that the receiver expects. Returns
/// true when all ranks agree.
bool MpiGroup::compare_parts() {
  Running& running = *running_;
  const coll::Op& op = running.op;
  if (running.sent.empty()) {
    for (int peer = 0; peer < size_; ++peer) running.sent.push_back(op.counts != nullptr ? op.counts[peer] : op.count);
    running.announced.resize(static_cast<size_t>(size_));
    check(MPI_Ialltoall(running.sent.data(), 1, MPI_UINT64_T, running.announced.data(), 1, MPI_UINT64_T, channel_->comm,
                        running.comparison.slot()),
          "MPI_Ialltoall");
  }
  if (!running.confirmation) {
    if (!running.comparison.test()) return false;
    const coll::Signature own = coll::signature_of(op, rank_, size_);
    for (int peer = 0; peer < size_; ++peer) {
      const coll::Signature mine = coll::handshake_from(own, op, peer);
      coll::Signature theirs = mine;
      theirs.count = running.announced[static_cast<size_t>(peer)];
      if (mine.count != theirs.count) throw coll::disagreement(rank_, mine, peer, theirs);
    }
    // A rank that disagrees throws before this second agreement, so the other ranks cannot complete it: they wait until
    // they get the root cause.
    running.confirmation.emplace(own, channel_->comm, rank_, size_, channel_->outbox);
  }
  running.confirmation->advance();
  return running.confirmation->done();
}

/// Reports a failure if a pending operation needs a rank that has left without it. Called when nothing moves any more.
void MpiGroup::check_losses() {
  for (const Mailbox::Pending& pending : channel_->mailbox->pending()) {
    if (pending.is_moving) continue;
    if (pending.peer >= 0) {
      if (channel_->is_gone(pending.peer)) return report(lost(rank_, pending.peer));
      continue;
    }
    int here = 0;
    for (int peer = 0; peer < size_; ++peer) here += peer != rank_ && !channel_->is_gone(peer) ? 1 : 0;
    if (here == 0 && size_ > 1) return report(lost(rank_, rank_ == 0 ? 1 : 0));
  }
  if (!running_ || running_->agreement.done()) return;
  for (int peer = 0; peer < size_; ++peer) {
    if (channel_->has_left(peer) && channel_->left[static_cast<size_t>(peer)]->collectives <= running_->op.seq)
      return report(lost(rank_, peer));
  }
}

void MpiGroup::check_deadlines(int64_t now) {
  const auto late = [&](const coll::Op& op, std::vector<int> peers) -> Failure {
    const std::string within = " within " + std::to_string(op.timeout_ns / kMillisecond) + " ms";
    const std::string who = peers.empty() ? "" : " from " + rank_list(peers);
    return {FailureCode::Timeout, rank_, std::move(peers), "no answer" + who + within};
  };
  for (const Mailbox::Pending& pending : channel_->mailbox->pending()) {
    if (now < pending.op.deadline_ns) continue;
    std::vector<int> peers;
    if (pending.peer >= 0)
      peers.push_back(pending.peer);
    else
      for (int peer = 0; peer < size_; ++peer)
        if (peer != rank_) peers.push_back(peer);
    return report(late(pending.op, std::move(peers)));
  }
  if (running_ && now >= running_->op.deadline_ns) report(late(running_->op, {}), running_->op.seq + 1);
}

int MpiGroup::arbiter() const {
  for (int rank = 0; rank < size_; ++rank) {
    if (!channel_->has_left(rank)) return rank;
  }
  return rank_;
}

/// Reports a failure that this rank has noticed to the arbiter. This rank's operations stop until the root cause
/// arrives. `seq_plus_1` is 1 + the seq of a collective that is late, otherwise 0.
void MpiGroup::report(Failure failure, uint64_t seq_plus_1) {
  if (poison_ || reported_) return;
  failure.origin = failure.origin < 0 ? rank_ : failure.origin;
  reported_ = failure;
  root_cause_deadline_ns_ = now_ns() + kRootCausePatience;
  if (arbiter() == rank_)
    decide(failure, seq_plus_1);
  else
    channel_->control->tell(arbiter(), Notice::Report, seq_plus_1, &failure);
}

/// Runs on the arbiter: announces the first reported failure as the root cause. If it is the timeout of a collective,
/// first asks which ranks have called that.
void MpiGroup::decide(const Failure& failure, uint64_t seq_plus_1) {
  if (seq_plus_1 == 0) return announce_root_cause(failure);
  participation_ =
      Participation{failure, seq_plus_1 - 1, std::vector<std::optional<uint64_t>>(static_cast<size_t>(size_)),
                    now_ns() + kParticipationPatience};
  participation_->called[static_cast<size_t>(rank_)] = called_;
  for (int peer = 0; peer < size_; ++peer) {
    const auto index = static_cast<size_t>(peer);
    if (channel_->has_left(peer))
      participation_->called[index] = channel_->left[index]->collectives;
    else if (peer != rank_)
      channel_->control->tell(peer, Notice::Question);
  }
}

/// Announces the root cause once all ranks have answered the query, or its time is over. Names the ranks that have not
/// answered or not called the collective.
void MpiGroup::end_participation_query(int64_t now) {
  const auto& called = participation_->called;
  const bool have_all_answered =
      std::all_of(called.begin(), called.end(), [](const auto& one) { return one.has_value(); });
  if (!have_all_answered && now < participation_->deadline_ns) return;
  std::vector<int> silent;
  std::vector<int> absent;
  for (int rank = 0; rank < size_; ++rank) {
    const auto& one = called[static_cast<size_t>(rank)];
    if (!one)
      silent.push_back(rank);
    else if (*one <= participation_->seq)
      absent.push_back(rank);
  }
  Failure failure = participation_->failure;
  const std::string within = failure.text.substr(std::min(failure.text.size(), failure.text.find(" within ")));
  if (!silent.empty())
    failure.text = "no answer from " + rank_list(silent) + within;
  else if (!absent.empty())
    failure.text = rank_list(absent) + " did not call it" + within;
  failure.peers = silent;
  failure.peers.insert(failure.peers.end(), absent.begin(), absent.end());
  std::ranges::sort(failure.peers);
  participation_.reset();
  announce_root_cause(failure);
}

void MpiGroup::announce_root_cause(const Failure& failure) {
  channel_->control->tell_others(Notice::RootCause, 0, &failure);
  poison(failure);
}

void MpiGroup::poison(const Failure& failure) {
  poison_ = std::make_shared<const Failure>(failure);
  participation_.reset();
  reported_.reset();
  end_everything();
}

/// Ends all pending operations with the root cause. MPI may go on using the memory of those that it has begun.
void MpiGroup::end_everything() {
  for (; !queued_.empty(); queued_.pop_front()) end(queued_.front().id, poison_);
  if (running_) {
    const uint64_t id = running_->op.id;
    const bool is_lent = let_go_of_running();
    end(id, poison_, -1, is_lent);
  }
  for (const auto& [op, is_moving] : channel_->mailbox->clear()) end(op.id, poison_, -1, is_moving);
}

/// Drops the running collective. Returns true if MPI may go on using the operation's memory. Objects of ours that MPI
/// may go on using are never freed.
bool MpiGroup::let_go_of_running() {
  if (!running_) return false;
  const bool is_lent = running_->transfer.has_value();
  const bool is_compared = running_->comparison.is_active();
  if (is_lent) running_->transfer->abandon();
  if (is_compared) running_->comparison.abandon();
  if (is_lent || is_compared) (void)running_.release();
  running_.reset();
  return is_lent;
}

}  // namespace ringwise::mpi
