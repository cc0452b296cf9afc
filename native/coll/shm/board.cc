#include "coll/shm/board.h"

#include <utility>

#include "base/os/memory_file.h"

namespace ringwise::coll {

namespace {

constexpr size_t kPage = 4096;

// Chosen so that all slots of a host together stay in its caches.
size_t slot_bytes_for(int ranks) {
  if (ranks <= 4) return 256 * 1024;
  if (ranks <= 16) return 128 * 1024;
  return 64 * 1024;
}

}  // namespace

Board::Board(Fd file, int ranks) : file_(std::move(file)), ranks_(ranks), slot_bytes_(slot_bytes_for(ranks)) {
  constexpr size_t header = kPostBytes + (kCounters + 1) * kLine;
  rank_bytes_ = (header + kPage - 1) / kPage * kPage + 4 * (slot_bytes_ + slot_bytes_ / 2);
}

Board Board::create(int ranks) {
  Board board({}, ranks);
  board.file_ = os::make_memory_file("ringwise board", board.bytes());
  board.map();
  return board;
}

Board Board::attach(Fd file, int ranks) {
  Board board(std::move(file), ranks);
  os::check_memory_file(board.file_, board.bytes());
  board.map();
  return board;
}

void Board::map() { memory_ = os::map_memory_file(file_, bytes()); }

Board::Board(Board&& other) noexcept
    : file_(std::move(other.file_)),
      ranks_(other.ranks_),
      slot_bytes_(other.slot_bytes_),
      rank_bytes_(other.rank_bytes_),
      memory_(std::exchange(other.memory_, nullptr)) {}

Board& Board::operator=(Board&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(ranks_, other.ranks_);
  std::swap(slot_bytes_, other.slot_bytes_);
  std::swap(rank_bytes_, other.rank_bytes_);
  std::swap(memory_, other.memory_);
  return *this;
}

Board::~Board() {
  if (memory_ != nullptr) os::unmap(memory_, bytes());
}

}  // namespace ringwise::coll
