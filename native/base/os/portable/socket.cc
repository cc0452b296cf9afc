#include "base/os/socket.h"

#include <fcntl.h>

#include <cstring>

#include "base/os/descriptor_flags.h"

namespace ringwise::os {

namespace {

/// Returns the socket with its flags set; an empty Fd, with errno set, if that fails.
Fd prepared(Fd socket) noexcept {
  if (!socket) return socket;
  suppress_signal(socket.get());
  return set_descriptor_flags(socket.get()) ? std::move(socket) : Fd();
}

}  // namespace

Fd open_socket(int family) noexcept { return prepared(Fd(::socket(family, SOCK_STREAM, 0))); }

Fd accept_socket(int listener) noexcept { return prepared(Fd(::accept(listener, nullptr, nullptr))); }

ssize_t receive_message(int socket, msghdr& message) noexcept {
  const ssize_t bytes = ::recvmsg(socket, &message, 0);
  if (bytes < 0) return bytes;
  for (cmsghdr* each = CMSG_FIRSTHDR(&message); each != nullptr; each = CMSG_NXTHDR(&message, each)) {
    if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS) continue;
    int descriptor = -1;
    std::memcpy(&descriptor, CMSG_DATA(each), sizeof descriptor);
    fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  }
  return bytes;
}

}  // namespace ringwise::os
