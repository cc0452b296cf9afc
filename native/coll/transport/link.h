// A link carries bytes to and from one peer: two independent, ordered, flow-controlled streams. Nothing blocks:
// each call moves what can be moved now. Used by one thread at a time, the one that owns the engine.
//
// The engine pads every message to kAlign bytes. So on links that hand out their own memory (peek), an element
// never straddles the wrap-around of a ring.
#pragma once

#include <cstddef>
#include <span>

namespace ringwise::coll {

inline constexpr size_t kAlign = 64;

class Link {
 public:
  virtual ~Link() = default;

  /// Takes as many of the bytes as there is room for; returns how many.
  virtual size_t send(const std::byte* data, size_t bytes) = 0;

  /// The same for bytes that lie in several places, at most kParts, and follow each other: where a call costs much, all
  /// at once.
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

  /// Moves up to `bytes` arrived bytes to `data`; returns how many.
  virtual size_t receive(std::byte* data, size_t bytes) = 0;

  /// The next arrived bytes, at most `bytes` of them, in the link's memory; valid until consume or receive.
  virtual std::span<const std::byte> peek(size_t bytes) = 0;

  /// Drops bytes that peek returned.
  virtual void consume(size_t bytes) = 0;

  /// Of a peer that is known to be gone, after calls that moved nothing: whether nothing more will come. What is left
  /// then is the beginning of something that was cut off.
  virtual bool ended() const = 0;
};

}  // namespace ringwise::coll
