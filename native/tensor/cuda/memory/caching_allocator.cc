#include "tensor/cuda/memory/caching_allocator.h"

#include <algorithm>
#include <cstdio>
#include <functional>

namespace ringwise::tensor::cuda {

namespace {

constexpr size_t round_up(size_t bytes, size_t step) { return (bytes + step - 1) / step * step; }

}  // namespace

std::string megabytes(size_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f MiB", static_cast<double>(bytes) / (1 << 20));
  return text;
}

bool CachingAllocator::BySize::operator()(const Piece* a, const Piece* b) const {
  if (a->stream != b->stream) return a->stream < b->stream;
  if (a->bytes != b->bytes) return a->bytes < b->bytes;
  return std::less<char*>()(a->data, b->data);
}

CachingAllocator::~CachingAllocator() {
  for (const auto& [data, used] : used_) delete used.piece;
  for (const Pool* pool : {&small_, &large_}) {
    for (const Piece* piece : pool->free) delete piece;
  }
  for (void* segment : segments_) source_->put(segment);
}

void* CachingAllocator::allocate(size_t bytes, uint64_t stream) {
  std::unique_lock lock(mutex_);
  if (bytes > SIZE_MAX / 2) out_of_memory(bytes);
  bytes = round_up(std::max<size_t>(bytes, 1), kGranule);
  if (bytes > kSmall) bytes = round_up(bytes, kStep);
  Pool& pool = pool_of(bytes);
  Piece* piece = find(pool, bytes, stream);
  if (!piece) piece = segment(pool, bytes, stream, keeps_segments_);
  if (!piece && !keeps_segments_) {
    release_cached();
    lock.unlock();
    source_->settle();
    lock.lock();
    piece = find(pool, bytes, stream);
    if (!piece) piece = segment(pool, bytes, stream, true);
  }
  if (!piece) out_of_memory(bytes);
  split(pool, piece, bytes);
  used_.emplace(piece->data, Used{piece, &pool});
  piece->is_free = false;
  use_.live += piece->bytes;
  use_.cached -= piece->bytes;
  use_.peak = std::max(use_.peak, use_.live);
  use_.pieces++;
  return piece->data;
}

bool CachingAllocator::free(void* data) {
  const std::lock_guard lock(mutex_);
  const auto found = used_.find(data);
  if (found == used_.end()) return false;
  const auto [piece, pool] = found->second;
  used_.erase(found);
  use_.live -= piece->bytes;
  use_.cached += piece->bytes;
  use_.pieces--;
  piece->is_free = true;
  pool->free.insert(merge(*pool, piece));
  return true;
}

/// Removes the smallest free piece that is large enough from the pool and returns it; null if there is none.
CachingAllocator::Piece* CachingAllocator::find(Pool& pool, size_t bytes, uint64_t stream) {
  Piece wanted{nullptr, bytes, stream, true, nullptr, nullptr};
  const auto at = pool.free.lower_bound(&wanted);
  if (at == pool.free.end() || (*at)->stream != stream) return nullptr;
  Piece* piece = *at;
  pool.free.erase(at);
  return piece;
}

/// Gets a new segment from the source and returns it as one piece. If it `may_be_tight`, it need not have room for more
/// pieces. Returns null if the source has not enough memory.
CachingAllocator::Piece* CachingAllocator::segment(Pool& pool, size_t bytes, uint64_t stream, bool may_be_tight) {
  const size_t whole = &pool == &small_ ? kStep : bytes <= kLargeSegment / 2 ? kLargeSegment : bytes;
  size_t got = whole;
  void* data = source_->get(whole);
  if (!data && may_be_tight && whole != bytes && &pool == &large_) {
    got = bytes;
    data = source_->get(bytes);
  }
  if (!data) return nullptr;
  segments_.insert(data);
  use_.segments++;
  use_.cached += got;
  return new Piece{static_cast<char*>(data), got, stream, true, nullptr, nullptr};
}

/// Cuts the unused end off `piece` and adds it to the pool.
void CachingAllocator::split(Pool& pool, Piece* piece, size_t bytes) {
  const size_t rest = piece->bytes - bytes;
  if (rest < (&pool == &small_ ? kGranule : kStep)) return;
  Piece* tail = new Piece{piece->data + bytes, rest, piece->stream, true, piece, piece->after};
  if (piece->after) piece->after->before = tail;
  piece->after = tail;
  piece->bytes = bytes;
  pool.free.insert(tail);
}

/// Merges `piece` with its free neighbours, which leave the pool. Returns the merged piece.
CachingAllocator::Piece* CachingAllocator::merge(Pool& pool, Piece* piece) {
  const auto join = [](Piece* left, Piece* right) {
    left->bytes += right->bytes;
    left->after = right->after;
    if (right->after) right->after->before = left;
    delete right;
  };
  if (Piece* next = piece->after; next && next->is_free) {
    pool.free.erase(next);
    join(piece, next);
  }
  if (Piece* previous = piece->before; previous && previous->is_free) {
    pool.free.erase(previous);  // before its size changes, which is part of its place in the pool
    join(previous, piece);
    piece = previous;
  }
  return piece;
}

void CachingAllocator::release_cached() {
  if (keeps_segments_) return;
  for (Pool* pool : {&small_, &large_}) {
    for (auto at = pool->free.begin(); at != pool->free.end();) {
      Piece* piece = *at;
      if (piece->before || piece->after) {
        ++at;
        continue;
      }
      at = pool->free.erase(at);
      source_->put(piece->data);
      segments_.erase(piece->data);
      use_.segments--;
      use_.cached -= piece->bytes;
      delete piece;
    }
  }
}

void CachingAllocator::empty_cache() {
  const std::lock_guard lock(mutex_);
  release_cached();
}

void CachingAllocator::keep_segments(bool are_kept) {
  const std::lock_guard lock(mutex_);
  keeps_segments_ = are_kept;
}

AllocatorUse CachingAllocator::use() const {
  const std::lock_guard lock(mutex_);
  return use_;
}

void CachingAllocator::out_of_memory(size_t bytes) {
  throw OutOfMemory("memory: not enough on " + source_->name() + "; asked for " + megabytes(bytes) + ", " +
                    megabytes(use_.live) + " are live, " + megabytes(use_.cached) + " cached, " +
                    megabytes(source_->free_bytes()) + " free. " +
                    (keeps_segments_ ? "A step is being captured, so its cached memory cannot be freed. Call "
                                       "emptyCache() before the capture, or use smaller batches."
                                     : "Use smaller batches, or dispose of tensors that are no longer needed."));
}

}  // namespace ringwise::tensor::cuda
