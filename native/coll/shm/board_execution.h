// Carries out one collective of the ranks of one host in shared memory, a bit at a time: advance() does what can be
// done now and never waits.
//
// Every rank posts what it calls, and waits for the posts of those whose data it takes; when they agree, data
// moves. What fits a post or a slot is there when the post is, so that one look at every peer is all that a small
// operation waits for. The rest comes in chunks, of which two are under way (see Board). Buffers in arenas are read
// where they lie. In every case an element is reduced by one rank for all, or by all in the order of the ranks: so
// the results are equal bit by bit.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "coll/op.h"
#include "coll/shm/arena.h"
#include "coll/shm/board.h"
#include "coll/shm/program.h"
#include "coll/transport/shm_link.h"

namespace ringwise::coll {

/// What the ranks of a host share. They are numbered as in the group.
struct BoardContext {
  Board board;
  std::shared_ptr<Arena> arena;  // this rank's; null where there is none
  PeerArenas arenas{0};
  std::vector<std::atomic<uint32_t>*> sleeping;  // by rank; see ShmLink
  ShmLink::Doorbell* doorbell = nullptr;
};

class BoardExecution {
 public:
  BoardExecution(BoardContext& context, int rank);

  /// The object is reused: in a steady loop nothing is allocated here.
  void begin(const Op& op);

  /// Moves what can be moved now; true if anything was. Throws Failure when ranks disagree.
  bool advance();

  bool done() const { return phase_ == Phase::Done; }
  /// Posts the operation, if that can be done now, so that the others need not wait for this rank.
  void announce();

  const Op& op() const { return op_; }
  Op& op() { return op_; }
  const Signature& signature() const { return signature_; }
  /// How the operation is carried out; a literal.
  const char* algorithm() const;

  /// The ranks whose action this one waits for, each once.
  void waiting_for(std::vector<int>& ranks) const;

  /// Compares what the others have posted by now with the calls that this rank went through without a look at all of
  /// them. Throws Failure when ranks disagree. At any time, also after the last call.
  void compare_posted() { compare_posted(number_); }
  /// The ranks that have not posted all those calls yet, each once.
  void not_posted(std::vector<int>& ranks) const;

  ProgramFrame& program_frame() { return frame_; }

 private:
  enum class Phase : uint8_t { Post, Meet, Run, Done };
  enum class Method : uint8_t { Barrier, OneShot, TwoShot, Move };
  enum class Word : uint8_t { Stamp, Staged, Reduced, Taken };

  struct Ranks {
    int first = 0;
    int last = 0;  // not included
  };
  /// A rank's part of an array, in bytes.
  struct Part {
    size_t offset = 0;
    size_t bytes = 0;
  };
  /// Until the word of every one of `ranks` but this one has reached `value`.
  struct Wait {
    BoardExecution& execution;
    Word word;
    uint64_t value;
    Ranks ranks;
    bool await_ready() const;
    void await_suspend(std::coroutine_handle<>) const noexcept {}
    void await_resume() const noexcept {}
  };

  struct Sizes {
    uint64_t sent;
    uint64_t received;
  };

  // board_plan.cc: what the verb makes of the arrays.
  void plan();
  void cut(std::vector<Part>& parts, size_t count, const size_t* counts) const;
  void cut_evenly(size_t count);
  Where choose_where() const;
  Ranks takers() const;
  Ranks to_meet() const;
  bool takes_from(int source) const;
  size_t offered_whole(int source) const;
  Part offer(int taker) const;
  Part offered_by(int source) const;
  Part taken_from(int source) const;
  Part chunk_of(const Part& part, size_t chunk) const;
  size_t chunks(size_t bytes) const { return (bytes + chunk_bytes_ - 1) / chunk_bytes_; }
  size_t most_offered() const;
  size_t post_stride() const;
  size_t sizes_bytes() const { return op_.verb == Verb::AllToAll ? sizeof(Sizes) * static_cast<size_t>(size_) : 0; }

  // board_execution.cc
  void post();
  void verify(int peer) const;
  void compare_posted(uint64_t until);
  static void remember_label_of(const Post& post);
  Failure disagreement_with(int peer, const Signature& mine, const Post& post) const;
  void go_on_trial();
  Sizes* sizes_of(int rank) const;
  bool start();
  void stage(size_t chunk);
  void lay_out(std::byte* to, size_t stride, size_t chunk);
  void copy_in(std::byte* to, const Part& from) const;
  const std::byte* data_of(int source, size_t chunk) const;
  Where where_of(int source) const { return source == rank_ ? where_ : board_.post(source, number_).where; }
  Wait reached(Counter counter, size_t chunks, Ranks ranks);
  void expect(Word word, uint64_t value, Ranks ranks);
  bool wait_over();
  uint64_t word_of(int rank) const;
  void publish(Counter counter, size_t chunks);
  void wake();
  Ranks everybody() const { return {0, size_}; }
  Ranks only(int rank) const { return {rank, rank + 1}; }

  // board_reduce.cc
  bool all_in_arenas() const;
  void reduce_whole();
  void reduce_part(size_t chunk);
  void reduce_in_place();
  void take_results(size_t chunk);
  bool takes_results() const;
  Program late_one_shot();
  Program two_shot();
  Program in_place();

  // board_move.cc
  bool move_at_once();
  Program move();
  void take(int source, size_t chunk);
  void take_own();
  void probe_memory();
  bool others_can_read() const;

  BoardContext& context_;
  Board& board_;
  const int rank_;
  const int size_;

  Op op_;
  size_t element_ = 1;  // bytes
  Signature signature_{};
  uint64_t number_ = 0;  // of the operation on this board, from 1; equal on all ranks
  Phase phase_ = Phase::Done;
  uint64_t digest_ = 0;
  /// The last operations, by number as posts are: those up to `verified_` have been compared with every other rank's.
  struct Call {
    Signature signature;
    uint64_t digest;
  };
  std::array<Call, kPosts> calls_{};
  uint64_t verified_ = 0;
  Method method_ = Method::Barrier;
  Where where_ = Where::Post;   // this rank's data
  bool by_part_ = false;        // every taker gets another part; a slot is divided among them
  size_t chunk_bytes_ = 0;      // of what one taker gets
  std::vector<Part> parts_;     // by rank, of the array that is cut: the input, or the output of gathering verbs
  std::vector<Part> received_;  // by rank, of the output of allToAll
  std::vector<const std::byte*> sources_;
  std::vector<std::byte*> outputs_;
  std::unique_ptr<uint64_t> probe_;  // what the others read to try; see Member
  /// By verb and root: whether this rank has gone through such a call without a look at the others before. The first time, at
  /// operation `trial_`, its next call waits until they have posted that one.
  std::vector<bool> is_tried_;
  uint64_t trial_ = 0;

  // What is waited for. Those before `wait_next_` have come.
  Word wait_word_ = Word::Stamp;
  uint64_t wait_value_ = 0;
  Ranks wait_ranks_;
  int wait_next_ = 0;

  ProgramFrame frame_;  // of program_, so declared before it
  Program program_;
};

}  // namespace ringwise::coll
