// The environment of this process.
#pragma once

#include <string>

namespace ringwise::os {

/// Returns the value of an environment variable; an empty text if it is not set.
std::string variable(const char* name);

/// Sets an environment variable unless it is set. Must not run beside other threads that read the environment.
void default_variable(const char* name, const char* value);

}  // namespace ringwise::os
