# nvcc compiles the CUDA kernels when the addon is built, one image per file of tensor/cuda/kernels.
# tensor/cuda/images/images.cc embeds the images. All other code is plain C++, which opens the driver at run time.
# RINGWISE_CUDA:
#   ON, 1   demands a working nvcc, and compiles machine code for the architectures below that it knows; CI and releases
#           use it
#   AUTO    does the same if this machine has nvcc and a device. Otherwise it compiles no images, because they take
#           longer than all the rest. The software device of the tests compiles the kernels itself and needs no images.
#   OFF, 0  compiles nothing
set(RINGWISE_CUDA "AUTO" CACHE STRING "Compile CUDA kernels: AUTO, ON or OFF")
if(DEFINED ENV{RINGWISE_CUDA})
  set(RINGWISE_CUDA "$ENV{RINGWISE_CUDA}")
endif()
if(RINGWISE_CUDA STREQUAL "1")
  set(RINGWISE_CUDA ON)
elseif(RINGWISE_CUDA STREQUAL "0")
  set(RINGWISE_CUDA OFF)
endif()
# The images hold machine code for those of these architectures that nvcc knows, and PTX of the first one
# for all newer devices. PTX of the last one too would make the images a fifth larger, and no kernel has code for some
# architectures only.
set(RINGWISE_CUDA_ARCHITECTURES "80;90;100;120" CACHE STRING "Compute capabilities to compile CUDA kernels for")
set(RINGWISE_HAVE_CUDA OFF)
if(NOT RINGWISE_NVCC)
  unset(RINGWISE_NVCC CACHE) # forget a cached NOTFOUND: CUDA may have been installed since
endif()

if(NOT RINGWISE_CUDA STREQUAL "OFF" OR RINGWISE_TESTS)
  if(DEFINED ENV{CUDACXX})
    set(RINGWISE_NVCC "$ENV{CUDACXX}")
  else()
    # nvcc is often not on PATH.
    find_program(RINGWISE_NVCC nvcc HINTS "$ENV{CUDA_HOME}/bin" "$ENV{CUDA_PATH}/bin" /usr/local/cuda/bin)
  endif()
  set(ringwise_code "")
  if(RINGWISE_NVCC)
    # Keep the architectures that this nvcc knows. An older nvcc lacks the newest ones.
    execute_process(COMMAND ${RINGWISE_NVCC} --list-gpu-code OUTPUT_VARIABLE ringwise_known ERROR_QUIET)
    foreach(architecture ${RINGWISE_CUDA_ARCHITECTURES})
      if(ringwise_known MATCHES "sm_${architecture}\n")
        list(APPEND ringwise_code ${architecture})
      endif()
    endforeach()
  endif()
  # The vendor's headers are read only by the tests that compare them with our declarations.
  get_filename_component(ringwise_nvcc_folder "${RINGWISE_NVCC}" REALPATH)
  get_filename_component(ringwise_nvcc_folder "${ringwise_nvcc_folder}" DIRECTORY)
  find_path(RINGWISE_CUDA_INCLUDE cuda.h HINTS "${ringwise_nvcc_folder}/../include" /usr/local/cuda/include)
  if(RINGWISE_CUDA STREQUAL "OFF" OR (RINGWISE_CUDA STREQUAL "AUTO" AND NOT EXISTS /dev/nvidiactl))
    # no images
  elseif(ringwise_code)
    set(RINGWISE_HAVE_CUDA ON)
  elseif(RINGWISE_CUDA STREQUAL "ON")
    message(FATAL_ERROR "RINGWISE_CUDA=ON but no working nvcc was found")
  endif()
endif()

if(RINGWISE_HAVE_CUDA)
  list(GET ringwise_code 0 ringwise_first)
  set(ringwise_nvcc_options -std=c++20 -O3 --expt-relaxed-constexpr -fatbin)
  execute_process(COMMAND ${RINGWISE_NVCC} --help OUTPUT_VARIABLE ringwise_help ERROR_QUIET)
  if(ringwise_help MATCHES "compress-mode")
    list(APPEND ringwise_nvcc_options --compress-mode=size)
  endif()
  foreach(architecture ${ringwise_code})
    list(APPEND ringwise_nvcc_options -gencode arch=compute_${architecture},code=sm_${architecture})
  endforeach()
  list(APPEND ringwise_nvcc_options -gencode arch=compute_${ringwise_first},code=compute_${ringwise_first})
  set(ringwise_images ${CMAKE_CURRENT_BINARY_DIR}/cuda-images)
  file(MAKE_DIRECTORY ${ringwise_images})
  file(GLOB_RECURSE ringwise_kernels CONFIGURE_DEPENDS tensor/cuda/kernels/*.cu)
  set(ringwise_image_files "")
  foreach(kernel ${ringwise_kernels})
    get_filename_component(name ${kernel} NAME_WE)
    add_custom_command(
      OUTPUT ${ringwise_images}/${name}.fatbin
      COMMAND ${RINGWISE_NVCC} ${ringwise_nvcc_options} -I${CMAKE_CURRENT_SOURCE_DIR} -I${ringwise_generated}
              -MD -MF ${ringwise_images}/${name}.d ${kernel} -o ${ringwise_images}/${name}.fatbin
      # nvcc writes a list of all headers that it read. A change of any of them compiles the image again, so that host
      # code and images agree.
      DEPENDS ${kernel}
      DEPFILE ${ringwise_images}/${name}.d
      COMMENT "CUDA kernels: ${name}" VERBATIM)
    list(APPEND ringwise_image_files ${ringwise_images}/${name}.fatbin)
  endforeach()
  # The version of CUDA as the driver counts: 13000 is 13.0.
  execute_process(COMMAND ${RINGWISE_NVCC} --version OUTPUT_VARIABLE ringwise_release ERROR_QUIET)
  set(ringwise_image_version 0)
  if(ringwise_release MATCHES "release ([0-9]+)\\.([0-9]+)")
    math(EXPR ringwise_image_version "${CMAKE_MATCH_1} * 1000 + ${CMAKE_MATCH_2} * 10")
  endif()
  set_source_files_properties(tensor/cuda/images/images.cc PROPERTIES
    OBJECT_DEPENDS "${ringwise_image_files}"
    COMPILE_DEFINITIONS "RINGWISE_IMAGE_FOLDER=\"${ringwise_images}\";RINGWISE_IMAGE_VERSION=${ringwise_image_version}")
endif()
message(STATUS "ringwise: CUDA ${RINGWISE_HAVE_CUDA} ${ringwise_code}")
