#include "node/tensor/tensor_cuda.h"

#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "node/tensor/tensor_guard.h"
#include "node/tensor/tensor_loan.h"
#include "tensor/cuda/device/info.h"
#include "tensor/cuda/libraries/cublas_lt.h"
#include "tensor/cuda/libraries/cudnn.h"

namespace ringwise::node {

namespace {

using tensor::Block;
using tensor::cuda::Device;
using tensor::cuda::Piece;

/// () → { compiled, kernelsVersion, driver, driverVersion, devices, reason }. A device is { name, memoryBytes,
/// computeCapability, multiprocessors }.
Napi::Value cuda_info(const Napi::CallbackInfo& info) {
  return guarded(info, [&] {
    const Napi::Env env = info.Env();
    const tensor::cuda::Info cuda = tensor::cuda::info();
    auto devices = Napi::Array::New(env, cuda.devices.size());
    for (uint32_t i = 0; i < cuda.devices.size(); i++) {
      const tensor::cuda::DeviceInfo& found = cuda.devices[i];
      auto device = Napi::Object::New(env);
      device.Set("name", found.name);
      device.Set("memoryBytes", static_cast<double>(found.memory_bytes));
      device.Set("computeCapability", std::to_string(found.major) + "." + std::to_string(found.minor));
      device.Set("multiprocessors", found.multiprocessors);
      devices.Set(i, device);
    }
    const auto text = [&](bool is_there, const std::string& value) {
      return is_there ? Napi::Value(Napi::String::New(env, value)) : env.Null();
    };
    auto result = Napi::Object::New(env);
    const auto version = [&](int known) {
      return text(known > 0, std::to_string(known / 1000) + "." + std::to_string(known % 1000 / 10));
    };
    result.Set("compiled", cuda.is_compiled);
    result.Set("kernelsVersion", version(cuda.kernels_version));
    result.Set("driver", text(!cuda.driver.empty(), cuda.driver));
    result.Set("driverVersion", version(cuda.driver_version));
    result.Set("devices", devices);
    result.Set("reason", cuda.reason);
    return result.As<Napi::Value>();
  });
}

/// (device, dtype, count) → handle; `make_piece` allocates the bytes.
template <class MakePiece>
Napi::Value alloc(const Napi::CallbackInfo& info, const MakePiece& make_piece) {
  auto* state = static_cast<TensorState*>(info.Data());
  return guarded(info, [&] {
    const int index = integer(info, 0);
    const auto dtype = static_cast<DType>(integer(info, 1));
    const int64_t count = info[2].As<Napi::Number>().Int64Value();
    if (count < 0 || static_cast<uint64_t>(count) > SIZE_MAX / 16)
      throw std::invalid_argument("cuda: a count is out of range.");
    std::shared_ptr<Piece> piece = make_piece(entered(index), static_cast<size_t>(count) * byte_size(dtype));
    void* data = piece->data();
    const Block block{std::move(piece), data, dtype, static_cast<size_t>(count), index};
    return Napi::Number::New(info.Env(), state->blocks.add(block)).As<Napi::Value>();
  });
}

Napi::Value cuda_alloc(const Napi::CallbackInfo& info) {
  return alloc(info, [](Device& device, size_t bytes) { return std::make_shared<Piece>(device, bytes); });
}

/// Does the same, in shareable memory if the device has it; see tensor/cuda/memory/shareable_memory.h.
Napi::Value cuda_alloc_shareable(const Napi::CallbackInfo& info) {
  return alloc(info, [](Device& device, size_t bytes) {
    std::shared_ptr<void> memory = device.allocate_shareable(bytes);
    return memory ? std::make_shared<Piece>(device, std::move(memory)) : std::make_shared<Piece>(device, bytes);
  });
}

/// (device, dtype, count, address, owner, stream or null, release or null) → handle. Drops the owner and calls
/// `release` when the handle has been freed and no captured step holds the memory. That does not wait for the device:
/// with a stream, the stream is first ordered after all work with the memory; without one, the caller must have waited
/// for it.
Napi::Value cuda_adopt(const Napi::CallbackInfo& info) {
  auto* state = static_cast<TensorState*>(info.Data());
  return guarded(info, [&] {
    const int index = integer(info, 0);
    const auto dtype = static_cast<DType>(integer(info, 1));
    const auto count = static_cast<size_t>(info[2].As<Napi::Number>().Int64Value());
    bool is_exact = false;
    auto* data = reinterpret_cast<void*>(info[3].As<Napi::BigInt>().Uint64Value(&is_exact));
    if (!is_exact || reinterpret_cast<uintptr_t>(data) % byte_size(dtype) != 0) {
      throw std::invalid_argument("cuda: the address is not one of an element.");
    }
    std::optional<tensor::cuda::Stream> owners;
    if (!info[5].IsNull()) {
      owners = reinterpret_cast<tensor::cuda::Stream>(info[5].As<Napi::BigInt>().Uint64Value(&is_exact));
    }
    Device& device = entered(index);
    const auto loan = std::make_shared<Loan>(info[4].As<Napi::Object>());
    const Block block{std::make_shared<Piece>(device, data, loan, owners), data, dtype, count, index};
    loan->release_by(info[6]);  // last, because nothing can fail after it
    return Napi::Number::New(info.Env(), state->blocks.add(block)).As<Napi::Value>();
  });
}

/// A piece of device memory that a call names by handle and offset in elements, and an array of as many bytes.
struct Transfer {
  Device& device;
  const Block& block;
  char* on_device;
  char* on_host;
  size_t bytes;
};

/// (handle, offset in elements, typed array), whose length is the number of elements to copy.
Transfer transfer(const Napi::CallbackInfo& info) {
  auto* state = static_cast<TensorState*>(info.Data());
  const Block* block = state->blocks.find(integer(info, 0));
  if (!block || block->device < 0)
    throw std::invalid_argument("cuda: the handle names no device memory. This is a bug in @ringwise/tensor.");
  const int64_t offset = info[1].As<Napi::Number>().Int64Value();
  const auto array = info[2].As<Napi::TypedArray>();
  const size_t count = array.ElementLength(), size = byte_size(block->dtype);
  if (array.ElementSize() != size || offset < 0 || static_cast<size_t>(offset) > block->count ||
      count > block->count - static_cast<size_t>(offset)) {
    throw std::invalid_argument("cuda: the array does not fit the memory. This is a bug in @ringwise/tensor.");
  }
  tensor::cuda::touch(*block);
  auto* host = static_cast<char*>(array.ArrayBuffer().Data()) + array.ByteOffset();
  return {entered(block->device), *block, static_cast<char*>(block->data) + static_cast<size_t>(offset) * size, host,
          count * size};
}

/// (handle, offset, array, isDetached). Returns when the array may be changed. With isDetached, waits for earlier
/// uploads only if 256 MiB are in flight.
Napi::Value cuda_upload(const Napi::CallbackInfo& info) {
  return guarded(info, [&] {
    const Transfer t = transfer(info);
    if (info[3].ToBoolean())
      t.device.start_upload(t.on_device, t.on_host, t.bytes);
    else
      t.device.upload(t.on_device, t.on_host, t.bytes);
    return info.Env().Undefined();
  });
}

/// (handle, offset, array). Waits for the copy and all earlier work of this thread's stream.
Napi::Value cuda_download(const Napi::CallbackInfo& info) {
  return guarded(info, [&] {
    const Transfer t = transfer(info);
    t.device.download(t.on_host, t.on_device, t.bytes);
    return info.Env().Undefined();
  });
}

/// A download that JavaScript awaits.
struct Download {
  Napi::Promise::Deferred deferred;
  Napi::Reference<Napi::TypedArray> array;
  std::shared_ptr<void> source;  // the device memory stays until it has been read
  Device& device;
  void* pinned;
  size_t bytes;

