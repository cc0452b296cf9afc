// Text of this project is UTF-8, that of Windows UTF-16.
#pragma once

#include <string>
#include <string_view>

namespace ringwise::os {

std::wstring wide(std::string_view text);
std::string utf8(std::wstring_view text);

}  // namespace ringwise::os
