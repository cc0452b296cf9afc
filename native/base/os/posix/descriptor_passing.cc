#include <cerrno>
#include <cstring>

#include "base/os/local_socket.h"
#include "base/os/socket.h"

namespace ringwise::os {

namespace {

// CMSG_SPACE(sizeof(int)) is at most 24, and not a constant everywhere.
constexpr size_t kSpace = 64;

struct Message {
  Message() {
    header.msg_iov = &part;
    header.msg_iovlen = 1;
  }

  char byte = 'S';
  iovec part{&byte, 1};
  alignas(cmsghdr) char space[kSpace] = {};
  msghdr header{};
};

}  // namespace

bool send_descriptor(int socket, int descriptor) noexcept {
  Message message;
  if (descriptor >= 0) {
    message.header.msg_control = message.space;
    message.header.msg_controllen = CMSG_SPACE(sizeof(int));
    cmsghdr* control = CMSG_FIRSTHDR(&message.header);
    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(control), &descriptor, sizeof(int));
  }
  return sendmsg(socket, &message.header, kNoSignal) == 1;
}

std::optional<Fd> receive_descriptor(int socket) noexcept {
  Message message;
  message.header.msg_control = message.space;
  message.header.msg_controllen = CMSG_SPACE(sizeof(int));
  const ssize_t got = receive_message(socket, message.header);
  if (got == 0) errno = ECONNRESET;
  if (got != 1) return std::nullopt;
  if ((message.header.msg_flags & MSG_CTRUNC) != 0) {
    errno = EMFILE;
    return std::nullopt;
  }
  const cmsghdr* control = CMSG_FIRSTHDR(&message.header);
  if (control == nullptr || control->cmsg_type != SCM_RIGHTS) return Fd();
  int descriptor = -1;
  std::memcpy(&descriptor, CMSG_DATA(control), sizeof(int));
  return Fd(descriptor);
}

}  // namespace ringwise::os
