// A link carries bytes to and from one peer: two independent, ordered, flow-controlled streams. Calls never block: each
// moves the bytes that can move now. Only the thread that owns the engine uses a link.
//
// The engine pads every message to kAlign bytes. So an element in the memory that peek() returns is never split at the
// end of a ring.
#pragma once

#include <cstddef>
#include <span>

namespace ringwise::coll {

inline constexpr size_t kAlign = 64;

class Link {
 public:
  virtual ~Link() = default;

  /// Sends as many of the first bytes as there is room for; returns the number sent, which may be 0. One call may send
  /// less than there is room for.
  virtual size_t send(const std::byte* data, size_t bytes) = 0;

  /// Sends the parts, at most kParts, one after another; returns the number of bytes sent. Links with expensive calls
  /// override this to send all parts in one call.
  using Part = std::span<const std::byte>;
  static constexpr size_t kParts = 3;
  virtual size_t send(std::span<const Part> parts) {
    size_t sent = 0;
    for (const Part& part : parts) {
      const size_t taken = part.empty() ? 0 : send(part.data(), part.size());
      sent += taken;
      if (taken < part.size()) break;
    }
    return sent;
  }

  /// Moves up to `bytes` arrived bytes to `data`; returns their number.
  virtual size_t receive(std::byte* data, size_t bytes) = 0;

  /// Returns the next arrived bytes, at most `bytes` of them, in the link's memory. They stay valid until consume() or
  /// receive().
  virtual std::span<const std::byte> peek(size_t bytes) = 0;

  /// Drops bytes that peek returned.
  virtual void consume(size_t bytes) = 0;

  /// Returns whether no more bytes will arrive. Call it only when the last calls moved nothing and, for a link in
  /// shared memory, the peer is known to be gone. Bytes that are still unread then are the beginning of a message that
  /// was cut off.
  virtual bool ended() const = 0;
};

}  // namespace ringwise::coll
