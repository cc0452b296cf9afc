# Language level, warnings and symbol visibility. There is no -march option, because kernels choose their instruction
# set at run time.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-O3> $<$<COMPILE_LANGUAGE:CXX>:-Wall>
                    $<$<COMPILE_LANGUAGE:CXX>:-Wextra>)
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Contract products and sums to FMA across statements, as GCC does by default.
  add_compile_options(-ffp-contract=fast)
endif()
if(RINGWISE_SANITIZE)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${RINGWISE_SANITIZE}>
                      $<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize-recover=all> $<$<COMPILE_LANGUAGE:CXX>:-g>
                      $<$<COMPILE_LANGUAGE:CXX>:-O1>)
  add_link_options(-fsanitize=${RINGWISE_SANITIZE})
endif()

# ringwise_standalone(target): strips a shared library, and links what it needs of the compiler statically, so that it
# does not depend on the versions that the host has.
function(ringwise_standalone target)
  if(APPLE)
    target_link_options(${target} PRIVATE -Wl,-dead_strip)
    # Apple's linker and zig's have different options for leaving out local symbols.
    if(CMAKE_CXX_COMPILER_ID STREQUAL "AppleClang")
      target_link_options(${target} PRIVATE -Wl,-x)
    else()
      target_link_options(${target} PRIVATE -s)
    endif()
    # A library holds its own name, which CMake would make its path in the build folder.
    set_target_properties(${target} PROPERTIES NO_SONAME ON)
    target_link_options(${target} PRIVATE -Wl,-install_name,@rpath/$<TARGET_FILE_NAME:${target}>)
  else()
    target_link_options(${target} PRIVATE -Wl,--gc-sections -s)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      # Zig, the clang of releases, does it by itself.
      target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc)
    endif()
  endif()
endfunction()
