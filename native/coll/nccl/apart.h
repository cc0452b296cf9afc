// Ends communicators on separate threads, so that the threads of their groups need not wait.
#pragma once

#include <functional>

namespace ringwise::nccl {

/// Runs `end`, which ends a communicator, on a new thread. The thread may outlive the caller, its group and a worker
/// thread of Node. At exit the process waits for it, at most 5 s: otherwise NCCL's global state would be destroyed
/// while the thread uses it, and the process would crash.
void end_apart(std::function<void()> end);

}  // namespace ringwise::nccl
