#include "node/tensor_cuda.h"

#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>

#include "tensor/cuda/device.h"
#include "tensor/cuda/info.h"

namespace ringwise::node {

namespace {

using tensor::Block;
using tensor::cuda::Device;

Napi::Error failure(Napi::Env env, const char* code, const char* message) {
  Napi::Error result = Napi::Error::New(env, message);
  result.Set("code", Napi::String::New(env, code));
  return result;
}

/// Exceptions of the library as JavaScript errors; those of Node-API pass as they are.
template <class Body>
Napi::Value guarded(const Napi::CallbackInfo& info, Body body) {
  try {
    return body();
  } catch (const Napi::Error&) {
    throw;
  } catch (const tensor::cuda::OutOfMemory& cause) {
    throw failure(info.Env(), "ERR_TENSOR_MEMORY", cause.what());
  } catch (const std::out_of_range& cause) {
    throw failure(info.Env(), "ERR_TENSOR_ARGUMENT", cause.what());
  } catch (const std::exception& cause) {
    throw failure(info.Env(), "ERR_TENSOR_KERNELS", cause.what());
  }
}

int32_t integer(const Napi::CallbackInfo& info, size_t i) { return info[i].As<Napi::Number>().Int32Value(); }

Device& entered(int index) {
  Device& device = Device::get(index);
  device.enter();
  return device;
}

/// () → { compiled, driver, driverVersion, devices: [{ name, memoryBytes, computeCapability, multiprocessors }], reason }
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
    const int version = cuda.driver_version;
    result.Set("compiled", cuda.is_compiled);
    result.Set("driver", text(!cuda.driver.empty(), cuda.driver));
    result.Set("driverVersion", text(version > 0, std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10)));
    result.Set("devices", devices);
    result.Set("reason", cuda.reason);
    return result.As<Napi::Value>();
  });
}

