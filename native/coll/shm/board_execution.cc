#include "coll/shm/board_execution.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "coll/handshake/labels.h"
#include "coll/reduce/reduce.h"

namespace ringwise::coll {

namespace {

// No processor has more prefetched bytes than this in flight.
constexpr size_t kPrefetchBytes = 2048;

// How many posts ahead a rank fetches for writing: a rank that only sends may write two of them before one has come.
constexpr uint64_t kPrefetchedPosts = 2;

/// Returns a multilinear hash (Carter and Wegman, 1979) over the eight words of a signature and the digest of the call
/// before, with odd factors. So two ranks have equal digests only if all their calls so far agree.
uint64_t digest_of(const Signature& signature, uint64_t before) {
  constexpr uint64_t kFactors[] = {0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9, 0x94d049bb133111eb, 0xff51afd7ed558ccd,
                                   0xc4ceb9fe1a85ec53, 0xd6e8feb86659fd93, 0xa0761d6478bd642f, 0xe7037ed1a0b428db};
  uint64_t words[sizeof(Signature) / sizeof(uint64_t)];
  std::memcpy(words, &signature, sizeof words);
  uint64_t digest = (before ^ (before >> 32)) * 0xd1b54a32d192ed03;
  for (size_t i = 0; i < std::size(words); ++i) digest += (words[i] ^ (words[i] >> 32)) * kFactors[i];
  return digest ^ (digest >> 29);
}

}  // namespace

BoardExecution::BoardExecution(BoardContext& context, int rank)
    : context_(context),
      board_(context.board),
      rank_(rank),
      size_(context.board.ranks()),
      sources_(size_),
      outputs_(size_),
      probe_(std::make_unique<uint64_t>()),
      is_tried_(static_cast<size_t>(kVerbCount * size_)) {
  board_.member(rank_).fences = context.fences;
}

void BoardExecution::begin(const Op& op) {
  op_ = op;
  element_ = byte_size(op.dtype);
  signature_ = signature_of(op_, rank_, size_);
  digest_ = digest_of(signature_, calls_[number_ % kPosts].digest);
  plan();
  if (method_ == Method::Move && board_.member(rank_).reads == 0) probe_memory();
  where_ = choose_where();
  phase_ = Phase::Post;
  await_room();
}

/// Waits until no rank reads the post and the slots that this operation reuses; see Board. A rank that has used up its
/// run-ahead waits until half of it is free again, so that it reads the posts of the other ranks only once in many
/// operations. It does not read them while the calls that it has compared are recent enough.
void BoardExecution::await_room() {
  const bool in_slots = where_ != Where::Post || op_.verb == Verb::AllToAll;
  const uint64_t ahead = in_slots || trial_ > verified_ ? 1 : kRunAhead;
  const uint64_t next = number_ + 1, least = next > ahead ? next - ahead : 0;
  expect(Word::Stamp, least + ahead / 2, verified_ >= least ? Ranks{} : everybody());
}

void BoardExecution::announce() {
  if (phase_ != Phase::Post || !wait_over()) return;
  if (wait_ranks_.first != wait_ranks_.last) compare_posted(wait_value_);
  ++number_;
  post();
  phase_ = Phase::Meet;
  const bool is_first = is_first_with_root();
  const Ranks meet = to_meet(is_first);
  if (is_first && meet.last - meet.first < size_) trial_ = number_;
  expect(Word::Stamp, number_, meet);
}

bool BoardExecution::advance() {
  bool moved = false;
  if (phase_ == Phase::Post) {
    announce();
    if (phase_ == Phase::Post) return false;
    moved = true;
  }
  if (phase_ == Phase::Meet) {
    if (!wait_over()) return moved;
    for (int peer = wait_ranks_.first; peer < wait_ranks_.last; ++peer) verify(peer);
    if (wait_ranks_.last - wait_ranks_.first == size_) verified_ = number_;
    phase_ = start() ? Phase::Done : Phase::Run;
    return true;
  }
  if (phase_ == Phase::Run) {
    while (wait_over()) {
      moved = true;
      program_.resume();
      if (program_.ended()) {
        phase_ = Phase::Done;
        break;
      }
    }
    // Ranks that disagree about the root may wait for each other to take their data, so compare the calls meanwhile,
    // and also at the end; see start().
    compare_posted();
  }
  return moved;
}

/// Begins the data movement, after all ranks whose data this one takes have posted the same call. Returns true if the
/// operation has ended.
bool BoardExecution::start() {
  program_.reset();  // the next program reuses frame_
  switch (method_) {
    case Method::Barrier: return true;
    case Method::OneShot:
      if (op_.verb == Verb::Reduce && rank_ != op_.root) return true;
      if (op_.verb == Verb::AllReduce && op_.count * element_ > sizeof(Post::data)) {
        if (all_in_arenas()) {
          program_ = in_place();
          return program_.ended();
        }
        const auto late = [&](int rank) { return where_of(rank) == Where::Arena; };
        for (int rank = 0; rank < size_; ++rank) {
          if (!late(rank)) continue;
          program_ = late_one_shot();
          return program_.ended();
        }
      }
      reduce_whole();
      return true;
    case Method::TwoShot: program_ = all_in_arenas() ? in_place() : two_shot(); return program_.ended();
    case Method::Move:
      if (move_at_once()) return true;
      program_ = move();
      // Two ranks that both believe that they only send read no data of each other, and each would interpret that as
      // the end of its own send. A rank posts its call before it counts data as taken, so this comparison finds both
      // calls.
      if (program_.ended()) compare_posted();
      return program_.ended();
  }
  return true;
}

void BoardExecution::post() {
  Post& post = board_.post(rank_, number_);
  post.signature = signature_;
  if (op_.label != 0) {
    std::memset(post.label, 0, sizeof post.label);
    const std::string text = text_of_label(op_.label);
    first_of(text, sizeof post.label).copy(post.label, sizeof post.label);
  }
  post.digest = digest_;
  calls_[number_ % kPosts] = {signature_, digest_};
  post.where = where_;
  switch (where_) {
    case Where::Post:
      if (method_ == Method::Barrier || takers().last == takers().first) break;
      if (by_part_)
        lay_out(post.data + sizes_bytes(), post_stride(), 0);
      else
        copy_in(post.data, offer(takers().first));
      break;
    case Where::Slot: stage(0); break;
    case Where::Arena: post.offset = *context_.arena->offset_of(op_.input, 0); break;
    case Where::Memory: post.offset = reinterpret_cast<uintptr_t>(op_.input); break;
    case Where::Chunks: break;
  }
  if (op_.verb == Verb::AllToAll) {  // every pair compares the sizes that one sends with those that the other expects
    for (int rank = 0; rank < size_; ++rank) {
      sizes_of(rank_)[rank] = {parts_[rank].bytes / element_, received_[rank].bytes / element_};
    }
  }
  show(post.stamp, number_);
  // Fetch the cache lines of the next posts and slot, which other ranks have read, while this rank waits.
  __builtin_prefetch(&board_.post(rank_, number_ + kPrefetchedPosts), 1);
  if (where_ != Where::Slot || by_part_) return;
  const std::byte* next = board_.slot(rank_, number_ + 1, 0);
  const size_t bytes = std::min(offered_whole(rank_), kPrefetchBytes);
  for (size_t line = 0; line < bytes; line += 64) __builtin_prefetch(next + line, 1);
}

/// Compares the calls up to number `until` with the posts of all other ranks. Those posts are still valid because this
/// rank is at most kRunAhead operations ahead. Equal digests of one call say that all calls before it agree too.
void BoardExecution::compare_posted(uint64_t until) {
  if (verified_ >= until) return;
  if (all_agree_on(until)) {
    verified_ = until;
    return;
  }
  for (uint64_t number = verified_ + 1; number <= until; ++number) {
    const Call& call = calls_[number % kPosts];
    bool is_complete = true;
    for (int peer = 0; peer < size_; ++peer) {
      if (peer == rank_) continue;
      const Post& post = board_.post(peer, number);
      if (post.stamp.load() < number)
        is_complete = false;
      else if (post.digest != call.digest)
        throw disagreement_with(peer, call.signature, post);
    }
    if (is_complete && verified_ == number - 1) verified_ = number;
  }
}

/// Throws if an earlier call of this rank differs from the peer's, which has posted them all.
void BoardExecution::compare_calls_with(int peer) const {
  for (uint64_t number = verified_ + 1; number < number_; ++number) {
    const Call& call = calls_[number % kPosts];
    const Post& post = board_.post(peer, number);
    if (post.digest != call.digest) throw disagreement_with(peer, call.signature, post);
  }
}

/// Returns whether all other ranks have posted that call with the digest of this rank's.
bool BoardExecution::all_agree_on(uint64_t number) const {
  const uint64_t digest = calls_[number % kPosts].digest;
  for (int peer = 0; peer < size_; ++peer) {
    const Post& post = board_.post(peer, number);
    if (peer != rank_ && (post.stamp.load() < number || post.digest != digest)) return false;
  }
  return true;
}

/// Remembers the text of the post's label, so that error messages can show it.
void BoardExecution::remember_label_of(const Post& post) {
  remember_label(post.signature.label, std::string_view(post.label, strnlen(post.label, sizeof post.label)));
}

Failure BoardExecution::disagreement_with(int peer, const Signature& mine, const Post& post) const {
  remember_label_of(post);
  return disagreement(rank_, mine, peer, post.signature);
}

void BoardExecution::not_posted(std::vector<int>& ranks) const {
  ranks.clear();
  for (int peer = 0; peer < size_ && verified_ < number_; ++peer) {
    if (peer != rank_ && board_.post(peer, number_).stamp.load() < number_) ranks.push_back(peer);
  }
}

/// Returns whether this is the first call of the verb with that root, and notes that it has been made. A rank that
/// receives the root's data waits for the posts of all ranks in such a call. Any other rank may continue before, and
/// waits for them in its next call (see `trial_`). So a disagreement about the root is found early.
bool BoardExecution::is_first_with_root() {
  if (!has_root(op_.verb)) return false;
  auto tried = is_tried_[static_cast<size_t>(static_cast<int>(op_.verb) * size_ + op_.root)];
  const bool is_first = !tried;
  tried = true;
  return is_first;
}

void BoardExecution::verify(int peer) const {
  if (peer == rank_) return;
  const Post& post = board_.post(peer, number_);
  if (post.digest != digest_) compare_calls_with(peer);
  if (op_.verb != Verb::AllToAll || post.signature.verb != signature_.verb) {
    if (post.digest != digest_) throw disagreement_with(peer, signature_, post);
    return;
  }
  const Sizes theirs = sizes_of(peer)[rank_], mine = sizes_of(rank_)[peer];
  Signature ours = signature_, other = post.signature;
  ours.count = mine.received;
  ours.returned = mine.sent;
  other.count = theirs.sent;
  other.returned = theirs.received;
  if (!same(ours, other)) {
    remember_label_of(post);
    throw disagreement(rank_, ours, peer, other);
  }
}

/// Returns the sizes that `rank` sends to each rank in an allToAll and expects from it, in elements.
BoardExecution::Sizes* BoardExecution::sizes_of(int rank) const {
  const bool fits = sizes_bytes() <= sizeof(Post::data);  // the result buffers are unused, as nothing is reduced
  return reinterpret_cast<Sizes*>(fits ? board_.post(rank, number_).data : board_.result(rank, number_, 0));
}

/// Copies one chunk of the data that this rank offers into its slot.
void BoardExecution::stage(size_t chunk) {
  std::byte* slot = board_.slot(rank_, number_, chunk);
  if (!by_part_) return copy_in(slot, chunk_of(offer(takers().first), chunk));
  lay_out(slot, chunk_bytes_, chunk);
}

/// Copies a chunk of every receiver's part to `to`, `stride` bytes apart.
void BoardExecution::lay_out(std::byte* to, size_t stride, size_t chunk) {
  // This rank reads its own part from its input, except for premulSum, which needs a multiplied copy.
  const bool own = op_.reduce == ReduceOp::PremulSum && method_ != Method::Move;
  for (int taker = 0; taker < size_; ++taker) {
    if (taker == rank_ && !own) continue;
    copy_in(to + stride * static_cast<size_t>(taker), chunk_of(parts_[taker], chunk));
  }
}

void BoardExecution::copy_in(std::byte* to, const Part& from) const {
  if (op_.reduce == ReduceOp::PremulSum && method_ != Method::Move) {
    scale(op_.dtype, op_.factor, to, op_.input + from.offset, from.bytes / element_);
  } else if (from.bytes > 0) {
    std::memcpy(to, op_.input + from.offset, from.bytes);
  }
}

/// Returns the data that `source` offers to this rank, or to all ranks. In reductions, `source` may be this rank.
const std::byte* BoardExecution::data_of(int source, size_t chunk) const {
  const size_t offset = by_part_ ? chunk_bytes_ * static_cast<size_t>(rank_) : 0;
  switch (where_of(source)) {
    case Where::Post:
      return board_.post(source, number_).data +
             (by_part_ ? sizes_bytes() + post_stride() * static_cast<size_t>(rank_) : 0);
    case Where::Slot: return board_.slot(source, number_, 0) + offset;
    case Where::Chunks: return board_.slot(source, number_, chunk) + offset;
    case Where::Memory:  // never read here: see take()
    case Where::Arena: break;
  }
  const std::byte* memory = context_.arenas.memory(source) + board_.post(source, number_).offset;
  return memory + chunk_of(offered_by(source), chunk).offset;
}

// ------------------------------------------------------------------------------------------------ waiting

bool BoardExecution::Wait::await_ready() const {
  execution.expect(word, value, ranks);
  return execution.wait_over();
}

BoardExecution::Wait BoardExecution::reached(Counter counter, size_t chunks, Ranks ranks) {
  const Word word = counter == Counter::Staged    ? Word::Staged
                    : counter == Counter::Reduced ? Word::Reduced
                                                  : Word::Taken;
  if (chunks == 0) ranks = {};  // no wait: counters still hold an older operation's value before the first chunk
  return {*this, word, Board::mark(number_, chunks), ranks};
}

void BoardExecution::expect(Word word, uint64_t value, Ranks ranks) {
  wait_word_ = word;
  wait_value_ = value;
  wait_ranks_ = ranks;
  wait_next_ = ranks.first;
}

bool BoardExecution::wait_over() {
  while (wait_next_ < wait_ranks_.last) {
    if (wait_next_ != rank_ && word_of(wait_next_) < wait_value_) return false;
    ++wait_next_;
  }
  return true;
}

uint64_t BoardExecution::word_of(int rank) const {
  switch (wait_word_) {
    case Word::Stamp: return board_.post(rank, wait_value_).stamp.load();
    case Word::Staged: return board_.counter(rank, Counter::Staged).load();
    case Word::Reduced: return board_.counter(rank, Counter::Reduced).load();
    case Word::Taken: break;
  }
  return board_.counter(rank, Counter::Taken).load();
}

void BoardExecution::waiting_for(std::vector<int>& ranks) const {
  ranks.clear();
  for (int rank = wait_next_; rank < wait_ranks_.last; ++rank) {
    if (rank != rank_ && word_of(rank) < wait_value_) ranks.push_back(rank);
  }
}

void BoardExecution::publish(Counter counter, size_t chunks) {
  show(board_.counter(rank_, counter), Board::mark(number_, chunks));
}

/// Sets a word that other ranks may wait for, and wakes those that sleep. A rank that is about to sleep sets its
/// `sleeping` word, then reads once more the words that it waits for. Either it reads the new value, or this rank must
/// read that it sleeps. So a memory barrier must lie between this rank's store and its read. There are two ways: the
/// other rank executes one on all ranks' threads before it sleeps, or this rank executes one, which waits until the
/// other ranks' caches have released the word's line.
void BoardExecution::show(std::atomic<uint64_t>& word, uint64_t value) {
  if (sleepers_fence_ || (sleepers_fence_ = do_sleepers_fence())) {
    word.store(value, std::memory_order_release);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  } else {
    word.store(value);
  }
  for (int rank = 0; rank < size_; ++rank) {
    if (rank == rank_) continue;
    std::atomic<uint32_t>& sleeping = *context_.sleeping[rank];
    if (sleeping.load(std::memory_order_relaxed) != 0 && sleeping.exchange(0) != 0) context_.doorbell->ring(rank);
  }
}

/// Returns whether all ranks execute a barrier on this rank's threads before they sleep; see Member::fences.
bool BoardExecution::do_sleepers_fence() const {
  for (int rank = 0; rank < size_; ++rank) {
    if (board_.member(rank).fences.load(std::memory_order_relaxed) == 0) return false;
  }
  return true;
}

}  // namespace ringwise::coll
