// Tests memory that several streams use, and captured steps, on the software device (or a GPU with
// RINGWISE_TEST_GPU=1).
#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "tensor/cuda/device/captured_step.h"
#include "tensor/cuda/launch/kernels.h"
#include "tensor/cuda/memory/pinned.h"
#include "test/check.h"
#include "test/cuda/on_device.h"

using namespace ringwise;
using namespace ringwise::tensor;
namespace gpu = ringwise::tensor::cuda;
using gpu::Piece;

namespace {

constexpr size_t kCount = 1000;

gpu::Device& device() {
  gpu::Device& found = gpu::Device::get(0);
  found.enter();
  return found;
}

Block floats(size_t count = kCount) {
  auto piece = std::make_shared<Piece>(device(), count * sizeof(float));
  void* data = piece->data();
  return {std::move(piece), data, DType::Float32, count, 0};
}

/// Returns floats in shareable memory.
Block shareable_floats(size_t count) {
  auto piece = std::make_shared<Piece>(device(), device().allocate_shareable(count * sizeof(float)));
  void* data = piece->data();
  return {std::move(piece), data, DType::Float32, count, 0};
}

void work_on(uint32_t stream) { gpu::activity_on(0).stream = stream ? device().stream_of(stream) : gpu::WorkStream{}; }

Operand dense(const Block& block) {
  gpu::touch(block);
  Operand operand{};
  operand.data = static_cast<char*>(block.data);
  operand.dtype = DType::Float32;
  operand.strides[0] = 1;
  return operand;
}

/// Computes out = a + number on the device.
void add(const Block& out, const Block& a, double number) {
  Walk walk{};
  walk.rank = 1;
  walk.shape[0] = out.count;
  walk.operands = 3;
  walk.operand[0] = dense(out);
  walk.operand[1] = dense(a);
  walk.operand[2].dtype = DType::Float64;
  walk.operand[2].is_number = true;
  walk.operand[2].data = reinterpret_cast<char*>(&number);
  gpu::kernels().map({MapOp::Add, DType::Float32, walk});
}

void fill(const Block& block, float value) {
  const std::vector<float> values(block.count, value);
  device().upload(block.data, values.data(), block.count * sizeof(float));
}

float first(const Block& block) {
  std::vector<float> values(block.count);
  device().download(values.data(), block.data, block.count * sizeof(float));
  for (const float value : values) CHECK_EQ(value, values[0]);
  return values[0];
}

}  // namespace

TEST("the driver is initialised with a hardware queue for each of 32 streams") {
  const auto* connections = static_cast<const int*>(gpu::driver().library.symbol("softwareCudaConnections"));
  if (connections) CHECK_EQ(*connections, 32);
}

TEST("all kernels are loaded when the device is opened, and none later") {
  const auto* loads = static_cast<const std::atomic<int>*>(gpu::driver().library.symbol("softwareCudaLoads"));
  const int at_open = loads ? loads->load() : 0;
  if (loads) CHECK_EQ(at_open, static_cast<int>(gpu::KernelId::Count));
  const Block out = floats();
  add(out, out, 1);
  if (loads) CHECK_EQ(loads->load(), at_open);
}

TEST("memory comes back at once on its own stream, and after an event where another stream works with it") {
  const uint32_t side = device().make_stream();
  Block own = floats(), shared = floats(), out = floats();
  fill(shared, 3);
  device().synchronize();
  const void* place = own.data;
  own = {};
  own = floats();
  CHECK_EQ(own.data, place);
  work_on(side);
  add(out, shared, 1);
  work_on(0);
  shared = {};
  const size_t held = device().memory().use().pieces;
  std::vector<Block> others;
  for (int i = 0; i < 4; i++) {
    others.push_back(floats());
    fill(others.back(), 9);
  }
  device().synchronize();
  CHECK_EQ(first(out), 4.0f);
  others.push_back(floats());  // also reclaims memory whose last use has ended
  CHECK_EQ(device().memory().use().pieces, held + others.size() - 1);
}

