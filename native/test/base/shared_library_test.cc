// Tests the search order for a vendor's library, and that the error lists all paths that were tried. All folders that
// the tests make are in a temporary folder. The library that they copy there has no soname, because the loader would
// find a loaded library by that.
#include "base/shared_library.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "test/check.h"

using namespace ringwise;
namespace fs = std::filesystem;

namespace {

const std::vector<std::string> kNames{"libringwise_made_up.so.9", "libringwise_made_up.so"};
const LibraryLocations kPlaces{"RINGWISE_LIBMADE_UP", kNames, {"new/lib", "old/lib"}};

/// Sets the environment variables to folders of a virtual environment, a conda environment and toolkits that exist but
/// hold no library. The destructor unsets the variables and removes the folders.
class MadeUp {
 public:
  MadeUp() {
    std::string name = (fs::temp_directory_path() / "ringwise-libraries-XXXXXX").string();
    CHECK(mkdtemp(name.data()) != nullptr);
    root_ = name;
    for (const char* packages : {"venv/lib/python3.11/site-packages", "conda/lib/python3.12/site-packages",
                                 "conda/lib/python3/dist-packages"}) {
      fs::create_directories(root_ / packages / "nvidia");
    }
    setenv("RINGWISE_NVIDIA_DIR", (root_ / "wheels").c_str(), 1);
    setenv("VIRTUAL_ENV", (root_ / "venv").c_str(), 1);
    setenv("CONDA_PREFIX", (root_ / "conda").c_str(), 1);
    setenv("CUDA_HOME", (root_ / "home").c_str(), 1);
    setenv("CUDA_PATH", (root_ / "path").c_str(), 1);
    unsetenv(kPlaces.variable);
  }
  ~MadeUp() {
    for (const char* name :
         {"RINGWISE_NVIDIA_DIR", "VIRTUAL_ENV", "CONDA_PREFIX", "CUDA_HOME", "CUDA_PATH", kPlaces.variable})
      unsetenv(name);
    fs::remove_all(root_);
  }
  MadeUp(const MadeUp&) = delete;

  /// Returns every file that must be tried, in order. Of the folders of the machine, which come last, the list has only
  /// /usr/local/cuda/lib64.
  std::vector<std::string> files() const {
    std::vector<std::string> all;
    const auto add = [&all](const fs::path& folder) {
      for (const std::string& name : kNames) all.push_back((folder / name).string());
    };
    for (const char* nvidia : {"wheels", "venv/lib/python3.11/site-packages/nvidia",
                               "conda/lib/python3.12/site-packages/nvidia", "conda/lib/python3/dist-packages/nvidia"}) {
      for (const std::string& folder : kPlaces.wheel_folders) add(root_ / nvidia / folder);
    }
    for (const char* folder : {"conda/lib", "conda/targets/x86_64-linux/lib"}) add(root_ / folder);
    add("");  // a bare name, which the loader searches for
    for (const char* folder : {"home/lib64", "path/lib64"}) add(root_ / folder);
    add("/usr/local/cuda/lib64");
    return all;
  }
  /// Copies the library to the path `file`.
  void put(const std::string& file) const {
    fs::create_directories(fs::path(file).parent_path());
    fs::copy_file(RINGWISE_FOUND_LIBRARY, file);
  }
  bool is_own(const std::string& file) const { return file.find(root_.string()) == 0; }
  fs::path root() const { return root_; }

 private:
  fs::path root_;
};

TEST("every place is tried in order: wheels, environments, the loader's own, toolkits; failures() has them all") {
  const MadeUp made_up;
  const SharedLibrary library(kPlaces);
  CHECK(!library.is_open() && library.path().empty() && library.symbol("ringwise_found") == nullptr);
  const std::vector<std::string> files = made_up.files();
  CHECK(library.tried().size() >= files.size());
  const std::string text = library.failures();
  size_t at = 0;
  for (size_t i = 0; i < files.size() && i < library.tried().size(); ++i) {
    CHECK_EQ(library.tried()[i].substr(0, files[i].size() + 1), files[i] + ":");
    at = text.find((i == 0 ? "" : "; ") + files[i] + ": ", at);
    CHECK(at != std::string::npos);
  }
}

TEST("the first that loads is taken, and what did not load before it is known") {
  const MadeUp made_up;
  const std::vector<std::string> files = made_up.files();
  for (size_t i = files.size(); i-- > 0;) {  // each new copy comes before the copies that exist already
    if (!made_up.is_own(files[i])) continue;
    made_up.put(files[i]);
    const SharedLibrary library(kPlaces);
    CHECK_EQ(library.path(), files[i]);
    CHECK_EQ(library.tried().size(), i);
    int (*found)() = nullptr;
    CHECK(library.bind("ringwise_found", found) && found() == 42);
    CHECK(!library.bind("ringwise_lost", found) && found == nullptr);
  }
}

TEST("what is no library is passed over, with the reason") {
  const MadeUp made_up;
  const std::vector<std::string> files = made_up.files();
  fs::create_directories(fs::path(files[0]).parent_path());
  fs::copy_file(__FILE__, files[0]);
  made_up.put(files[1]);
  const SharedLibrary library(kPlaces);
  CHECK_EQ(library.path(), files[1]);
  CHECK_EQ(library.tried().size(), size_t{1});
  CHECK(library.failures().find(files[0]) == 0 && library.failures().find("No such file") == std::string::npos);
}

TEST("where its variable is set, that is the only place") {
  const MadeUp made_up;
  made_up.put(made_up.files()[0]);
  const std::string file = (made_up.root() / "mine.so").string();
  setenv(kPlaces.variable, file.c_str(), 1);
  const SharedLibrary none(kPlaces);
  CHECK(!none.is_open());
  CHECK_EQ(none.tried().size(), size_t{1});
  CHECK(none.failures().find(file + ": ") == 0);
  made_up.put(file);
  const SharedLibrary found(kPlaces);
  CHECK_EQ(found.path(), file);
}

TEST("a library of the driver is looked for where the loader looks, and nowhere else") {
  const MadeUp made_up;
  const SharedLibrary library({kPlaces.variable, kNames, {}});
  CHECK_EQ(library.tried().size(), kNames.size());
}

TEST("one that is loaded already is taken before all others") {
  const MadeUp made_up;
  made_up.put((made_up.root() / "wheels/new/lib/libc.so.6").string());
  const SharedLibrary library({kPlaces.variable, {"libc.so.6"}, kPlaces.wheel_folders});
  CHECK_EQ(library.path(), std::string("libc.so.6"));
  CHECK(library.tried().empty() && library.symbol("ringwise_found") == nullptr);
}

}  // namespace

int main() { return ringwise::test::run_all(); }
