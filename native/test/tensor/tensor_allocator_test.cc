// Tests the caching allocator, which device and pinned memory use, over plain memory that can run out.
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>

#include "tensor/cuda/memory/caching_allocator.h"
#include "test/check.h"

using namespace ringwise;
using tensor::cuda::AllocatorUse;
using tensor::cuda::CachingAllocator;

namespace {

constexpr size_t kMiB = size_t{1} << 20;

class PlainMemory final : public tensor::cuda::MemorySource {
 public:
  explicit PlainMemory(size_t capacity) : left_(capacity) {}
  ~PlainMemory() override { CHECK(sizes_.empty()); }
  void* get(size_t bytes) override {
    if (bytes > left_) return nullptr;
    void* data = std::aligned_alloc(512, bytes);
    left_ -= bytes;
    sizes_[data] = bytes;
    gets++;
    return data;
  }
  void put(void* segment) override {
    left_ += sizes_.at(segment);
    sizes_.erase(segment);
    std::free(segment);
  }
  size_t free_bytes() override { return left_; }
  std::string name() const override { return "plain"; }
  int gets = 0;

 private:
  size_t left_;
  std::unordered_map<void*, size_t> sizes_;
};

}  // namespace

TEST("a loop that asks for the same sizes takes each from the source once") {
  const auto source = std::make_shared<PlainMemory>(256 * kMiB);
  CachingAllocator allocator(source);
  for (int step = 0; step < 100; step++) {
    void* all[] = {allocator.allocate(100, 1), allocator.allocate(3 * kMiB, 1), allocator.allocate(30 * kMiB, 1)};
    for (void* data : all) CHECK(allocator.free(data));
  }
  CHECK_EQ(source->gets, 3);
  const AllocatorUse use = allocator.use();
  CHECK_EQ(use.live, 0u);
  CHECK_EQ(use.pieces, 0u);
  CHECK_EQ(use.peak, 512 + 4 * kMiB + 30 * kMiB);
  CHECK_EQ(use.cached, 2 * kMiB + 20 * kMiB + 30 * kMiB);
}

TEST("a freed piece goes to its own stream only") {
  const auto source = std::make_shared<PlainMemory>(256 * kMiB);
  CachingAllocator allocator(source);
  void* first = allocator.allocate(4 * kMiB, 1);
  CHECK(allocator.free(first));
  void* other = allocator.allocate(4 * kMiB, 2);
  CHECK(other != first);
  CHECK(allocator.allocate(4 * kMiB, 1) == first);
}

TEST("neighbours grow together again, in any order of freeing") {
  const auto source = std::make_shared<PlainMemory>(20 * kMiB);
  CachingAllocator allocator(source);
  const int orders[][4] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {0, 2, 1, 3}, {1, 3, 0, 2}, {2, 0, 3, 1}};
  for (const auto& order : orders) {
    void* parts[4];
    for (void*& part : parts) part = allocator.allocate(4 * kMiB, 0);
    for (const int i : order) CHECK(allocator.free(parts[i]));
    void* whole = allocator.allocate(20 * kMiB, 0);
    CHECK(whole == parts[0]);
    CHECK(allocator.free(whole));
  }
  CHECK_EQ(source->gets, 1);
}

TEST("memory that is not in use can be given back, and memory in use stays") {
  const auto source = std::make_shared<PlainMemory>(256 * kMiB);
  CachingAllocator allocator(source);
  void* kept = allocator.allocate(10, 0);
  CHECK(allocator.free(allocator.allocate(50 * kMiB, 0)));
  allocator.empty_cache();
  CHECK_EQ(allocator.use().segments, 1u);
  CHECK_EQ(source->free_bytes(), 254 * kMiB);
  std::memset(kept, 1, 10);
  CHECK(allocator.free(kept));
  allocator.empty_cache();
  CHECK_EQ(source->free_bytes(), 256 * kMiB);
}