TEST("an allocation asks each stream for its oldest event, however many it has not passed") {
  constexpr int kRounds = 300;
  const auto* asked = static_cast<const std::atomic<int>*>(gpu::driver().library.symbol("softwareCudaQueries"));
  const uint32_t side = device().make_stream(), other = device().make_stream();
  const Block out = floats();
  device().synchronize();
  floats();
  const size_t pieces = device().memory().use().pieces;
  {
    const test::Blocked blocked(device().stream_of(side).handle);
    const int before = asked ? asked->load() : 0;
    for (int round = 0; round < kRounds; round++) {
      const Block shared = floats();
      for (const uint32_t stream : {side, other}) {
        work_on(stream);
        gpu::touch(shared);
      }
      work_on(0);
    }
    // Allocations also ask for the events of `other`, each of which it has passed.
    if (asked) CHECK(*asked - before <= 4 * kRounds);
    CHECK_EQ(device().memory().use().pieces, pieces + kRounds);
  }
  device().synchronize();
  for (int i = 0; i < 3; i++) floats();
  CHECK_EQ(device().memory().use().pieces, pieces);
}

TEST("work on borrowed memory waits for earlier work of its owner's stream, whose later work waits for it") {
  const uint32_t theirs = device().make_stream();
  const Block lent = floats(), out = floats();
  fill(lent, 1);
  device().synchronize();
  work_on(theirs);
  add(lent, lent, 2);
  work_on(0);
  bool is_kept = true;
  std::shared_ptr<void> owner(&is_kept, [](void* kept) { *static_cast<bool*>(kept) = false; });
  auto piece = std::make_shared<Piece>(device(), lent.data, std::move(owner), device().stream_of(theirs).handle);
  Block borrowed{std::move(piece), lent.data, DType::Float32, kCount, 0};
  add(out, borrowed, 10);
  CHECK(is_kept);
  borrowed = {};
  CHECK(!is_kept);
  work_on(theirs);
  add(lent, lent, 100);
  device().synchronize(theirs);
  work_on(0);
  CHECK_EQ(first(out), 13.0f);
}

TEST("released pinned memory is not reused before its copies have ended") {
  const size_t bytes = kCount * sizeof(float);
  const Block up = floats();
  const auto fill_with = [](gpu::Pinned& pinned, float value) {
    std::fill_n(reinterpret_cast<float*>(pinned.data()), kCount, value);
  };
  {
    gpu::Pinned pinned(device(), bytes);
    fill_with(pinned, 4);
    pinned.start_upload(device(), up.data, 0, bytes);
  }
  gpu::Pinned other(device(), bytes);
  fill_with(other, 9);
  CHECK_EQ(first(up), 4.0f);
  other.start_download(device(), 0, up.data, bytes);
  device().synchronize();
  CHECK(other.is_idle());
  CHECK_EQ(reinterpret_cast<float*>(other.data())[kCount - 1], 4.0f);
}

TEST("each run of a step uses the numbers and the contents of memory at its time") {
  gpu::CapturedStep step(device());
  const Block total = floats();
  Block constant = floats();
  fill(total, 0);
  fill(constant, 5);
  step.begin();
  {
    const Block between = floats();
    add(between, total, 1);
    add(total, between, 1);
    gpu::touch(constant);
  }
  const double number = 7;
  const size_t at = step.put(&number, 1);
  step.end();
  CHECK_EQ(first(total), 0.0f);
  void* place = constant.data;
  constant = {};  // the step keeps the memory
  const Block log = floats();
  auto* const numbers = static_cast<double*>(log.data);
  for (int run = 1; run <= 5; run++) {
    step.rewind();
    const double now = run;
    CHECK_EQ(step.put(&now, 1), at);
    step.launch();
    device().copy(numbers + run, step.address(at), sizeof now);
    const Block other = floats();
    CHECK(other.data != place);
    fill(other, -1);
  }
  CHECK_EQ(first(total), 10.0f);
  double read[6];
  device().download(read, numbers, sizeof read);
  for (int run = 1; run <= 5; run++) CHECK_EQ(read[run], static_cast<double>(run));
}

