#include "base/os/windows/text.h"

#include <windows.h>

namespace ringwise::os {

std::wstring wide(std::string_view text) {
  const int bytes = static_cast<int>(text.size());
  std::wstring result(static_cast<size_t>(MultiByteToWideChar(CP_UTF8, 0, text.data(), bytes, nullptr, 0)), L'\0');
  MultiByteToWideChar(CP_UTF8, 0, text.data(), bytes, result.data(), static_cast<int>(result.size()));
  return result;
}

std::string utf8(std::wstring_view text) {
  const int units = static_cast<int>(text.size());
  const auto convert = [&](char* to, int bytes) {
    return WideCharToMultiByte(CP_UTF8, 0, text.data(), units, to, bytes, nullptr, nullptr);
  };
  std::string result(static_cast<size_t>(convert(nullptr, 0)), '\0');
  convert(result.data(), static_cast<int>(result.size()));
  return result;
}

}  // namespace ringwise::os
