// Loads libraries at run time, so that programs also start where they are not installed. Vendors' libraries may be in
// Python wheels, conda environments, toolkits or system folders. All are searched in one order, and an error can list
// every path that was tried.
#pragma once

#include <string>
#include <vector>

namespace ringwise {

struct LibraryLocations {
  const char* variable;              // environment variable with a path; when set, only that path is tried
  std::vector<std::string> sonames;  // best first
  // Folders below a `site-packages/nvidia`. Empty for libraries of the driver, which the loader finds itself.
  std::vector<std::string> wheel_folders;
};

class SharedLibrary {
 public:
  SharedLibrary() = default;
  /// Opens the first library of `locations` that loads. It stays open until the process ends, because its code may be
  /// running.
  explicit SharedLibrary(const LibraryLocations& locations);

  bool is_open() const { return handle_ != nullptr; }
  /// Returns the address of a symbol; null if the library does not have it.
  void* symbol(const char* name) const;
  /// Sets `function` to a function of the library; returns false if there is none of that name.
  template <class Function>
  bool bind(const char* name, Function*& function) const {
    function = reinterpret_cast<Function*>(symbol(name));
    return function != nullptr;
  }
  /// Opens the libraries that match the patterns, relative to the folder of the library that defines `symbol_of`. Other
  /// libraries ask for them by bare names, which the loader would not find. Ignores files that do not load.
  void open_beside(const char* symbol_of, const std::vector<std::string>& patterns) const;
  /// Returns the path of the open library, or only its name if the loader found it by that; empty if none is open.
  const std::string& path() const { return path_; }
  /// Returns every path that did not load, with the reason, in the order in which they were tried.
  const std::vector<std::string>& tried() const { return tried_; }
  /// Returns tried() as one text.
  std::string failures() const;

 private:
  bool open(const std::string& path);

  void* handle_ = nullptr;
  std::string path_;
  std::vector<std::string> tried_;
};

}  // namespace ringwise
