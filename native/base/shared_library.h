// Libraries that are opened while the program runs, so that it starts where they are not installed. The vendors'
// libraries hide in several locations: Python wheels, conda, toolkits, the system's own folders. One search order
// serves all, and whoever finds nothing is told every path that was tried.
#pragma once

#include <string>
#include <vector>

namespace ringwise {

struct LibraryLocations {
  const char* variable;              // environment variable with a path; when set, only that path is tried
  std::vector<std::string> sonames;  // best first
  // Folders below a `site-packages/nvidia`. Empty for libraries of the driver, which lie where the loader looks.
  std::vector<std::string> wheel_folders;
};

class SharedLibrary {
 public:
  SharedLibrary() = default;
  /// Opens the first of `locations` that loads. It stays open until the process ends, because code of it may be
  /// running.
  explicit SharedLibrary(const LibraryLocations& locations);

  bool is_open() const { return handle_ != nullptr; }
  /// Null when the library has no such symbol.
  void* symbol(const char* name) const;
  /// The same, as a function. False when the library has none of that name.
  template <class Function>
  bool bind(const char* name, Function*& function) const {
    function = reinterpret_cast<Function*>(symbol(name));
    return function != nullptr;
  }
  /// Opens what the patterns match, seen from the folder of the library that has this symbol: libraries that others
  /// will ask for by their bare names, and that the loader would not find. What does not load is left alone.
  void open_beside(const char* symbol_of, const std::vector<std::string>& patterns) const;
  /// Where it was found; empty when it was not.
  const std::string& path() const { return path_; }
  /// Every path that did not load, with the reason, in the order in which they were tried.
  const std::vector<std::string>& tried() const { return tried_; }
  /// The same as one text.
  std::string failures() const;

 private:
  bool open(const std::string& path);

  void* handle_ = nullptr;
  std::string path_;
  std::vector<std::string> tried_;
};

}  // namespace ringwise