  void operator()(Napi::Env, int status) {
    const auto target = array.Value();
    if (bytes > 0 && status == tensor::cuda::kSuccess) {
      std::memcpy(static_cast<char*>(target.ArrayBuffer().Data()) + target.ByteOffset(), pinned, bytes);
    }
    settle(deferred, device, status, target);
  }
};

/// (handle, offset, array) → a promise of the filled array.
Napi::Value cuda_download_async(const Napi::CallbackInfo& info) {
  return guarded(info, [&] {
    const Napi::Env env = info.Env();
    const Transfer t = transfer(info);
    const std::shared_ptr<void> pinned(t.device.pinned().allocate(t.bytes, 0),
                                       [&device = t.device](void* data) { device.pinned().free(data); });
    const auto deferred = Napi::Promise::Deferred::New(env);
    auto* ring = new Ring<Download>(
        env,
        {deferred, Napi::Persistent(info[2].As<Napi::TypedArray>()), t.block.keeper, t.device, pinned.get(), t.bytes},
        pinned);
    try {
      t.device.start_download(pinned.get(), t.on_device, t.bytes);
      Device::call_back(t.device.stream(), &Ring<Download>::ring, ring);
    } catch (...) {
      ring->drop();
      throw;
    }
    return static_cast<Napi::Value>(deferred.Promise());
  });
}

/// () → [{ name, path, version, reason }]. Loads the vendor's libraries.
Napi::Value cuda_libraries(const Napi::CallbackInfo& info) {
  return guarded(info, [&] {
    const Napi::Env env = info.Env();
    auto result = Napi::Array::New(env);
    const auto add = [&](const char* name, const SharedLibrary& found, const std::string& reason,
                         const std::string& version) {
      auto library = Napi::Object::New(env);
      library.Set("name", name);
      library.Set("path", found.path());
      library.Set("version", version);
      library.Set("reason", reason);
      result.Set(result.Length(), library);
    };
    const auto dotted = [](size_t major, size_t minor) { return std::to_string(major) + "." + std::to_string(minor); };
    const tensor::cuda::CublasLt& lt = tensor::cuda::cublas_lt();
    const size_t lt_version = lt.reason.empty() ? lt.cublasLtGetVersion() : 0;
    add("cublasLt", lt.library, lt.reason, lt_version == 0 ? "" : dotted(lt_version / 10000, lt_version / 100 % 100));
    const tensor::cuda::Cudnn& dnn = tensor::cuda::cudnn();
    const size_t dnn_version = dnn.reason.empty() ? dnn.cudnnGetVersion() : 0;
    add("cuDNN", dnn.library, dnn.reason, dnn_version == 0 ? "" : dotted(dnn_version / 10000, dnn_version / 100 % 100));
    return result.As<Napi::Value>();
  });
}

/// () → why cublasLt cannot be used, or ''. Loads it at the first call.
Napi::Value cuda_without_cublas(const Napi::CallbackInfo& info) {
  return Napi::String::New(info.Env(), tensor::cuda::cublas_lt().reason);
}

/// () → why cuDNN cannot be used, or ''. Loads it at the first call.
Napi::Value cuda_without_cudnn(const Napi::CallbackInfo& info) {
  return Napi::String::New(info.Env(), tensor::cuda::cudnn().reason);
}

/// (isAllowed). Sets whether float32 products may be computed in TF32.
Napi::Value cuda_allow_tf32(const Napi::CallbackInfo& info) {
  tensor::cuda::allow_tf32(info[0].ToBoolean());
  return info.Env().Undefined();
}

/// (device). Waits for all work of the device.
Napi::Value cuda_synchronize(const Napi::CallbackInfo& info) {
  return guarded(info, [&] {
    entered(integer(info, 0)).synchronize();
    return info.Env().Undefined();
  });
}

/// (device) → { live, peak, cached, pieces, segments, reserved, pinned }
Napi::Value cuda_memory(const Napi::CallbackInfo& info) {
  return guarded(info, [&] {
    Device& device = entered(integer(info, 0));
    const tensor::cuda::AllocatorUse use = device.memory().use(), pinned = device.pinned().use();
    auto result = Napi::Object::New(info.Env());
    result.Set("live", static_cast<double>(use.live));
    result.Set("peak", static_cast<double>(use.peak));
    result.Set("cached", static_cast<double>(use.cached));
    result.Set("pieces", static_cast<double>(use.pieces));
    result.Set("segments", static_cast<double>(use.segments));
    result.Set("reserved", static_cast<double>(device.reserved()));
    result.Set("pinned", static_cast<double>(pinned.live + pinned.cached));
    return result.As<Napi::Value>();
  });
}

/// (device). Waits for all work of the device, and returns free memory to the driver.
Napi::Value cuda_empty_cache(const Napi::CallbackInfo& info) {
  return guarded(info, [&] {
    Device& device = entered(integer(info, 0));
    device.synchronize();
    device.empty_caches();
    return info.Env().Undefined();
  });
}

}  // namespace

void define_cuda(Napi::Env env, Napi::Object exports, TensorState* state) {
  const auto define = [&](const char* name, Napi::Value (*function)(const Napi::CallbackInfo&)) {
    exports.Set(name, Napi::Function::New(env, function, name, state));
  };
  define("cudaInfo", &cuda_info);
  define("cudaLibraries", &cuda_libraries);
  define("cudaWithoutCublas", &cuda_without_cublas);
  define("cudaWithoutCudnn", &cuda_without_cudnn);
  define("cudaAllowTf32", &cuda_allow_tf32);
  define("cudaAlloc", &cuda_alloc);
  define("cudaAllocShareable", &cuda_alloc_shareable);
  define("cudaAdopt", &cuda_adopt);
  define("cudaUpload", &cuda_upload);
  define("cudaDownload", &cuda_download);
  define("cudaDownloadAsync", &cuda_download_async);
  define("cudaSynchronize", &cuda_synchronize);
  define("cudaMemory", &cuda_memory);
  define("cudaEmptyCache", &cuda_empty_cache);
  define_pinned(env, exports, state);
  define_streams(env, exports, state);
  define_steps(env, exports, state);
}

}  // namespace ringwise::node