TEST("gives back its cache before it reports that memory is short, in a sentence with all amounts") {
  const auto source = std::make_shared<PlainMemory>(64 * kMiB);
  CachingAllocator allocator(source);
  CHECK(allocator.free(allocator.allocate(40 * kMiB, 0)));
  void* data = allocator.allocate(60 * kMiB, 0);
  std::string message;
  try {
    allocator.allocate(30 * kMiB, 0);
  } catch (const tensor::cuda::OutOfMemory& error) {
    message = error.what();
  }
  CHECK_EQ(
      message,
      "memory: not enough on plain; asked for 30.0 MiB, 60.0 MiB are live, 0.0 MiB cached, 4.0 MiB free. Use smaller "
      "batches, or dispose of tensors that are no longer needed.");
  CHECK(allocator.free(data));
  CHECK(allocator.free(allocator.allocate(30 * kMiB, 0)));
}

TEST("keeps its segments on demand, and reports that memory is short instead") {
  const auto source = std::make_shared<PlainMemory>(64 * kMiB);
  CachingAllocator allocator(source);
  void* data = allocator.allocate(40 * kMiB, 0);
  CHECK(allocator.free(data));
  allocator.keep_segments(true);
  allocator.empty_cache();
  std::string message;
  try {
    allocator.allocate(60 * kMiB, 0);
  } catch (const tensor::cuda::OutOfMemory& error) {
    message = error.what();
  }
  CHECK_EQ(message,
           "memory: not enough on plain; asked for 60.0 MiB, 0.0 MiB are live, 40.0 MiB cached, 24.0 MiB free. A step "
           "is being captured, so its cached memory cannot be freed. Call emptyCache() before the capture, or use "
           "smaller batches.");
  CHECK(allocator.allocate(40 * kMiB, 0) == data);
  CHECK(allocator.free(data));
  allocator.keep_segments(false);
  CHECK(allocator.free(allocator.allocate(60 * kMiB, 0)));
}

TEST("takes a smaller segment where a roomy one does not fit") {
  const auto source = std::make_shared<PlainMemory>(4 * kMiB);
  CachingAllocator allocator(source);
  CHECK(allocator.free(allocator.allocate(3 * kMiB, 0)));
  CHECK_EQ(allocator.use().cached, 4 * kMiB);
}

TEST("refuses sizes beyond all memory and pointers that it did not hand out") {
  const auto source = std::make_shared<PlainMemory>(4 * kMiB);
  CachingAllocator allocator(source);
  bool threw = false;
  try {
    allocator.allocate(SIZE_MAX - 3, 0);
  } catch (const tensor::cuda::OutOfMemory&) {
    threw = true;
  }
  CHECK(threw);
  int foreign;
  CHECK(!allocator.free(&foreign));
  void* data = allocator.allocate(0, 0);
  CHECK(allocator.free(data));
  CHECK(!allocator.free(data));
}

TEST("no two pieces overlap and no byte is lost, whatever the order of calls") {
  const auto source = std::make_shared<PlainMemory>(512 * kMiB);
  CachingAllocator allocator(source);
  std::mt19937 random(7);
  struct Held {
    unsigned char* data;
    size_t bytes;
    unsigned char mark;
  };
  std::vector<Held> held;
  for (int step = 0; step < 3000; step++) {
    if (held.size() < 20 || (held.size() < 60 && random() % 2)) {
      const size_t bytes = random() % 4 ? random() % 5000 : random() % (3 * kMiB);
      const auto mark = static_cast<unsigned char>(random());
      auto* data = static_cast<unsigned char*>(allocator.allocate(bytes, random() % 3));
      // Marks at both ends are enough to notice an overlap with a neighbour.
      if (bytes > 0) data[0] = data[bytes - 1] = mark;
      held.push_back({data, bytes, mark});
    } else {
      std::swap(held[random() % held.size()], held.back());
      const auto [data, bytes, mark] = held.back();
      held.pop_back();
      if (bytes > 0) CHECK(data[0] == mark && data[bytes - 1] == mark);
      CHECK(allocator.free(data));
    }
  }
  for (const Held& each : held) CHECK(allocator.free(each.data));
  allocator.empty_cache();
  CHECK_EQ(allocator.use().segments, 0u);
  CHECK_EQ(allocator.use().cached, 0u);
  CHECK_EQ(source->free_bytes(), 512 * kMiB);
}

int main() { return test::run_all(); }
