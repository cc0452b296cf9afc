# libringwise.so: ringwise_coll_core behind the C ABI of coll/include/ringwise.h, and nothing else visible.
file(GLOB capi_sources CONFIGURE_DEPENDS capi/*.cc)
add_library(ringwise SHARED ${capi_sources})
target_include_directories(ringwise INTERFACE ${CMAKE_CURRENT_SOURCE_DIR}/coll/include)
target_link_libraries(ringwise PRIVATE ringwise_coll_core)
if(UNIX AND NOT APPLE)
  set(exports ${CMAKE_CURRENT_SOURCE_DIR}/capi/exports.map)
  target_link_options(ringwise PRIVATE -Wl,--version-script,${exports})
  set_target_properties(ringwise PROPERTIES LINK_DEPENDS ${exports})
  if(NOT RINGWISE_SANITIZE)
    # libstdc++ inside, as in the addons.
    target_link_options(ringwise PRIVATE -static-libstdc++ -static-libgcc -Wl,--gc-sections -s)
  endif()
endif()
