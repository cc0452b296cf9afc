#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

#include "base/os/socket.h"

namespace ringwise::os {

const int kNoSignal = MSG_NOSIGNAL;
const short kPeerHasEnded = POLLRDHUP;

void suppress_signal(int) noexcept {}

void notice_vanished_host(int socket) noexcept {
  const int on = 1, idle = 5, interval = 2, count = 3, unacknowledged_ms = 15'000;
  setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
  setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacknowledged_ms, sizeof unacknowledged_ms);
}

}  // namespace ringwise::os
