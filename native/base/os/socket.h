// Stream sockets that are non-blocking, closed in programs that this process starts, and do not raise SIGPIPE.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include "base/fd.h"

namespace ringwise::os {

/// Makes a socket. Returns an empty Fd, with errno set, if that fails.
Fd open_socket(int family) noexcept;

/// Takes a connection from the backlog of a listening socket. Returns an empty Fd, with errno set, if there is none or
/// it fails.
Fd accept_socket(int listener) noexcept;

/// The flag by which sendmsg() and send() do not raise SIGPIPE; 0 where only the socket itself can say so.
extern const int kNoSignal;

/// The event of poll() that tells that the peer has ended the connection; 0 where poll() always tells that.
extern const short kPeerHasEnded;

/// Makes a socket that was just made not raise SIGPIPE, where that is not said in each call.
void suppress_signal(int socket) noexcept;

/// Does what recvmsg() does; descriptors that arrive are closed in programs that this process starts.
ssize_t receive_message(int socket, msghdr& message) noexcept;

/// Makes the kernel notice within some 15 s that a host has vanished without closing a TCP connection.
void notice_vanished_host(int socket) noexcept;

}  // namespace ringwise::os
