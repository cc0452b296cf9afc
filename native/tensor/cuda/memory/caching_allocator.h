// Memory that is expensive to get and to give back, kept for reuse. Large segments come from a source; pieces are cut
// from them and grow together again when they are freed. A freed piece is used again at once, but only by the stream
// that it was made for: there, whatever still uses it runs before whatever comes next, so nothing has to be waited for.
//
// The same class serves device memory, pinned host memory and (in tests) plain memory; they differ in their source.
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

/// Where segments come from.
class MemorySource {
 public:
  virtual ~MemorySource() = default;
  /// Null when there is not enough. At least 512-byte aligned.
  virtual void* get(size_t bytes) = 0;
  virtual void put(void* segment) = 0;
  /// What the source could still give, for error messages.
  virtual size_t free_bytes() = 0;
  /// "cuda:0", for error messages.
  virtual std::string name() const = 0;
};

struct AllocatorUse {
  size_t live = 0;      // bytes handed out, rounded up to what pieces take
  size_t peak = 0;      // the most that were live at once
  size_t cached = 0;    // bytes of segments that are not handed out
  size_t pieces = 0;    // handed out
  size_t segments = 0;  // held from the source
};

class OutOfMemory : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
/// "1.5 MiB", for their messages.
std::string megabytes(size_t bytes);

class CachingAllocator {
 public:
  explicit CachingAllocator(std::shared_ptr<MemorySource> source) : source_(std::move(source)) {}
  /// Gives everything back to the source, also what is still handed out.
  ~CachingAllocator();
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  /// `stream` is any number that stands for an order of execution. 0 bytes give a piece too. Throws OutOfMemory after
  /// it has given back what is cached and asked again.
  void* allocate(size_t bytes, uint64_t stream);
  /// False when `data` was not handed out.
  bool free(void* data);

  /// Gives back the segments of which nothing is handed out. Nothing may be running that uses them.
  void empty_cache();
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
  /// Pieces up to 1 MiB come from segments of their own, so that they do not break up the large ones.
  struct Pool {
    std::set<Piece*, BySize> free;
  };

  Pool& pool_of(size_t bytes) { return bytes <= kSmall ? small_ : large_; }
  Piece* find(Pool& pool, size_t bytes, uint64_t stream);
  Piece* segment(Pool& pool, size_t bytes, uint64_t stream);
  void split(Pool& pool, Piece* piece, size_t bytes);
  Piece* merge(Pool& pool, Piece* piece);
  void release_cached();
  [[noreturn]] void out_of_memory(size_t bytes);

  static constexpr size_t kGranule = 512, kSmall = size_t{1} << 20, kStep = size_t{2} << 20;
  static constexpr size_t kLargeSegment = size_t{20} << 20;  // for pieces up to half of it

  const std::shared_ptr<MemorySource> source_;
  mutable std::mutex mutex_;
  Pool small_, large_;
  struct Used {
    Piece* piece;
    Pool* pool;
  };
  std::unordered_map<void*, Used> used_;
  std::set<void*> segments_;
  AllocatorUse use_;
};

}  // namespace ringwise::tensor::cuda
