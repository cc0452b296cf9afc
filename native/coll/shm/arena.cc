#include "coll/shm/arena.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <iterator>
#include <mutex>
#include <system_error>
#include <utility>

#include "base/os/memory_file.h"

namespace ringwise::coll {

namespace {

constexpr size_t kPage = 4096;
constexpr size_t kHugePage = size_t{2} << 20;

size_t pages(size_t bytes) { return std::max<size_t>(1, (bytes + kPage - 1) / kPage) * kPage; }

/// Returns the first offset, from `offset` on, for a block of that many bytes. Blocks of at least a huge page begin at
/// a multiple of its size, because the kernel uses huge pages only for whole aligned ones.
size_t aligned_for(size_t offset, size_t bytes) {
  return bytes < kHugePage ? offset : (offset + kHugePage - 1) / kHugePage * kHugePage;
}

/// The arena that prepare() has made for the next create(), and how often prepare() has been called.
struct Prepared {
  std::mutex mutex;
  std::shared_ptr<Arena> arena;  // guarded by `mutex`
  uint64_t calls = 0;            // guarded by `mutex`
};

Prepared& prepared() {
  static Prepared instance;
  return instance;
}

}  // namespace

size_t Arena::span() {
  static const size_t bytes = os::memory_of_machine();
  return bytes;
}

std::shared_ptr<Arena> Arena::create() {
  std::shared_ptr<Arena> ready;
  {
    Prepared& shared = prepared();
    std::lock_guard lock(shared.mutex);
    ready = std::exchange(shared.arena, nullptr);
  }
  return ready ? ready : make();
}

void Arena::prepare(size_t bytes) noexcept {
  Prepared& shared = prepared();
  std::shared_ptr<Arena> before;  // destroyed after the lock
  uint64_t call = 0;
  {
    std::lock_guard lock(shared.mutex);
    before = std::exchange(shared.arena, nullptr);
    call = ++shared.calls;
  }
  before.reset();
  if (bytes == 0 || bytes > span()) return;
  std::shared_ptr<Arena> arena = make();
  if (!arena || os::reserve_mapped_pages(arena->file_, arena->memory_, 0, pages(bytes)) != 0) return;
  arena->ready_ = pages(bytes);
  std::lock_guard lock(shared.mutex);
  if (call == shared.calls) shared.arena = std::move(arena);
}

std::shared_ptr<Arena> Arena::make() {
  std::shared_ptr<Arena> arena(new Arena);
  try {
    arena->file_ = os::make_memory_file("ringwise arena", span(), true);
    arena->memory_ = os::map_memory_file(arena->file_, span());
    os::advise_huge_pages(arena->memory_, span());
  } catch (const std::system_error&) {
    return nullptr;
  }
  arena->free_.emplace(0, span());
  return arena;
}

Arena::~Arena() {
  if (memory_ != nullptr) os::unmap(memory_, span());
}

std::byte* Arena::allocate(size_t bytes) {
  const size_t wanted = pages(bytes);
  const auto found = std::find_if(free_.begin(), free_.end(), [&](const auto& range) {
    return range.first + range.second >= aligned_for(range.first, wanted) + wanted;
  });
  if (found == free_.end()) throw std::system_error(ENOMEM, std::generic_category(), "allocating shared memory");
  const auto [begin, bytes_free] = *found;
  const size_t offset = aligned_for(begin, wanted);
  const bool is_ready = offset + wanted <= ready_;
  const int error = is_ready ? 0 : os::reserve_mapped_pages(file_, memory_, offset, wanted);
  if (error != 0) throw std::system_error(error, std::generic_category(), "allocating shared memory");
  const size_t left = begin + bytes_free - offset - wanted;
  if (offset > begin)
    found->second = offset - begin;
  else
    free_.erase(found);
  if (left > 0) free_.emplace(offset + wanted, left);
  used_.emplace(offset, wanted);
  return memory_ + offset;
}

void Arena::release(std::byte* block) noexcept {
  const auto used = used_.find(static_cast<size_t>(block - memory_));
  if (used == used_.end()) return;
  auto [offset, bytes] = *used;
  used_.erase(used);
  os::clear_pages(file_, memory_, offset, bytes);  // allocate() promises zeroed memory
  ready_ = std::min(ready_, offset);
  if (is_isolated_) return os::drop_private(memory_ + offset, bytes);
  auto next = free_.lower_bound(offset);
  if (next != free_.end() && offset + bytes == next->first) {
    bytes += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == offset) {
      before->second += bytes;
      return;
    }
  }
  free_.emplace(offset, bytes);
}

void Arena::isolate(const std::byte* data, size_t bytes) noexcept {
  const std::optional<size_t> offset = offset_of(data, bytes);
  if (!offset || bytes == 0) return;
  const size_t begin = *offset / kPage * kPage, end = (*offset + bytes + kPage - 1) / kPage * kPage;
  if (os::make_private(memory_ + begin, end - begin) == 0) is_isolated_ = true;
}

std::optional<size_t> Arena::offset_of(const std::byte* data, size_t bytes) const {
  const auto at = reinterpret_cast<uintptr_t>(data), base = reinterpret_cast<uintptr_t>(memory_);
  if (at < base || at + bytes > base + span()) return std::nullopt;
  return at - base;
}

PeerArenas::~PeerArenas() {
  for (std::byte* memory : memory_) {
    if (memory != nullptr) os::unmap(memory, Arena::span());
  }
}

void PeerArenas::attach(int index, const Fd& file) {
  os::check_memory_file(file, Arena::span());
  memory_[index] = os::map_memory_file(file, Arena::span());
  os::advise_huge_pages(memory_[index], Arena::span());
}

}  // namespace ringwise::coll
