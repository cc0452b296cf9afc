// Ends communicators on threads of their own, so that the threads of their groups need not wait.
#pragma once

#include <functional>

namespace ringwise::nccl {

/// Runs `end`, which ends a communicator, on a thread of its own. The thread may outlive the caller, its group and a
/// worker thread of Node. The process waits for it when it ends, at most 5 s: NCCL's global state would be
/// destroyed under the thread otherwise, and the process would crash.
void end_apart(std::function<void()> end);

}  // namespace ringwise::nccl
