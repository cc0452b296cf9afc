#include "coll/transport/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <system_error>

namespace ringwise::coll {

namespace {

constexpr size_t kSlot = 128;  // a word per pair of cache lines: the sleeping words, then the alarm

size_t header_bytes(int ranks) { return kSlot * (ranks + 1); }

// Rings shrink with the number of ranks: n² of them exist, and a ring that fits the cache is the faster one.
size_t capacity_for(int ranks, Channel channel) {
  const size_t of_collectives = (ranks <= 4 ? 512 : ranks <= 16 ? 128 : 32) * 1024;
  return channel == Channel::Collectives ? of_collectives : of_collectives / 2;
}

/// Of all pairs' rings of a channel.
size_t rings_bytes(int ranks, Channel channel) {
  return static_cast<size_t>(ranks) * ranks * (sizeof(ShmRing) + capacity_for(ranks, channel));
}

size_t bytes_for(int ranks) {
  return header_bytes(ranks) + rings_bytes(ranks, Channel::Collectives) + rings_bytes(ranks, Channel::PointToPoint);
}

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

}  // namespace

Segment Segment::create(int ranks) {
  Segment segment;
  segment.ranks_ = ranks;
  segment.file_ = Fd(memfd_create("ringwise", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!segment.file_) fail("memfd_create");
  // Reserved now, so that a host without memory says so here and not by a bus error later.
  const int error = posix_fallocate(segment.file_.get(), 0, static_cast<off_t>(bytes_for(ranks)));
  if (error != 0) {
    errno = error;
    fail("reserving shared memory");
  }
  if (fcntl(segment.file_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) fail("sealing shared memory");
  segment.map();
  return segment;
}

Segment Segment::attach(Fd file, int ranks) {
  Segment segment;
  segment.ranks_ = ranks;
  segment.file_ = std::move(file);
  struct stat status {};
  if (fstat(segment.file_.get(), &status) != 0) fail("fstat of shared memory");
  const int seals = fcntl(segment.file_.get(), F_GET_SEALS);
  if (static_cast<size_t>(status.st_size) != bytes_for(ranks) || seals < 0 || !(seals & F_SEAL_SHRINK)) {
    errno = EINVAL;
    fail("shared memory of an unexpected size");
  }
  segment.map();
  return segment;
}

void Segment::map() {
  void* memory = mmap(nullptr, bytes_for(ranks_), PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  if (memory == MAP_FAILED) fail("mapping shared memory");
  memory_ = static_cast<std::byte*>(memory);
}

Segment::Segment(Segment&& other) noexcept
    : file_(std::move(other.file_)), ranks_(other.ranks_), memory_(std::exchange(other.memory_, nullptr)) {}

Segment& Segment::operator=(Segment&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(ranks_, other.ranks_);
  std::swap(memory_, other.memory_);
  return *this;
}

Segment::~Segment() {
  if (memory_ != nullptr) munmap(memory_, bytes_for(ranks_));
}

size_t Segment::capacity(Channel channel) const { return capacity_for(ranks_, channel); }

ShmRing* Segment::ring(Channel channel, int from, int to) const {
  size_t offset = header_bytes(ranks_) + (static_cast<size_t>(from) * ranks_ + to) * (sizeof(ShmRing) + capacity(channel));
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
