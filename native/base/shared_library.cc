#include "base/shared_library.h"

#include "base/os/environment.h"
#include "base/os/library.h"

namespace ringwise {

namespace {

// What NVIDIA calls this platform in the folders of its packages.
#if defined(__aarch64__)
constexpr const char* kTarget = "sbsa-linux";
#else
constexpr const char* kTarget = "x86_64-linux";
#endif

using os::variable;

/// Folders that are searched before those of the dynamic loader (`first`) and after them (`last`).
struct Folders {
  std::vector<std::string> first, last;
};

Folders folders_of(const LibraryLocations& locations) {
  Folders folders;
  if (locations.wheel_folders.empty()) return folders;
  const auto add_wheels = [&](std::vector<std::string>& to, const std::string& nvidia) {
    for (const std::string& folder : locations.wheel_folders) to.push_back(nvidia + "/" + folder);
  };
  const auto add_environment = [&](std::vector<std::string>& to, const std::string& root) {
    for (const char* packages : {"site", "dist"}) {
      for (const std::string& found : os::matching_paths(root + "/lib/python3*/" + packages + "-packages/nvidia"))
        add_wheels(to, found);
    }
  };
  if (const std::string path = variable("RINGWISE_NVIDIA_DIR"); !path.empty()) add_wheels(folders.first, path);
  if (const std::string path = variable("VIRTUAL_ENV"); !path.empty()) add_environment(folders.first, path);
  if (const std::string path = variable("CONDA_PREFIX"); !path.empty()) {
    add_environment(folders.first, path);
    folders.first.insert(folders.first.end(), {path + "/lib", path + "/targets/" + kTarget + "/lib"});
  }
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const std::string path = variable(name); !path.empty()) folders.last.push_back(path + "/lib64");
  }
  folders.last.push_back("/usr/local/cuda/lib64");
  for (const char* root : {"/usr/local", "/usr", "/opt/*"}) add_environment(folders.last, root);
  return folders;
}

}  // namespace

SharedLibrary::SharedLibrary(const LibraryLocations& locations) {
  if (const std::string only = variable(locations.variable); !only.empty()) {
    open(only);
    return;
  }
  for (const std::string& name : locations.sonames) {
    handle_ = os::loaded_library(name);
    if (!handle_) continue;
    path_ = name;
    return;
  }
  const Folders folders = folders_of(locations);
  const auto open_in = [&](const std::vector<std::string>& all) {
    for (const std::string& folder : all) {
      for (const std::string& name : locations.sonames) {
        if (open(folder + "/" + name)) return true;
      }
    }
    return false;
  };
  if (open_in(folders.first)) return;
  for (const std::string& name : locations.sonames) {
    if (open(name)) return;
  }
  open_in(folders.last);
}

bool SharedLibrary::open(const std::string& path) {
  std::string reason;
  handle_ = os::open_library(path, reason);
  if (handle_) {
    path_ = path;
    return true;
  }
  tried_.push_back(reason);
  return false;
}

void SharedLibrary::open_beside(const char* symbol_of, const std::vector<std::string>& patterns) const {
  void* const known = symbol(symbol_of);
  if (!known) return;
  const std::string file = os::file_of(known);
  const std::string folder = file.substr(0, file.rfind('/') + 1);
  if (folder.empty()) return;
  for (const std::string& pattern : patterns) {
    std::string ignored;
    for (const std::string& path : os::matching_paths(folder + pattern)) os::open_library(path, ignored);
  }
}

std::string SharedLibrary::failures() const {
  std::string text;
  for (const std::string& failure : tried_) text += (text.empty() ? "" : "; ") + failure;
  return text;
}

void* SharedLibrary::symbol(const char* name) const { return handle_ ? os::library_symbol(handle_, name) : nullptr; }

}  // namespace ringwise