/// (device, dtype, count) → handle
Napi::Value cuda_alloc(const Napi::CallbackInfo& info) {
  auto* state = static_cast<TensorState*>(info.Data());
  return guarded(info, [&] {
    const int index = integer(info, 0);
    const auto dtype = static_cast<DType>(integer(info, 1));
    const int64_t count = info[2].As<Napi::Number>().Int64Value();
    if (count < 0 || static_cast<uint64_t>(count) > SIZE_MAX / 16) throw std::invalid_argument("cuda: a count is out of range.");
    Device& device = entered(index);
    void* data = device.allocate(static_cast<size_t>(count) * byte_size(dtype));
    // Freeing never calls CUDA, so it may happen at any time.
    std::shared_ptr<void> keeper(data, [&device](void* memory) { device.free(memory); });
    const Block block{std::move(keeper), data, dtype, static_cast<size_t>(count), index};
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

/// (handle, offset, typed array): `count` says how many elements of the array matter.
Transfer transfer(const Napi::CallbackInfo& info) {
  auto* state = static_cast<TensorState*>(info.Data());
  const Block* block = state->blocks.find(integer(info, 0));
  if (!block || block->device < 0) throw std::invalid_argument("cuda: the handle names no device memory. This is a bug in @ringwise/tensor.");
  const int64_t offset = info[1].As<Napi::Number>().Int64Value();
  const auto array = info[2].As<Napi::TypedArray>();
  const size_t count = array.ElementLength(), size = byte_size(block->dtype);
  if (array.ElementSize() != size || offset < 0 || static_cast<size_t>(offset) > block->count ||
      count > block->count - static_cast<size_t>(offset)) {
    throw std::invalid_argument("cuda: the array does not fit the memory. This is a bug in @ringwise/tensor.");
  }
  auto* host = static_cast<char*>(array.ArrayBuffer().Data()) + array.ByteOffset();
  return {entered(block->device), *block, static_cast<char*>(block->data) + static_cast<size_t>(offset) * size, host, count * size};
}

/// (handle, offset, array): returns when the array may be changed.
Napi::Value cuda_upload(const Napi::CallbackInfo& info) {
  return guarded(info, [&] {
    const Transfer t = transfer(info);
    t.device.upload(t.on_device, t.on_host, t.bytes);
    return info.Env().Undefined();
  });
}

/// (handle, offset, array): waits for all that was started before.
Napi::Value cuda_download(const Napi::CallbackInfo& info) {
  return guarded(info, [&] {
    const Transfer t = transfer(info);
    t.device.download(t.on_host, t.on_device, t.bytes);
    return info.Env().Undefined();
  });
}

/// A download that JavaScript awaits. The driver's thread only rings; the rest happens on the JavaScript thread.
struct PendingDownload {
  Napi::Promise::Deferred deferred;
  Napi::Reference<Napi::TypedArray> array;
  std::shared_ptr<void> source;  // the device memory stays until it has been read
  Device& device;
  void* pinned;
  size_t bytes;
  Napi::ThreadSafeFunction settled;

  static void ring(void* data) { static_cast<PendingDownload*>(data)->settled.BlockingCall(); }

  void settle(Napi::Env env) {
    const std::unique_ptr<PendingDownload> self(this);
    const auto target = array.Value();
    if (bytes > 0) std::memcpy(static_cast<char*>(target.ArrayBuffer().Data()) + target.ByteOffset(), pinned, bytes);
    device.pinned().free(pinned);
    try {
      device.check_fault();
      deferred.Resolve(target);
    } catch (const std::out_of_range& fault) {
      deferred.Reject(failure(env, "ERR_TENSOR_ARGUMENT", fault.what()).Value());
    }
    settled.Release();
  }
};

/// (handle, offset, array) → a promise of the filled array.
Napi::Value cuda_download_async(const Napi::CallbackInfo& info) {
  return guarded(info, [&] {
    const Napi::Env env = info.Env();
    const Transfer t = transfer(info);
    void* pinned = t.device.pinned().allocate(t.bytes, 0);
    std::unique_ptr<PendingDownload> pending(new PendingDownload{Napi::Promise::Deferred::New(env),
                                                                 Napi::Persistent(info[2].As<Napi::TypedArray>()),
                                                                 t.block.keeper, t.device, pinned, t.bytes, {}});
    PendingDownload* raw = pending.get();
    const auto settle = Napi::Function::New(env, [raw](const Napi::CallbackInfo& call) { raw->settle(call.Env()); });
    pending->settled = Napi::ThreadSafeFunction::New(env, settle, "ringwise.download", 0, 1);
    const Napi::Promise promise = pending->deferred.Promise();
    try {
      t.device.start_download(pinned, t.on_device, t.bytes, &PendingDownload::ring, raw);
    } catch (...) {
      pending->settled.Release();
      t.device.pinned().free(pinned);
      throw;
    }
    pending.release();
    return static_cast<Napi::Value>(promise);
  });
}

/// (device): waits for all that was started.
Napi::Value cuda_synchronize(const Napi::CallbackInfo& info) {
  return guarded(info, [&] {
    entered(integer(info, 0)).synchronize();
    return info.Env().Undefined();
  });
}

/// (device) → { live, peak, cached, pieces, segments }
Napi::Value cuda_memory(const Napi::CallbackInfo& info) {
  return guarded(info, [&] {
    const tensor::cuda::AllocatorUse use = entered(integer(info, 0)).memory().use();
    auto result = Napi::Object::New(info.Env());
    result.Set("live", static_cast<double>(use.live));
    result.Set("peak", static_cast<double>(use.peak));
    result.Set("cached", static_cast<double>(use.cached));
    result.Set("pieces", static_cast<double>(use.pieces));
    result.Set("segments", static_cast<double>(use.segments));
    return result.As<Napi::Value>();
  });
}

/// (device)
Napi::Value cuda_empty_cache(const Napi::CallbackInfo& info) {
  return guarded(info, [&] {
    Device& device = entered(integer(info, 0));
    device.synchronize();
    device.memory().empty_cache();
    return info.Env().Undefined();
  });
}

}  // namespace

void define_cuda(Napi::Env env, Napi::Object exports, TensorState* state) {
  const auto define = [&](const char* name, Napi::Value (*function)(const Napi::CallbackInfo&)) {
    exports.Set(name, Napi::Function::New(env, function, name, state));
  };
  define("cudaInfo", &cuda_info);
  define("cudaAlloc", &cuda_alloc);
  define("cudaUpload", &cuda_upload);
  define("cudaDownload", &cuda_download);
  define("cudaDownloadAsync", &cuda_download_async);
  define("cudaSynchronize", &cuda_synchronize);
  define("cudaMemory", &cuda_memory);
  define("cudaEmptyCache", &cuda_empty_cache);
}

}  // namespace ringwise::node
