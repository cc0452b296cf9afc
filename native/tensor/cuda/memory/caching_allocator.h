// A caching allocator for memory that is expensive to allocate and free. It takes large segments from a source, cuts
// pieces from them and merges freed neighbours. A freed piece can be reused at once, but only for the stream for which
// it was allocated: earlier work of that stream runs before later work, so no waiting is needed.
//
// Used for device memory, pinned host memory and, in tests, plain memory, each with its own source.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>

namespace ringwise::tensor::cuda {

/// Allocates the segments.
class MemorySource {
 public:
  virtual ~MemorySource() = default;
  /// Returns memory that is aligned to at least 512 bytes, or null if there is not enough.
  virtual void* get(size_t bytes) = 0;
  /// Takes a segment back. May free it later, when work that uses it has ended.
  virtual void put(void* segment) = 0;
  /// Waits until all segments that put() has taken are free. May call free() of allocators.
  virtual void settle() {}
  /// Returns the bytes that the source could still allocate, for error messages.
  virtual size_t free_bytes() = 0;
  /// Returns a name such as "cuda:0", for error messages.
  virtual std::string name() const = 0;
};

struct AllocatorUse {
  size_t live = 0;      // bytes in use, rounded up to the sizes of pieces
  size_t peak = 0;      // maximum of `live` so far
  size_t cached = 0;    // bytes of segments that no piece in use has
  size_t pieces = 0;    // number of pieces in use
  size_t segments = 0;  // number of segments from the source
};

class OutOfMemory : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
/// Formats a size as text such as "1.5 MiB".
std::string megabytes(size_t bytes);

class CachingAllocator {
 public:
  explicit CachingAllocator(std::shared_ptr<MemorySource> source) : source_(std::move(source)) {}
  /// Returns all segments to the source, including those with pieces in use.
  ~CachingAllocator();
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  /// Allocates a piece, also for 0 bytes. `stream` is any number that identifies an order of execution. If the source
  /// has not enough memory, returns cached segments to it, waits until these are free, and tries again, unless segments
  /// are kept (keep_segments). Throws OutOfMemory if there is still not enough.
  void* allocate(size_t bytes, uint64_t stream);
  /// Frees a piece. Returns false if `data` is not a piece in use.
  bool free(void* data);

  /// Returns the segments without pieces in use to the source. No running work may use them. Does nothing while
  /// segments are kept.
  void empty_cache();
  /// While `are_kept`, no segment returns to the source: captured work names addresses in pieces that are free again.
  void keep_segments(bool are_kept);
  AllocatorUse use() const;

 private:
  struct Piece {
    char* data;
    size_t bytes;
    uint64_t stream;
    bool is_free;
    Piece *before, *after;  // neighbours in the segment
  };
  struct BySize {
    using is_transparent = void;
    bool operator()(const Piece* a, const Piece* b) const;
  };
  /// The free pieces of small or of large segments. Pieces up to 1 MiB have separate segments, so that they do not
  /// fragment the large ones.
  struct Pool {
    std::set<Piece*, BySize> free;
  };

  Pool& pool_of(size_t bytes) { return bytes <= kSmall ? small_ : large_; }
  Piece* find(Pool& pool, size_t bytes, uint64_t stream);
  Piece* segment(Pool& pool, size_t bytes, uint64_t stream, bool may_be_tight);
  void split(Pool& pool, Piece* piece, size_t bytes);
  Piece* merge(Pool& pool, Piece* piece);
  void release_cached();
  [[noreturn]] void out_of_memory(size_t bytes);

  static constexpr size_t kGranule = 512, kSmall = size_t{1} << 20, kStep = size_t{2} << 20;
  static constexpr size_t kLargeSegment = size_t{20} << 20;  // segment size for pieces up to half of it

  const std::shared_ptr<MemorySource> source_;
  mutable std::mutex mutex_;
  Pool small_, large_;
  struct Used {
    Piece* piece;
    Pool* pool;
  };
  std::unordered_map<void*, Used> used_;
  std::set<void*> segments_;
  bool keeps_segments_ = false;
  AllocatorUse use_;
};

}  // namespace ringwise::tensor::cuda
