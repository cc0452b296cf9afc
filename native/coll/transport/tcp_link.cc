#include "coll/transport/tcp_link.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "base/os/socket.h"
#include "coll/failure/failure.h"

namespace ringwise::coll {

namespace {
// Room for two portions of Execution::push. With room for one, two ranks that send and receive at the same time can
// fall into step: each waits while the other one works, and 2 MiB take twice as long.
constexpr size_t kStaging = 512 * 1024;

Failure lost(int rank, int peer, const char* why) {
  return {FailureCode::PeerLost, rank, {peer}, "lost rank " + std::to_string(peer) + " (tcp: " + why + ")"};
}
}  // namespace

TcpLink::TcpLink(Fd socket, int rank, int peer)
    : socket_(std::move(socket)),
      rank_(rank),
      peer_(peer),
      staging_(std::make_unique_for_overwrite<std::byte[]>(kStaging)) {}

size_t TcpLink::send(const std::byte* data, size_t bytes) {
  const Part part(data, bytes);
  return send({&part, 1});
}

size_t TcpLink::send(std::span<const Part> parts) {
  iovec vectors[kParts];
  msghdr message{};
  message.msg_iov = vectors;
  for (const Part& part : parts)
    if (!part.empty()) vectors[message.msg_iovlen++] = {const_cast<std::byte*>(part.data()), part.size()};
  const ssize_t sent = ::sendmsg(socket_.get(), &message, os::kNoSignal | MSG_DONTWAIT);
  if (sent >= 0) return static_cast<size_t>(sent);
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return 0;
  throw lost(rank_, peer_, std::strerror(errno));
}

size_t TcpLink::read_some(std::byte* data, size_t bytes) {
  if (ended_) return 0;
  const ssize_t got = ::recv(socket_.get(), data, bytes, MSG_DONTWAIT);
  if (got > 0) return static_cast<size_t>(got);
  if (got == 0) {
    ended_ = true;  // the control connection tells whether the rank is lost
    return 0;
  }
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return 0;
  throw lost(rank_, peer_, std::strerror(errno));
}

std::span<const std::byte> TcpLink::peek(size_t bytes) {
  // Keep whole elements contiguous: fewer than kAlign remaining bytes move to the front before more are read.
  if (end_ - begin_ < std::min(bytes, kAlign)) {
    std::memmove(staging_.get(), staging_.get() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    end_ += read_some(staging_.get() + end_, kStaging - end_);
  }
  return {staging_.get() + begin_, std::min(bytes, end_ - begin_)};
}

void TcpLink::consume(size_t bytes) { begin_ += bytes; }

size_t TcpLink::receive(std::byte* data, size_t bytes) {
  if (begin_ == end_) return read_some(data, bytes);
  const size_t moved = std::min(bytes, end_ - begin_);
  std::memcpy(data, staging_.get() + begin_, moved);
  begin_ += moved;
  return moved;
}

}  // namespace ringwise::coll
