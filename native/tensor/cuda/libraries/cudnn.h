// Loads cuDNN (libcudnn), NVIDIA's library for convolutions and attention, on first use. Only its graph API is used: it
// makes plans from descriptors of tensors and operations (cudnn_graph.h). The declarations are our own, as in
// cuda_driver.h; test/cuda/tensor_cudnn_abi_test.cc compares them with NVIDIA's cudnn_graph.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/shared_library.h"
#include "tensor/cuda/device/driver.h"

namespace ringwise::tensor::cuda {

using DnnHandle = struct DnnHandleTag*;
using DnnDescriptor = void*;

// Name and arguments of the functions. All return cudnnStatus_t.
// clang-format off
#define RINGWISE_CUDNN_FUNCTIONS(X)                                                    \
  X(cudnnCreate, (DnnHandle*))                                                         \
  X(cudnnSetStream, (DnnHandle, Stream))                                               \
  X(cudnnBackendCreateDescriptor, (int, DnnDescriptor*))                               \
  X(cudnnBackendDestroyDescriptor, (DnnDescriptor))                                    \
  X(cudnnBackendSetAttribute, (DnnDescriptor, int, int, int64_t, const void*))         \
  X(cudnnBackendGetAttribute, (DnnDescriptor, int, int, int64_t, int64_t*, void*))     \
  X(cudnnBackendFinalize, (DnnDescriptor))                                             \
  X(cudnnBackendExecute, (DnnHandle, DnnDescriptor, DnnDescriptor))
// clang-format on

// Constants of NVIDIA's cudnn_graph.h: name without CUDNN_, value.
// clang-format off
#define RINGWISE_CUDNN_NUMBERS(X)                                                                          \
  X(DATA_FLOAT, 0) X(DATA_DOUBLE, 1) X(DATA_HALF, 2) X(DATA_INT32, 4) X(DATA_BFLOAT16, 9) X(DATA_BOOLEAN, 11) \
  X(TYPE_HANDLE, 0) X(TYPE_DATA_TYPE, 1) X(TYPE_BOOLEAN, 2) X(TYPE_INT64, 3) X(TYPE_FLOAT, 4)              \
  X(TYPE_DOUBLE, 5) X(TYPE_VOID_PTR, 6) X(TYPE_CONVOLUTION_MODE, 7) X(TYPE_HEUR_MODE, 8)                   \
  X(TYPE_NUMERICAL_NOTE, 11) X(TYPE_POINTWISE_MODE, 14) X(TYPE_BACKEND_DESCRIPTOR, 15)                     \
  X(TYPE_REDUCTION_OPERATOR_TYPE, 18) X(TYPE_CHAR, 24)                                                     \
  X(BACKEND_POINTWISE_DESCRIPTOR, 0) X(BACKEND_CONVOLUTION_DESCRIPTOR, 1) X(BACKEND_ENGINE_DESCRIPTOR, 2)  \
  X(BACKEND_ENGINECFG_DESCRIPTOR, 3) X(BACKEND_ENGINEHEUR_DESCRIPTOR, 4)                                   \
  X(BACKEND_EXECUTION_PLAN_DESCRIPTOR, 5) X(BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, 10)          \
  X(BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, 11)                                          \
  X(BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, 12)                                            \
  X(BACKEND_OPERATION_POINTWISE_DESCRIPTOR, 13) X(BACKEND_OPERATIONGRAPH_DESCRIPTOR, 15)                   \
  X(BACKEND_VARIANT_PACK_DESCRIPTOR, 16) X(BACKEND_TENSOR_DESCRIPTOR, 17)                                  \
  X(BACKEND_MATMUL_DESCRIPTOR, 18) X(BACKEND_OPERATION_MATMUL_DESCRIPTOR, 19)                              \
  X(BACKEND_REDUCTION_DESCRIPTOR, 21) X(BACKEND_OPERATION_REDUCTION_DESCRIPTOR, 22)                        \
  X(BACKEND_OPERATION_RESHAPE_DESCRIPTOR, 31) X(BACKEND_DEVICEPROP_DESCRIPTOR, 38)                         \
  X(ATTR_POINTWISE_MODE, 0) X(ATTR_POINTWISE_MATH_PREC, 1) X(ATTR_POINTWISE_AXIS, 9)                       \
  X(ATTR_CONVOLUTION_COMP_TYPE, 100) X(ATTR_CONVOLUTION_CONV_MODE, 101) X(ATTR_CONVOLUTION_DILATIONS, 102) \
  X(ATTR_CONVOLUTION_FILTER_STRIDES, 103) X(ATTR_CONVOLUTION_POST_PADDINGS, 104)                           \
  X(ATTR_CONVOLUTION_PRE_PADDINGS, 105) X(ATTR_CONVOLUTION_SPATIAL_DIMS, 106)                              \
  X(ATTR_ENGINEHEUR_MODE, 200) X(ATTR_ENGINEHEUR_OPERATION_GRAPH, 201) X(ATTR_ENGINEHEUR_RESULTS, 202)     \
  X(ATTR_ENGINEHEUR_DEVICEPROP, 204) X(ATTR_ENGINECFG_ENGINE, 300)                                         \
  X(ATTR_EXECUTION_PLAN_HANDLE, 400) X(ATTR_EXECUTION_PLAN_ENGINE_CONFIG, 401)                             \
  X(ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, 402) X(ATTR_EXECUTION_PLAN_DEVICEPROP, 407)                        \
  X(ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, 700) X(ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, 701)         \
  X(ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, 702) X(ATTR_OPERATION_CONVOLUTION_FORWARD_W, 703)        \
  X(ATTR_OPERATION_CONVOLUTION_FORWARD_X, 704) X(ATTR_OPERATION_CONVOLUTION_FORWARD_Y, 705)                \
  X(ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, 706) X(ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, 707)       \
  X(ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, 708) X(ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, 709)      \
  X(ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, 710) X(ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, 711)            \
  X(ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, 712) X(ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, 713)   \
  X(ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, 714) X(ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, 715) \
  X(ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, 716) X(ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, 717)         \
  X(ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, 750) X(ATTR_OPERATION_POINTWISE_XDESC, 751)                    \
  X(ATTR_OPERATION_POINTWISE_BDESC, 752) X(ATTR_OPERATION_POINTWISE_YDESC, 753)                            \
  X(ATTR_OPERATION_POINTWISE_TDESC, 758) X(ATTR_OPERATIONGRAPH_HANDLE, 800)                                \
  X(ATTR_OPERATIONGRAPH_OPS, 801) X(ATTR_TENSOR_BYTE_ALIGNMENT, 900) X(ATTR_TENSOR_DATA_TYPE, 901)         \
  X(ATTR_TENSOR_DIMENSIONS, 902) X(ATTR_TENSOR_STRIDES, 903) X(ATTR_TENSOR_UNIQUE_ID, 906)                 \
  X(ATTR_TENSOR_IS_VIRTUAL, 907) X(ATTR_TENSOR_IS_BY_VALUE, 908) X(ATTR_VARIANT_PACK_UNIQUE_IDS, 1000)     \
  X(ATTR_VARIANT_PACK_DATA_POINTERS, 1001) X(ATTR_VARIANT_PACK_WORKSPACE, 1003)                            \
  X(ATTR_ENGINE_NUMERICAL_NOTE, 1303) X(ATTR_MATMUL_COMP_TYPE, 1500)                                       \
  X(ATTR_OPERATION_MATMUL_ADESC, 1520) X(ATTR_OPERATION_MATMUL_BDESC, 1521)                                \
  X(ATTR_OPERATION_MATMUL_CDESC, 1522) X(ATTR_OPERATION_MATMUL_DESC, 1523)                                 \
  X(ATTR_REDUCTION_OPERATOR, 1600) X(ATTR_REDUCTION_COMP_TYPE, 1601)                                       \
  X(ATTR_OPERATION_REDUCTION_XDESC, 1610) X(ATTR_OPERATION_REDUCTION_YDESC, 1611)                          \
  X(ATTR_OPERATION_REDUCTION_DESC, 1612) X(ATTR_OPERATION_RESHAPE_XDESC, 2200)                             \
  X(ATTR_OPERATION_RESHAPE_YDESC, 2201) X(ATTR_DEVICEPROP_JSON_REPRESENTATION, 2702)                       \
  X(POINTWISE_ADD, 0) X(POINTWISE_MUL, 1) X(POINTWISE_DIV, 6) X(POINTWISE_SUB, 9) X(POINTWISE_EXP, 13)     \
  X(POINTWISE_LOG, 15) X(POINTWISE_IDENTITY, 21) X(POINTWISE_CMP_GE, 303) X(POINTWISE_GEN_INDEX, 501)      \
  X(POINTWISE_BINARY_SELECT, 601) X(REDUCE_TENSOR_ADD, 0) X(REDUCE_TENSOR_MAX, 3) X(CROSS_CORRELATION, 1)  \
  X(HEUR_MODE_FALLBACK, 2) X(HEUR_MODE_A, 3) X(NUMERICAL_NOTE_TENSOR_CORE, 0)                              \
  X(NUMERICAL_NOTE_DOWN_CONVERT_INPUTS, 1) X(NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION, 2)                \
  X(NUMERICAL_NOTE_NONDETERMINISTIC, 4)
// clang-format on

namespace dnn {
#define RINGWISE_NUMBER(name, value) constexpr int name = value;
RINGWISE_CUDNN_NUMBERS(RINGWISE_NUMBER)
#undef RINGWISE_NUMBER
}  // namespace dnn

/// The functions of the library.
struct Cudnn {
#define RINGWISE_DECLARE(name, arguments) int(*name) arguments = nullptr;
  RINGWISE_CUDNN_FUNCTIONS(RINGWISE_DECLARE)
#undef RINGWISE_DECLARE
  size_t (*cudnnGetVersion)() = nullptr;

  SharedLibrary library;
  std::string reason;  // why it cannot be used, with all paths that were tried; empty if it can
};

/// Returns the library, and loads it at the first call. Any thread; never throws.
const Cudnn& cudnn();

}  // namespace ringwise::tensor::cuda
