#include "tensor/cuda/libraries/cudnn.h"

namespace ringwise::tensor::cuda {

namespace {

const char* bind(Cudnn& dnn) {
#define RINGWISE_BIND(name, arguments) \
  if (!dnn.library.bind(#name, dnn.name)) return #name;
  RINGWISE_CUDNN_FUNCTIONS(RINGWISE_BIND)
#undef RINGWISE_BIND
  return dnn.library.bind("cudnnGetVersion", dnn.cudnnGetVersion) ? nullptr : "cudnnGetVersion";
}

Cudnn load() {
  Cudnn dnn;
  dnn.library = SharedLibrary({"RINGWISE_LIBCUDNN", {"libcudnn.so.9"}, {"cudnn/lib"}});
  if (!dnn.library.is_open()) {
    dnn.reason = "not found: " + dnn.library.failures();
  } else if (const char* missing = bind(dnn)) {
    dnn.reason = dnn.library.path() + " has no " + missing + "; version 9 is needed";
  } else {
    // cuDNN compiles fused kernels while it plans them. It finds the compiler (libnvrtc) in the wheels by itself, but
    // the compiler loads its builtins library by a bare name, and without it every such plan would fail.
    dnn.library.open_beside("cudnnGetVersion", {"libnvrtc-builtins.so.*", "../../cu13/lib/libnvrtc-builtins.so.*",
                                                "../../cuda_nvrtc/lib/libnvrtc-builtins.so.*"});
  }
  return dnn;
}

}  // namespace

const Cudnn& cudnn() {
  static const Cudnn loaded = load();
  return loaded;
}

}  // namespace ringwise::tensor::cuda
