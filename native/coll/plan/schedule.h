// What one rank does for one operation: two lists that run side by side, each in its order. `sends` are messages out;
// `steps` are messages in, and local work. Every entry says how far the other list must be before it may begin. So a
// plan waits only for what it needs, and a link can be kept full in both directions. exchange() and work() wait for
// everything planned before them, which is always right; send(), receive() and their `after` are for plans that do
// better.
//
// Planning is pure (a function of rank, size and operation); carrying it out is Execution's job. So the same plans can
// run over shared memory, sockets, or a simulated network. Both ends of a message plan it with the same number of
// bytes, and the messages of a pair in the same order; empty ones are not sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "coll/op.h"

namespace ringwise::coll {

enum class Region : uint8_t { Input, Output, Residual, Scratch };

/// `count` elements at `offset` (in bytes) of a place. Elements are of the operation's dtype, except for accumulators,
/// which lie in scratch: the target of Widen and of everything that accumulates, and the source of Narrow.
struct Piece {
  Region region = Region::Input;
  size_t offset = 0;
  size_t count = 0;
  bool wide = false;  // of a message: its elements are accumulators
};

/// What becomes of an arriving message: stored as it is, folded into accumulators (piece = piece ∘ message), or
/// combined with the step's source into the piece, in either order (source ∘ message, message ∘ source).
enum class Take : uint8_t { Store, Accumulate, Append, Prepend };

/// Work without communication. Accumulators are the left operand or the source where the name says so. The last four
/// are the functions of wire.h; a packed piece is counted in elements of the operation all the same.
enum class Local : uint8_t { None, Copy, Scale, Widen, Accumulate, Narrow, Pack, KeepLoss, AddPacked, Unpack };

struct Send {
  int to = -1;
  Piece piece;
  size_t after = 0;  // steps that must have ended before it leaves
};

struct Step {
  int from = -1;  // a message in; otherwise local work
  Take take = Take::Store;
  Local local = Local::None;
  Piece piece;  // where the message or the result of the work goes
  Piece source;
  Piece residual;       // of Pack; empty for none
  size_t after = 0;     // sends that must have left before it begins
  bool trails = false;  // the send after those writes the same memory out: stay behind it, byte by byte
};

struct Schedule {
  std::vector<int> handshake_targets;  // ranks that get this rank's signature before anything else
  std::vector<int> handshake_sources;  // ranks whose signature must have come, and agree, before any buffer is touched
  std::vector<Send> sends;
  std::vector<Step> steps;
  size_t scratch_bytes = 0;

  /// Empties the schedule and keeps its memory, so that a steady loop allocates nothing.
  void clear();
  /// Adds an outgoing and an incoming message that move at the same time, after everything planned before. For Append
  /// and Prepend, `outgoing` is the source.
  void exchange(int to, Piece outgoing, int from, Piece incoming, Take take);
  /// Adds local work after everything planned before, or after the earlier steps and the first `after` sends.
  void work(Local local, Piece target, Piece source) { work(local, target, source, sends.size()); }
  void work(Local local, Piece target, Piece source, size_t after);
  /// Adds an outgoing message, after the first `after` steps.
  void send(int to, Piece piece, size_t after);
  /// Adds an incoming message, after the earlier steps and the first `after` sends. `source` is for Append and Prepend.
  void receive(int from, Piece piece, Take take, size_t after, Piece source = {});
  /// Reserves aligned scratch; returns its offset.
  size_t scratch(size_t bytes);
  /// Sends handshakes to the ranks that get a message, and waits for those of the ranks that send one. Enough where
  /// nothing is written to the output before every rank has, directly or through others, had a part in it: then all
  /// agree.
  void handshake_partners();
};

}  // namespace ringwise::coll
