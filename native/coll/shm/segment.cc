#include "coll/shm/segment.h"

#include <utility>

#include "base/os/memory_file.h"

namespace ringwise::coll {

namespace {

constexpr size_t kSlot = 128;  // one word per pair of cache lines: the sleeping words, then the alarm

size_t header_bytes(int ranks) { return kSlot * (ranks + 1); }

// Rings shrink with the number of ranks, because there are n² of them and rings that fit the cache are faster.
size_t capacity_for(int ranks, Channel channel) {
  const size_t of_collectives = (ranks <= 4 ? 512 : ranks <= 16 ? 128 : 32) * 1024;
  return channel == Channel::Collectives ? of_collectives : of_collectives / 2;
}

/// Returns the bytes of all rings of a channel.
size_t rings_bytes(int ranks, Channel channel) {
  return static_cast<size_t>(ranks) * ranks * (sizeof(ShmRing) + capacity_for(ranks, channel));
}

size_t bytes_for(int ranks) {
  return header_bytes(ranks) + rings_bytes(ranks, Channel::Collectives) + rings_bytes(ranks, Channel::PointToPoint);
}

}  // namespace

Segment Segment::create(int ranks) {
  Segment segment;
  segment.ranks_ = ranks;
  segment.file_ = os::make_memory_file("ringwise", bytes_for(ranks));
  segment.map();
  return segment;
}

Segment Segment::attach(Fd file, int ranks) {
  Segment segment;
  segment.ranks_ = ranks;
  segment.file_ = std::move(file);
  os::check_memory_file(segment.file_, bytes_for(ranks));
  segment.map();
  return segment;
}

void Segment::map() { memory_ = os::map_memory_file(file_, bytes_for(ranks_)); }

Segment::Segment(Segment&& other) noexcept
    : file_(std::move(other.file_)), ranks_(other.ranks_), memory_(std::exchange(other.memory_, nullptr)) {}

Segment& Segment::operator=(Segment&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(ranks_, other.ranks_);
  std::swap(memory_, other.memory_);
  return *this;
}

Segment::~Segment() {
  if (memory_ != nullptr) os::unmap(memory_, bytes_for(ranks_));
}

size_t Segment::capacity(Channel channel) const { return capacity_for(ranks_, channel); }

ShmRing* Segment::ring(Channel channel, int from, int to) const {
  size_t offset =
      header_bytes(ranks_) + (static_cast<size_t>(from) * ranks_ + to) * (sizeof(ShmRing) + capacity(channel));
  if (channel == Channel::PointToPoint) offset += rings_bytes(ranks_, Channel::Collectives);
  return reinterpret_cast<ShmRing*>(memory_ + offset);
}

std::atomic<uint32_t>* Segment::sleeping(int index) const {
  return reinterpret_cast<std::atomic<uint32_t>*>(memory_ + kSlot * index);
}

std::atomic<uint32_t>* Segment::alarm() const {
  return reinterpret_cast<std::atomic<uint32_t>*>(memory_ + kSlot * ranks_);
}

}  // namespace ringwise::coll
