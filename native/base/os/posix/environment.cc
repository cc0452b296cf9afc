#include "base/os/environment.h"

#include <cstdlib>

namespace ringwise::os {

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

void default_variable(const char* name, const char* value) { setenv(name, value, 0); }

}  // namespace ringwise::os
