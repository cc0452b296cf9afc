#include "tensor/threads.h"

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "base/os/environment.h"

namespace ringwise::tensor {

namespace {

thread_local bool inside_part = false;

struct Job {
  void (*part)(void*, size_t);
  void* context;
  size_t parts;
  std::atomic<size_t> next{0};
  int helpers = 0;                     // threads that compute parts, besides the caller; guarded by the pool's mutex
  std::exception_ptr error = nullptr;  // the first one; guarded by the pool's mutex

  bool has_parts() const { return next.load(std::memory_order_relaxed) < parts; }
};

class Pool {
 public:
  /// Computes a job on up to `threads` threads. Returns false, without computing, while another caller's job runs.
  bool run(Job& job, int threads) {
    const std::unique_lock turn(turn_, std::try_to_lock);
    if (!turn) return false;
    std::unique_lock lock(mutex_);
    start(threads - 1);
    job_ = &job;
    lock.unlock();
    if (job.parts > threads_.size())
      wake_.notify_all();
    else
      for (size_t i = 1; i < job.parts; i++) wake_.notify_one();
    compute(job);
    lock.lock();
    job_ = nullptr;
    done_.wait(lock, [&] { return job.helpers == 0; });
    return true;
  }

  /// Ends the threads; the next job makes new ones.
  void stop() {
    const std::lock_guard turn(turn_);
    {
      const std::lock_guard lock(mutex_);
      is_stopping_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    is_stopping_ = false;
  }

 private:
  void start(int helpers) {
    try {
      while (static_cast<int>(threads_.size()) < helpers) threads_.emplace_back([this] { help(); });
    } catch (const std::system_error&) {
      // The system allows no more threads: the existing ones and the caller do the work.
    }
  }

  void help() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return is_stopping_ || (job_ != nullptr && job_->has_parts()); });
      if (is_stopping_) return;
      Job& job = *job_;
      job.helpers++;
      lock.unlock();
      compute(job);
      lock.lock();
      if (--job.helpers == 0) done_.notify_one();
    }
  }

  void compute(Job& job) {
    inside_part = true;
    for (;;) {
      const size_t i = job.next.fetch_add(1, std::memory_order_relaxed);
      if (i >= job.parts) break;
      try {
        job.part(job.context, i);
      } catch (...) {
        const std::lock_guard lock(mutex_);
        if (!job.error) job.error = std::current_exception();
      }
    }
    inside_part = false;
  }

  std::mutex turn_;  // held by the caller whose job runs
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  Job* job_ = nullptr;
  bool is_stopping_ = false;
  std::vector<std::thread> threads_;
};

// Never destroyed: at the end of the process, threads may still wait on its condition variables.
Pool& pool() {
  static Pool& instance = *new Pool;
  return instance;
}

// Returns the number in `text`, at most kMostThreads; 0 if there is none above 0.
int positive(const char* text) {
  const long value = text == nullptr ? 0 : std::strtol(text, nullptr, 10);  // the first number of a list such as "4,2"
  return static_cast<int>(std::clamp(value, 0L, static_cast<long>(kMostThreads)));
}

std::atomic<int>& chosen_count() {
  static std::atomic<int> count =
      default_thread_count(os::variable("OMP_NUM_THREADS").c_str(), os::variable("LOCAL_WORLD_SIZE").c_str(),
                           static_cast<int>(std::thread::hardware_concurrency()));
  return count;
}

}  // namespace

int default_thread_count(const char* omp_num_threads, const char* local_world_size, int cores) {
  if (const int wanted = positive(omp_num_threads)) return wanted;
  return std::clamp(cores / std::max(positive(local_world_size), 1), 1, kMostThreads);
}

int thread_count() { return chosen_count().load(std::memory_order_relaxed); }

void set_thread_count(int count) {
  chosen_count().store(std::clamp(count, 1, kMostThreads), std::memory_order_relaxed);
  pool().stop();
}

void run_parts(size_t parts, void (*part)(void* context, size_t i), void* context) {
  Job job{part, context, parts};
  const int threads = thread_count();
  if (parts > 1 && threads > 1 && !inside_part && pool().run(job, threads)) {
    if (job.error) std::rethrow_exception(job.error);
    return;
  }
  for (size_t i = 0; i < parts; i++) part(context, i);
}

}  // namespace ringwise::tensor
