// Kernels that take long are cut into parts, which a few threads share. The threads are made by the first such kernel
// and sleep in between; they never spin, because cores are few where several ranks share a host.
//
// A thread that is free, or the caller, takes the next part. So the caller waits only for parts that other threads are
// computing: if no other thread gets a core, the caller computes all parts. A kernel that runs inside a part, or while
// the threads work for another JavaScript thread, runs on its own thread alone. The result of a part does not depend on
// the thread that computes it.
#pragma once

#include <algorithm>
#include <cstddef>

namespace ringwise::tensor {

constexpr int kMostThreads = 256;

/// Returns the number of threads that share a kernel, the caller included. It begins as the number in OMP_NUM_THREADS;
/// without that, as the processor's cores divided by LOCAL_WORLD_SIZE, the number of ranks on this host.
int thread_count();

/// Sets the number for the whole process, at least 1 and at most kMostThreads. Waits until a kernel that the threads
/// share has ended.
void set_thread_count(int count);

/// Returns the first value of thread_count(), from the two variables (null: not set).
int default_thread_count(const char* omp_num_threads, const char* local_world_size, int cores);

/// Calls part(context, i) for every i in [0, parts), each once. Throws the first exception of a part again, after which
/// later parts may not have run.
void run_parts(size_t parts, void (*part)(void* context, size_t i), void* context);

/// Returns the number of parts for work of `count` steps, of which fewer than `grain` are not worth a thread.
inline size_t parts_of(size_t count, size_t grain) {
  if (count < 2 * grain) return 1;
  return std::min(count / grain, static_cast<size_t>(thread_count()));
}

/// Calls body(i) for every i in [0, parts), like run_parts().
template <class Body>
void for_each_part(size_t parts, Body body) {
  if (parts == 1)
    body(size_t{0});
  else
    run_parts(parts, [](void* context, size_t i) { (*static_cast<Body*>(context))(i); }, &body);
}

/// Calls body(begin, end) for ranges that cover [0, count).
template <class Body>
void parallel_for(size_t count, size_t grain, Body body) {
  const size_t parts = parts_of(count, std::max<size_t>(grain, 1));
  for_each_part(parts, [&](size_t i) { body(count * i / parts, count * (i + 1) / parts); });
}

}  // namespace ringwise::tensor
