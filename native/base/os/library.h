// Shared libraries as the operating system loads them. Each system implements this in a folder of its own.
#pragma once

#include <string>
#include <vector>

namespace ringwise::os {

/// Loads a library, given by its path or by a name that the system looks for, with all that it needs. Returns a handle
/// that stays valid until the process ends; null if the library does not load. `reason` then begins with `path`.
void* open_library(const std::string& path, std::string& reason);

/// Returns the handle of a library that this process has already loaded under that name; null if it has not.
void* loaded_library(const std::string& name);

/// Returns the address of a symbol; null if the library does not have it.
void* library_symbol(void* library, const char* name);

/// Returns the path of the file that holds the code at an address; an empty text if no file does.
std::string file_of(const void* code);

/// Keeps the library that holds the code at an address loaded until the process ends. Node unloads the addons of a
/// worker thread when that thread ends, while threads that the addon started may still sleep in its code.
void keep_loaded(const void* code);

/// Returns the paths that match a pattern, in which * stands for any part of a name.
std::vector<std::string> matching_paths(const std::string& pattern);

}  // namespace ringwise::os
