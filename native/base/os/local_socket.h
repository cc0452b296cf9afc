// Stream sockets between processes of one machine: how they are named, and how descriptors are sent over them.
#pragma once

#include <sys/socket.h>

#include <optional>
#include <string>

#include "base/fd.h"

namespace ringwise::os {

/// Returns a name, of at most 63 bytes, for a local socket that no other process can guess. Throws std::system_error.
std::string make_local_name();

/// Sets `address` to the address of a name, and returns its length.
socklen_t local_address(const std::string& name, sockaddr_storage& address) noexcept;

/// Removes what bind() has left in the file system for a name, if anything.
void remove_local_name(const std::string& name) noexcept;

/// Sends a byte over a local socket, and with it a copy of a descriptor; −1 sends the byte alone. Returns false, with
/// errno set, if that fails.
bool send_descriptor(int socket, int descriptor) noexcept;

/// Receives what send_descriptor() has sent: a descriptor, which is empty if the byte came alone. Returns nothing, with
/// errno set, if no byte has arrived (EAGAIN), the connection has ended (ECONNRESET), or this process has no descriptor
/// left for the one that has arrived (EMFILE), which is lost. Does not wait if the socket is non-blocking.
std::optional<Fd> receive_descriptor(int socket) noexcept;

}  // namespace ringwise::os
