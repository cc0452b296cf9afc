# Chooses the files of base/os. Each function is implemented once per system, in one of these folders:
#   posix     the same everywhere except on Windows
#   linux     Linux
#   portable  what macOS does, by means that Linux has too
#   darwin    what only macOS can do
#   windows   Windows, where only tensor.node runs
# With RINGWISE_PORTABLE=ON, a build for Linux takes the files of `portable` in place of those of the same name in
# `linux`, so that the tests run them. The poller is a kqueue, and is taken only if libkqueue is found, for example in
# CMAKE_PREFIX_PATH.
option(RINGWISE_PORTABLE "On Linux, use what macOS uses where possible" OFF)
file(GLOB os_sources CONFIGURE_DEPENDS base/os/posix/*.cc)
file(GLOB ringwise_linux CONFIGURE_DEPENDS base/os/linux/*.cc)
file(GLOB ringwise_portable CONFIGURE_DEPENDS base/os/portable/*.cc)
file(GLOB ringwise_darwin CONFIGURE_DEPENDS base/os/darwin/*.cc)
file(GLOB ringwise_windows CONFIGURE_DEPENDS base/os/windows/*.cc)
set(ringwise_kqueue "")
if(WIN32)
  set(os_sources ${ringwise_windows})
  add_compile_definitions(NOMINMAX WIN32_LEAN_AND_MEAN _WIN32_WINNT=0x0A00) # 0x0A00 is Windows 10
elseif(APPLE)
  list(APPEND os_sources ${ringwise_portable} ${ringwise_darwin})
elseif(RINGWISE_PORTABLE)
  find_path(RINGWISE_KQUEUE_INCLUDE sys/event.h PATH_SUFFIXES kqueue)
  find_library(RINGWISE_KQUEUE_LIBRARY kqueue)
  if(RINGWISE_KQUEUE_INCLUDE AND RINGWISE_KQUEUE_LIBRARY)
    set(ringwise_kqueue ${RINGWISE_KQUEUE_LIBRARY})
    set_source_files_properties(base/os/portable/poller.cc PROPERTIES INCLUDE_DIRECTORIES ${RINGWISE_KQUEUE_INCLUDE})
  else()
    list(FILTER ringwise_portable EXCLUDE REGEX "/poller.cc$")
  endif()
  message(STATUS "ringwise: portable parts of base/os, kqueue ${ringwise_kqueue}")
  foreach(source ${ringwise_portable})
    get_filename_component(name ${source} NAME)
    list(FILTER ringwise_linux EXCLUDE REGEX "/${name}$")
  endforeach()
  list(APPEND os_sources ${ringwise_linux} ${ringwise_portable})
else()
  list(APPEND os_sources ${ringwise_linux})
endif()
