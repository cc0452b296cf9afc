// Executes one collective of the ranks of one host over the board, in small portions: advance() does the work that is
// possible now and never waits.
//
// Every rank posts its call. A rank that writes output waits for the posts of all ranks and moves data if they agree.
// Data that fits a post or a slot is complete when the post appears, so a small operation waits only once for every
// peer. Longer data is copied in chunks, two at a time (see Board). Buffers in arenas are read in place. Every element
// is either reduced by one rank for all ranks, or by all ranks in the order of the ranks, so the results are equal bit
// by bit.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "coll/op.h"
#include "coll/shm/arena.h"
#include "coll/shm/board.h"
#include "coll/shm/program.h"
#include "coll/transport/shm_link.h"

namespace ringwise::coll {

/// The shared objects that the ranks of a host use for collectives. They use the rank numbers of the group.
struct BoardContext {
  Board board;
  std::shared_ptr<Arena> arena;  // this rank's; null where there is none
  PeerArenas arenas{0};
  std::vector<std::atomic<uint32_t>*> sleeping;  // by rank; see ShmLink
  ShmLink::Doorbell* doorbell = nullptr;
  bool fences = false;  // this rank calls os::barrier_everywhere() before it sleeps
};

class BoardExecution {
 public:
  BoardExecution(BoardContext& context, int rank);

  /// Plans `op`. The object is reused, so a steady loop allocates nothing here.
  void begin(const Op& op);

  /// Moves the data that can move now; returns true if any did. Throws Failure when ranks disagree.
  bool advance();

  bool done() const { return phase_ == Phase::Done; }
  /// Posts the operation if that is possible now, so that the other ranks need not wait for this one.
  void announce();

  const Op& op() const { return op_; }
  Op& op() { return op_; }
  const Signature& signature() const { return signature_; }
  /// Returns the name of the method that carries out the operation, a string literal.
  const char* algorithm() const;

  /// Sets `ranks` to the ranks whose action this one waits for, each once.
  void waiting_for(std::vector<int>& ranks) const;

  /// Compares the posts that have appeared with those calls of this rank that ended before all posts were compared.
  /// Throws Failure when ranks disagree. May be called at any time, also after the last operation.
  void compare_posted() { compare_posted(number_); }
  /// Sets `ranks` to the ranks that have not posted all these calls yet, each once.
  void not_posted(std::vector<int>& ranks) const;

  /// Returns the memory of this rank that other ranks may write, also after this one has given the operation up: they
  /// may have been stopped in the middle of it. Empty if they write none.
  std::span<const std::byte> exposed() const;

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
  /// Waits until the word of every rank in `ranks`, except this one, has reached `value`.
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

  // board_plan.cc: how each verb cuts its arrays, and which ranks exchange which parts.
  void plan();
  void cut(std::vector<Part>& parts, size_t count, const size_t* counts) const;
  void cut_evenly(size_t count);
  Where choose_where() const;
  Ranks takers() const;
  Ranks to_meet(bool is_first) const;
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
  void await_room();
  void post();
  void verify(int peer) const;
  void compare_posted(uint64_t until);
  void compare_calls_with(int peer) const;
  bool all_agree_on(uint64_t number) const;
  static void remember_label_of(const Post& post);
  Failure disagreement_with(int peer, const Signature& mine, const Post& post) const;
  bool is_first_with_root();
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
  void show(std::atomic<uint64_t>& word, uint64_t value);
  bool do_sleepers_fence() const;
  Ranks everybody() const { return {0, size_}; }
  Ranks only(int rank) const { return {rank, rank + 1}; }

  // board_reduce.cc
  bool all_in_arenas() const;
  void combine_sources(int output_count, size_t bytes);
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
  uint64_t number_ = 0;  // counts the operations on this board from 1; equal on all ranks
  Phase phase_ = Phase::Done;
  uint64_t digest_ = 0;
  /// The latest operations, indexed by number modulo kPosts like the posts. Those up to number `verified_` have been
  /// compared with the posts of every other rank.
  struct Call {
    Signature signature;
    uint64_t digest;
  };
  std::array<Call, kPosts> calls_{};
  uint64_t verified_ = 0;
  Method method_ = Method::Barrier;
  Where where_ = Where::Post;   // location of this rank's data
  bool by_part_ = false;        // every receiver gets a different part; a slot is divided among them
  size_t chunk_bytes_ = 0;      // chunk size of one receiver's data
  std::vector<Part> parts_;     // by rank: parts of the input, or of the output of allGather and gather
  std::vector<Part> received_;  // by rank: parts of the output of allToAll
  std::vector<const std::byte*> sources_;
  std::vector<std::byte*> outputs_;
  std::unique_ptr<uint64_t> probe_;  // the number that other ranks read to test process_vm_readv; see Member
  /// Indexed by verb and root: whether this rank has made such a call. If it did not wait for the posts of all ranks in
  /// the first one, operation `trial_`, its next call waits until all ranks have posted that operation.
  std::vector<bool> is_tried_;
  uint64_t trial_ = 0;
  bool sleepers_fence_ = false;  // do_sleepers_fence() has returned true

  // The current wait. The ranks before `wait_next_` have reached the value.
  Word wait_word_ = Word::Stamp;
  uint64_t wait_value_ = 0;
  Ranks wait_ranks_;
  int wait_next_ = 0;

  ProgramFrame frame_;  // of program_, so declared before it
  Program program_;
};

}  // namespace ringwise::coll
