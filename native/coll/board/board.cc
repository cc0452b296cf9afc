#include "coll/board/board.h"

#include <utility>

#include "base/memory_file.h"

namespace ringwise::coll {

namespace {

static_assert(sizeof(Member) <= 128);

constexpr size_t kLine = 128;  // pairs of cache lines travel together
constexpr size_t kHeader = 2 * sizeof(Post) + (kCounters + 1) * kLine;

// All slots of a host together should stay in its caches.
size_t slot_bytes_for(int ranks) {
  if (ranks <= 4) return 256 * 1024;
  if (ranks <= 16) return 128 * 1024;
  return 64 * 1024;
}

}  // namespace

Board Board::create(int ranks) {
  Board board;
  board.ranks_ = ranks;
  board.file_ = make_memory_file("ringwise board", board.bytes());
  board.map();
  return board;
}

Board Board::attach(Fd file, int ranks) {
  Board board;
  board.ranks_ = ranks;
  board.file_ = std::move(file);
  check_memory_file(board.file_, board.bytes());
  board.map();
  return board;
}

void Board::map() { memory_ = map_memory_file(file_, bytes()); }

Board::Board(Board&& other) noexcept
    : file_(std::move(other.file_)), ranks_(other.ranks_), memory_(std::exchange(other.memory_, nullptr)) {}

Board& Board::operator=(Board&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(ranks_, other.ranks_);
  std::swap(memory_, other.memory_);
  return *this;
}

Board::~Board() {
  if (memory_ != nullptr) unmap(memory_, bytes());
}

// Per rank: two posts, the counters, the member, then per operation and chunk (two of each) a slot and a result.

size_t Board::slot_bytes() const { return slot_bytes_for(ranks_); }

size_t Board::rank_bytes() const { return (kHeader + 4095) / 4096 * 4096 + 4 * (slot_bytes() + slot_bytes() / 2); }

size_t Board::bytes() const { return rank_bytes() * static_cast<size_t>(ranks_); }

Post& Board::post(int rank, uint64_t operation) const {
  return *reinterpret_cast<Post*>(memory_ + rank_bytes() * rank + sizeof(Post) * (operation % 2));
}

std::atomic<uint64_t>& Board::counter(int rank, Counter counter) const {
  std::byte* lines = memory_ + rank_bytes() * rank + 2 * sizeof(Post);
  return *reinterpret_cast<std::atomic<uint64_t>*>(lines + kLine * static_cast<size_t>(counter));
}

Member& Board::member(int rank) const {
  return *reinterpret_cast<Member*>(memory_ + rank_bytes() * rank + 2 * sizeof(Post) + kCounters * kLine);
}

std::byte* Board::slot(int rank, uint64_t operation, size_t chunk) const {
  const size_t index = operation % 2 * 2 + chunk % 2;
  return memory_ + rank_bytes() * (rank + 1) - (index + 1) * (slot_bytes() + slot_bytes() / 2);
}

std::byte* Board::result(int rank, uint64_t operation, size_t chunk) const {
  return slot(rank, operation, chunk) + slot_bytes();
}

}  // namespace ringwise::coll
