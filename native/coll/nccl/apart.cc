#include "coll/nccl/apart.h"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <utility>

namespace ringwise::nccl {

namespace {

/// Longest wait of a process that exits. NCCL needs milliseconds once no graph contains operations of the communicator,
/// and the addon of tensors has destroyed all graphs by then.
constexpr std::chrono::seconds kLongestEnd{5};

struct Running {
  std::mutex mutex;
  std::condition_variable changed;
  size_t count = 0;
};

Running& running() {
  static Running& only = *new Running;  // never destroyed, because the threads use it until the process has ended
  return only;
}

void await_all() {
  Running& all = running();
  std::unique_lock lock(all.mutex);
  all.changed.wait_for(lock, kLongestEnd, [&all] { return all.count == 0; });
}

}  // namespace

void end_apart(std::function<void()> end) {
  // Functions of atexit() are called in reverse order. NCCL registered the function that destroys its state earlier,
  // because a communicator exists, so await_all() is called before it.
  static const int registered = std::atexit(await_all);
  static_cast<void>(registered);
  Running& all = running();
  {
    const std::lock_guard lock(all.mutex);
    ++all.count;
  }
  std::thread([end = std::move(end), &all] {
    end();
    const std::lock_guard lock(all.mutex);
    --all.count;
    all.changed.notify_all();
  }).detach();
}

}  // namespace ringwise::nccl
