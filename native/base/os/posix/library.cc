#include "base/os/library.h"

#include <dlfcn.h>
#include <glob.h>

namespace ringwise::os {

void* open_library(const std::string& path, std::string& reason) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* const text = dlerror();  // begins with the path
    reason = text ? text : path;
  }
  return library;
}

void* loaded_library(const std::string& name) { return dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD); }

void* library_symbol(void* library, const char* name) { return dlsym(library, name); }

std::string file_of(const void* code) {
  Dl_info found{};
  return dladdr(code, &found) != 0 && found.dli_fname ? found.dli_fname : "";
}

void keep_loaded(const void* code) {
  if (const std::string file = file_of(code); !file.empty())
    dlopen(file.c_str(), RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

std::vector<std::string> matching_paths(const std::string& pattern) {
  glob_t found{};
  std::vector<std::string> paths;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0) paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  return paths;
}

}  // namespace ringwise::os
