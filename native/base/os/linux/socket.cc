#include "base/os/socket.h"

namespace ringwise::os {

Fd open_socket(int family) noexcept { return Fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)); }

Fd accept_socket(int listener) noexcept {
  return Fd(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

ssize_t receive_message(int socket, msghdr& message) noexcept { return ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC); }

}  // namespace ringwise::os
