// The cores that threads run on.
#pragma once

namespace ringwise::os {

/// Returns the number of cores that this process may use; 0 if it is not known.
int usable_cores() noexcept;

/// Returns the number of the core that this thread runs on; −1 where the system does not tell.
int current_core() noexcept;

/// Moves this thread away from `core`. Returns false if it may use no other core or the system does not let threads
/// choose.
bool leave_core(int core) noexcept;

}  // namespace ringwise::os
