#include "mpi/channel/channel.h"

#include <list>
#include <mutex>
#include <thread>
#include <utility>

#include "base/time/clock.h"
#include "coll/failure/failure.h"
#include "mpi/library.h"

namespace ringwise::mpi {

namespace {

std::mutex mutex;
/// Returns the channels of groups that this rank has left. Access under `mutex`. The list is never destroyed, because
/// MPI may use the channels until the process ends.
std::list<std::unique_ptr<Channel>>& retired() {
  static auto* const channels = new std::list<std::unique_ptr<Channel>>;
  return *channels;
}

/// Moves the messages of a retired channel. Returns whether no message can be in its communicator any more.
bool is_empty(Channel& channel) try {
  channel.outbox.advance();
  channel.mailbox->advance();  // receives late messages, so that their senders can finish
  while (const auto heard = channel.control->hear()) {
    if (heard->notice == Notice::Left) channel.note_goodbye(*heard);
  }
  bool is_empty = channel.outbox.is_empty();
  for (int peer = 0; peer < channel.size; ++peer) is_empty &= peer == channel.rank || channel.is_gone(peer);
  return is_empty;
} catch (const coll::Failure&) {
  return false;  // MPI has failed; the communicator is never freed
}

}  // namespace

Channel::Channel(MPI_Comm own_comm, int own_rank, int own_size, Mailbox::OnEnd on_end)
    : rank(own_rank), size(own_size), comm(own_comm), left(static_cast<size_t>(own_size)) {
  check(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  outbox.open(comm);
  control.emplace(comm, rank, size, outbox);
  mailbox.emplace(comm, rank, size, outbox, std::move(on_end));
}

void Channel::say_goodbye(uint64_t collectives) {
  for (int peer = 0; peer < size; ++peer) {
    if (peer != rank) control->tell_goodbye(peer, collectives, mailbox->sent_to(peer));
  }
  const int64_t deadline = now_ns() + 1000 * kMillisecond;
  for (; !outbox.is_empty() && now_ns() < deadline; std::this_thread::yield()) {
    outbox.advance();
    mailbox->advance();  // other ranks may wait here too until their messages are received
  }
}

void retire(std::unique_ptr<Channel> channel) {
  const std::lock_guard lock(mutex);
  retired().push_back(std::move(channel));
}

void tend_retired() {
  const std::unique_lock lock(mutex, std::try_to_lock);
  if (!lock) return;
  retired().remove_if([](const std::unique_ptr<Channel>& channel) {
    if (!is_empty(*channel)) return false;
    MPI_Comm comm = channel->comm;
    channel->mailbox.reset();
    channel->control.reset();
    MPI_Comm_free(&comm);
    return true;
  });
}

void forget_retired() {
  const int64_t deadline = now_ns() + 1000 * kMillisecond;
  const auto is_any = [] {
    const std::lock_guard lock(mutex);
    return !retired().empty();
  };
  for (; is_any() && now_ns() < deadline; std::this_thread::yield()) tend_retired();
  const std::lock_guard lock(mutex);
  retired().clear();
}

}  // namespace ringwise::mpi