TEST("a step keeps shareable memory that its owner has let go, until the step and its runs have ended") {
  constexpr size_t kLarge = size_t{1} << 19;
  const Block out = floats(kLarge);
  device().empty_caches();
  const size_t before = device().reserved();
  auto step = std::make_unique<gpu::CapturedStep>(device());
  Block total = shareable_floats(kLarge);
  fill(total, 0);
  step->begin();
  add(total, total, 1);
  add(out, total, 10);
  step->end();
  total = {};
  for (int run = 0; run < 3; run++) {
    step->rewind();
    step->launch();
    const Block other = shareable_floats(kLarge);
    fill(other, -1);
  }
  step.reset();  // the device may not have begun the last run
  CHECK_EQ(first(out), 13.0f);
  for (int i = 0; i < 100; i++) floats();  // the driver may not report at once that the work has ended
  device().empty_caches();
  CHECK_EQ(device().reserved(), before);
}

TEST("a step is destroyed while it runs, and its memory is freed when it has ended") {
  device().empty_caches();
  const size_t before = device().reserved();
  auto step = std::make_unique<gpu::CapturedStep>(device());
  step->begin();
  {
    const Block between = floats(size_t{10} << 18);
    add(between, between, 1);
  }
  step->end();
  const size_t with_step = device().reserved();
  {
    const test::Blocked blocked(device().stream());
    step->launch();
    step.reset();
    for (int i = 0; i < 3; i++) floats();
    CHECK(device().reserved() >= with_step);
  }
  device().empty_caches();
  CHECK_EQ(device().reserved(), before);
}

TEST("an allocation on a full device waits for memory that another stream still uses") {
  constexpr size_t kMost = size_t{300} << 18;  // elements of 300 MiB
  device().empty_caches();
  const uint32_t side = device().make_stream();
  {
    const Block shared = floats(kMost);
    work_on(side);
    gpu::touch(shared);
    work_on(0);
  }
  const Block other = floats(kMost);
  CHECK(other.data);
}

TEST("memory that runs out while a step is captured is an error, and captured work keeps the memory that it names") {
  constexpr size_t kLarge = size_t{200} << 18, kTooLarge = size_t{400} << 18;  // elements of 200 and 400 MiB
  device().empty_caches();
  gpu::CapturedStep step(device());
  step.begin();
  {
    const Block between = floats(kLarge);
    add(between, between, 1);
  }
  const size_t reserved = device().reserved();
  bool has_failed = false;
  try {
    floats(kTooLarge);
  } catch (const gpu::OutOfMemory&) {
    has_failed = true;
  }
  CHECK(has_failed);
  CHECK_EQ(device().reserved(), reserved);
  step.end();
  step.memory()->empty_cache();
  device().settle();
  CHECK_EQ(device().reserved(), reserved);
  step.rewind();
  step.launch();
  device().synchronize();
  gpu::CapturedStep failed(device());
  failed.begin();
  floats(kLarge / 2);
  failed.abort();
  const size_t before = device().reserved();
  failed.memory()->empty_cache();
  device().settle();
  CHECK(device().reserved() < before);
}

TEST("a capture that is aborted leaves the thread as it was") {
  gpu::CapturedStep step(device());
  const Block x = floats();
  fill(x, 2);
  step.begin();
  add(x, x, 1);
  step.abort();
  CHECK_EQ(first(x), 2.0f);
  step.begin();
  add(x, x, 1);
  step.end();
  step.launch();
  CHECK_EQ(first(x), 3.0f);
}

int main() {
  unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
  return test::run_on_device();
}
