#include "base/os/library.h"

#include <windows.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/os/windows/text.h"

namespace ringwise::os {

namespace {

HMODULE module_of(const void* code, DWORD flags) {
  HMODULE module = nullptr;
  const auto address = static_cast<const wchar_t*>(code);
  GetModuleHandleExW(flags | GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS, address, &module);
  return module;
}

/// Returns whether a name matches a pattern, in which * stands for any text.
bool matches(const std::wstring& name, const std::wstring& pattern) {
  const size_t star = pattern.find(L'*');
  if (star == std::wstring::npos) return name == pattern;
  if (name.compare(0, star, pattern, 0, star) != 0) return false;
  const std::wstring rest = pattern.substr(star + 1);
  for (size_t at = star; at <= name.size(); ++at)
    if (matches(name.substr(at), rest)) return true;
  return false;
}

}  // namespace

void* open_library(const std::string& path, std::string& reason) {
  std::wstring file = wide(path);
  std::replace(file.begin(), file.end(), L'/', L'\\');  // LoadLibrary wants these
  const bool is_path = file.find(L'\\') != std::wstring::npos;
  // Finds the libraries that it needs beside it, too.
  void* const library = LoadLibraryExW(file.c_str(), nullptr, is_path ? LOAD_WITH_ALTERED_SEARCH_PATH : 0);
  if (!library) {
    const int error = static_cast<int>(GetLastError());
    reason = path + ": " + std::system_category().message(error) + " (error " + std::to_string(error) + ")";
  }
  return library;
}

void* loaded_library(const std::string& name) { return GetModuleHandleW(wide(name).c_str()); }

void* library_symbol(void* library, const char* name) {
  return reinterpret_cast<void*>(GetProcAddress(static_cast<HMODULE>(library), name));
}

std::string file_of(const void* code) {
  const HMODULE module = module_of(code, GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT);
  std::wstring path(MAX_PATH, L'\0');
  DWORD units = 0;
  while (module && (units = GetModuleFileNameW(module, path.data(), static_cast<DWORD>(path.size()))) == path.size())
    path.resize(path.size() * 2);
  path.resize(units);
  std::replace(path.begin(), path.end(), L'\\', L'/');
  return utf8(path);
}

void keep_loaded(const void* code) { module_of(code, GET_MODULE_HANDLE_EX_FLAG_PIN); }

std::vector<std::string> matching_paths(const std::string& pattern) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  std::vector<fs::path> found = {fs::path()};
  for (const fs::path& part : fs::path(wide(pattern))) {
    std::vector<fs::path> next;
    for (const fs::path& folder : found) {
      if (part.native().find(L'*') == std::wstring::npos) {
        if (fs::exists(folder / part, ignored)) next.push_back(folder / part);
        continue;
      }
      for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored))
        if (matches(entry.path().filename().native(), part.native())) next.push_back(entry.path());
    }
    found = std::move(next);
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> paths;
  for (const fs::path& path : found) paths.push_back(utf8(path.generic_wstring()));
  return paths;
}

}  // namespace ringwise::os
