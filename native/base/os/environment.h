// The environment of this process.
#pragma once

namespace ringwise::os {

/// Sets an environment variable unless it is set. Must not run beside other threads that read the environment.
void default_variable(const char* name, const char* value);

}  // namespace ringwise::os
