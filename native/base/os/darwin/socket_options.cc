#include <netinet/in.h>
#include <netinet/tcp.h>

#include "base/os/socket.h"

namespace ringwise::os {

const int kNoSignal = 0;
const short kPeerHasEnded = 0;

void suppress_signal(int socket) noexcept {
  const int on = 1;
  setsockopt(socket, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
}

void notice_vanished_host(int socket) noexcept {
  const int on = 1, idle = 5, interval = 2, count = 3, unacknowledged = 15;  // seconds
  setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPALIVE, &idle, sizeof idle);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
  setsockopt(socket, IPPROTO_TCP, TCP_RXT_CONNDROPTIME, &unacknowledged, sizeof unacknowledged);
}

}  // namespace ringwise::os
