// The schedule of one rank for one operation: two lists that run side by side, each in its order. `sends` are outgoing
// messages; `steps` are incoming messages and local work. Every entry gives the number of entries of the other list
// that must have ended before it may begin. So a plan waits only for what it needs, and links can be busy in both
// directions. exchange() and work() wait for all entries planned before them, which is always correct; send() and
// receive() with `after` allow more overlap.
//
// Planning is a pure function of rank, size and operation; Execution runs the schedule. So the same plans can run over
// shared memory, sockets, or a simulated network. Both ends of a message plan it with the same number of bytes, and the
// messages of a pair in the same order; empty ones are not sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "coll/op.h"

namespace ringwise::coll {

enum class Region : uint8_t { Input, Output, Residual, Scratch };

/// `count` elements at `offset` bytes of a region. Elements have the operation's dtype, except for accumulators, which
/// are in scratch: the target of Widen and of all accumulating steps, and the source of Narrow.
struct Piece {
  Region region = Region::Input;
  size_t offset = 0;
  size_t count = 0;
  bool wide = false;  // for a message: its elements are accumulators
};

/// The effect of a step on an arriving message: Store copies it to the piece, Accumulate computes piece ∘ message,
/// Append source ∘ message and Prepend message ∘ source. The last three write the result to the piece.
enum class Take : uint8_t { Store, Accumulate, Append, Prepend };

/// Work without communication. Widen, Accumulate and Narrow work on accumulators. The last four are the functions of
/// wire.h; packed pieces are also counted in elements of the operation.
enum class Local : uint8_t { None, Copy, Scale, Widen, Accumulate, Narrow, Pack, KeepLoss, AddPacked, Unpack };

struct Send {
  int to = -1;
  Piece piece;
  size_t after = 0;  // number of steps that must have ended before it starts
};

struct Step {
  int from = -1;  // the sender of an incoming message; -1 for local work
  Take take = Take::Store;
  Local local = Local::None;
  Piece piece;  // target of the message or the work
  Piece source;
  Piece residual;       // for Pack; empty for none
  size_t after = 0;     // number of sends that must have ended before it starts
  bool trails = false;  // the next send after those may read the memory that this step writes: stay behind it
};

struct Schedule {
  std::vector<int> handshake_targets;  // ranks that get this rank's signature before anything else
  std::vector<int> handshake_sources;  // ranks whose signatures must arrive and agree before a buffer is written
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
  /// Reserves scratch, aligned to 64 bytes; returns its offset.
  size_t scratch(size_t bytes);
  /// Sends handshakes to the ranks that get a message, and waits for those of the ranks that send one. That is enough
  /// if the output is written only after data from every rank has arrived, directly or through others, because then all
  /// ranks agree.
  void handshake_partners();
};

}  // namespace ringwise::coll
