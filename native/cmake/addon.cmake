# ringwise_addon(name CORE core SOURCES sources…): builds the Node addon `name.node` on top of ringwise_<core>_core.
function(ringwise_addon name)
  cmake_parse_arguments(PARSE_ARGV 1 addon "" "CORE" "SOURCES")
  file(GLOB sources CONFIGURE_DEPENDS ${addon_SOURCES})
  set(target ringwise_${name})
  add_library(${target} SHARED ${sources})
  set_target_properties(${target} PROPERTIES PREFIX "" SUFFIX ".node" OUTPUT_NAME ${name})
  target_include_directories(${target} SYSTEM PRIVATE ${CMAKE_JS_INC})
  target_link_libraries(${target} PRIVATE ${CMAKE_JS_LIB} ringwise_${addon_CORE}_core)
  # SWALLOW…: a call into JavaScript fails once a worker ends, and so does the attempt to throw that failure as a
  # JavaScript error. Without this, node-addon-api then ends the process.
  target_compile_definitions(${target} PRIVATE NAPI_VERSION=9 NODE_ADDON_API_CPP_EXCEPTIONS
                             NODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS)
  if(name STREQUAL "tensor") # so many of its files include Node's headers that precompiling them pays
    target_precompile_headers(${target} PRIVATE <napi.h> ${PROJECT_SOURCE_DIR}/cmake/precompiled.h)
  else()
    target_precompile_headers(${target} REUSE_FROM ringwise_coll_core)
  endif()
  ringwise_standalone(${target})
  if(APPLE)
    # Node's own symbols are found when the addon is loaded.
    target_link_options(${target} PRIVATE -Wl,-undefined,dynamic_lookup)
  elseif(UNIX)
    set(exports ${PROJECT_SOURCE_DIR}/node/exports.map)
    target_link_options(${target} PRIVATE -Wl,--version-script,${exports})
    set_target_properties(${target} PROPERTIES LINK_DEPENDS ${exports})
    # Never unload the code; see keep_loaded() in base/os/library.h, which does the same on other systems.
    target_link_options(${target} PRIVATE -Wl,-z,nodelete)
  endif()
endfunction()
