# Generates C++ headers in ${ringwise_generated} from the kernel declarations in packages/tensor when a build is
# configured. A change of a declaration configures the build again.
set(ringwise_generated ${CMAKE_CURRENT_BINARY_DIR}/generated)
get_filename_component(ringwise_root ${CMAKE_CURRENT_SOURCE_DIR} DIRECTORY)
set(ringwise_declarations ${ringwise_root}/packages/tensor/src/backends/declarations)
find_program(RINGWISE_NODE node REQUIRED)
file(GLOB ringwise_declaration_files CONFIGURE_DEPENDS ${ringwise_declarations}/*.ts generate/*.mjs)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${ringwise_declaration_files})
execute_process(
  COMMAND ${RINGWISE_NODE} --import ${ringwise_root}/packages/testing/loader/register.mjs
          ${CMAKE_CURRENT_SOURCE_DIR}/generate/main.mjs ${ringwise_generated}
  COMMAND_ERROR_IS_FATAL ANY)
