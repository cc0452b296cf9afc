#include "base/os/environment.h"

#include <windows.h>

#include "base/os/windows/text.h"

namespace ringwise::os {

// Not std::getenv(): the C library has a copy of the environment, which does not see what Node has changed.
std::string variable(const char* name) {
  const std::wstring key = wide(name);
  std::wstring value;
  DWORD units = GetEnvironmentVariableW(key.c_str(), nullptr, 0);  // with the closing zero; 0 if it is not set
  while (units > value.size()) {
    value.resize(units);
    units = GetEnvironmentVariableW(key.c_str(), value.data(), units);  // without the zero, unless it does not fit
  }
  value.resize(units);
  return utf8(value);
}

void default_variable(const char* name, const char* value) {
  const std::wstring key = wide(name);
  if (GetEnvironmentVariableW(key.c_str(), nullptr, 0) == 0) SetEnvironmentVariableW(key.c_str(), wide(value).c_str());
}

}  // namespace ringwise::os
