// Tests the search order for a vendor's library, and that the error lists all paths that were tried. All folders that
// the tests make are in a temporary folder. The library that they copy there (the build passes its path in
// RINGWISE_FOUND_LIBRARY) has no soname: with one, the loader would match a bare name with a copy that is loaded
// already.
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

const std::vector<std::string> kNames{"libringwise_fake.so.9", "libringwise_fake.so"};
const LibraryLocations kLocations{"RINGWISE_LIBFAKE", kNames, {"new/lib", "old/lib"}};

/// A temporary folder with installations that hold no library yet. The constructor creates a virtual environment and a
/// conda environment, and lets the variables of the search name folders in the temporary one; the folders of wheels and
/// toolkits exist only after put(). The destructor unsets the variables, without restoring earlier values, and removes
/// the folder.
class FakeInstallations {
 public:
  FakeInstallations() {
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
    unsetenv(kLocations.variable);
  }
  ~FakeInstallations() {
    for (const char* name :
         {"RINGWISE_NVIDIA_DIR", "VIRTUAL_ENV", "CONDA_PREFIX", "CUDA_HOME", "CUDA_PATH", kLocations.variable})
      unsetenv(name);
    fs::remove_all(root_);
  }
  FakeInstallations(const FakeInstallations&) = delete;

  /// Returns the paths and bare names that the search must try first, in order. The list ends with
  /// /usr/local/cuda/lib64; the search goes on with system folders that differ between machines.
  std::vector<std::string> files() const {
    std::vector<std::string> all;
    const auto add = [&all](const fs::path& folder) {
      for (const std::string& name : kNames) all.push_back((folder / name).string());
    };
    for (const char* nvidia : {"wheels", "venv/lib/python3.11/site-packages/nvidia",
                               "conda/lib/python3.12/site-packages/nvidia", "conda/lib/python3/dist-packages/nvidia"}) {
      for (const std::string& folder : kLocations.wheel_folders) add(root_ / nvidia / folder);
    }
#if defined(__aarch64__)
    const char* const targets = "conda/targets/sbsa-linux/lib";
#else
    const char* const targets = "conda/targets/x86_64-linux/lib";
#endif
    for (const char* folder : {"conda/lib", targets}) add(root_ / folder);
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
  bool is_in_root(const std::string& file) const { return file.find(root_.string()) == 0; }
  fs::path root() const { return root_; }

 private:
  fs::path root_;
};

TEST(
    "locations are tried in order: wheels, environments, the loader's search path, toolkits; failures() lists them "
    "all") {
  const FakeInstallations fake;
  const SharedLibrary library(kLocations);
  CHECK(!library.is_open() && library.path().empty() && library.symbol("ringwise_found") == nullptr);
  const std::vector<std::string> files = fake.files();
  CHECK(library.tried().size() >= files.size());
  const std::string text = library.failures();
  size_t at = 0;
  for (size_t i = 0; i < files.size() && i < library.tried().size(); ++i) {
    CHECK_EQ(library.tried()[i].substr(0, files[i].size() + 1), files[i] + ":");
    at = text.find((i == 0 ? "" : "; ") + files[i] + ": ", at);
    CHECK(at != std::string::npos);
  }
}

TEST("the first file that loads is used, and tried() lists the files before it") {
  const FakeInstallations fake;
  const std::vector<std::string> files = fake.files();
  for (size_t i = files.size(); i-- > 0;) {  // each new copy comes before the copies that exist already
    if (!fake.is_in_root(files[i])) continue;
    fake.put(files[i]);
    const SharedLibrary library(kLocations);
    CHECK_EQ(library.path(), files[i]);
    CHECK_EQ(library.tried().size(), i);
    int (*found)() = nullptr;
    CHECK(library.bind("ringwise_found", found) && found() == 42);
    CHECK(!library.bind("ringwise_lost", found) && found == nullptr);
  }
}

TEST("a file that is not a library is skipped, and failures() gives the reason") {
  const FakeInstallations fake;
  const std::vector<std::string> files = fake.files();
  fs::create_directories(fs::path(files[0]).parent_path());
  fs::copy_file(__FILE__, files[0]);  // this source text
  fake.put(files[1]);
  const SharedLibrary library(kLocations);
  CHECK_EQ(library.path(), files[1]);
  CHECK_EQ(library.tried().size(), size_t{1});
  CHECK(library.failures().find(files[0]) == 0 && library.failures().find("No such file") == std::string::npos);
}

TEST("if the library's variable is set, only the path in it is tried") {
  const FakeInstallations fake;
  fake.put(fake.files()[0]);
  const std::string file = (fake.root() / "mine.so").string();
  setenv(kLocations.variable, file.c_str(), 1);
  const SharedLibrary none(kLocations);
  CHECK(!none.is_open());
  CHECK_EQ(none.tried().size(), size_t{1});
  CHECK(none.failures().find(file + ": ") == 0);
  fake.put(file);
  const SharedLibrary found(kLocations);
  CHECK_EQ(found.path(), file);
}

TEST("without folders of wheels, as for a library of the driver, only the loader's search path is tried") {
  const FakeInstallations fake;
  const SharedLibrary library({kLocations.variable, kNames, {}});
  CHECK_EQ(library.tried().size(), kNames.size());
}

TEST("a library that the process has loaded already is used, and no file is tried") {
  const FakeInstallations fake;
  fake.put((fake.root() / "wheels/new/lib/libc.so.6").string());
  const SharedLibrary library({kLocations.variable, {"libc.so.6"}, kLocations.wheel_folders});
  CHECK_EQ(library.path(), std::string("libc.so.6"));
  // The copy in wheels/ would have this symbol.
  CHECK(library.tried().empty() && library.symbol("ringwise_found") == nullptr);
}

}  // namespace

int main() { return ringwise::test::run_all(); }
