#include "base/os/environment.h"

#include <cstdlib>

namespace ringwise::os {

void default_variable(const char* name, const char* value) { setenv(name, value, 0); }

}  // namespace ringwise::os
