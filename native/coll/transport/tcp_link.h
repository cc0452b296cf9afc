// A link to a rank of another host: one connected, non-blocking TCP socket.
#pragma once

#include <memory>

#include "base/fd.h"
#include "coll/transport/link.h"

namespace ringwise::coll {

class TcpLink final : public Link {
 public:
  /// Takes ownership of the connected socket. `rank` and `peer` appear in error messages only.
  TcpLink(Fd socket, int rank, int peer);

  size_t send(const std::byte* data, size_t bytes) override;
  size_t send(std::span<const Part> parts) override;
  size_t receive(std::byte* data, size_t bytes) override;
  std::span<const std::byte> peek(size_t bytes) override;
  void consume(size_t bytes) override;
  bool ended() const override { return ended_; }

 private:
  size_t read_some(std::byte* data, size_t bytes);

  Fd socket_;
  int rank_;
  int peer_;
  bool ended_ = false;  // the peer has closed its side; bytes that came before it are still delivered
  // Received bytes for peek: [begin_, end_). Not zeroed, so that the memory of links that never reduce gets no pages.
  std::unique_ptr<std::byte[]> staging_;
  size_t begin_ = 0;
  size_t end_ = 0;
};

}  // namespace ringwise::coll
