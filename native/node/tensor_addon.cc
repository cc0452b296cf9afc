// tensor.node: memory and kernels for JavaScript. Its typed surface is NativeAddon in
// packages/tensor/src/backends/native.ts. Everything here runs on the JavaScript thread of one environment.
#include <napi.h>

#include <memory>
#include <string>
#include <utility>

#include "node/tensor_call.h"
#include "tensor/cuda/device.h"

namespace ringwise::node {

namespace {

using tensor::Block;

DType dtype_of(napi_typedarray_type type) {
  switch (type) {
    case napi_float32_array: return DType::Float32;
    case napi_int32_array: return DType::Int32;
    case napi_bigint64_array: return DType::Int64;
    default: throw std::invalid_argument("adopt: expected a Float32Array, Int32Array or BigInt64Array");
  }
}

class TensorAddon final : public Napi::Addon<TensorAddon> {
 public:
  TensorAddon(Napi::Env env, Napi::Object exports) {
    DefineAddon(exports, {InstanceMethod<&TensorAddon::alloc>("alloc"), InstanceMethod<&TensorAddon::adopt>("adopt"),
                          InstanceMethod<&TensorAddon::free>("free"), InstanceMethod<&TensorAddon::memory>("memory"),
                          InstanceMethod<&TensorAddon::use_cpu>("useCpu"),
                          InstanceMethod<&TensorAddon::cuda_info>("cudaInfo")});
    const auto scratch = Napi::Float64Array::New(env, kScratchCount);
    state_.scratch = scratch.Data();
    state_.scratch_owner = Napi::Persistent(scratch.As<Napi::Object>());
    exports.Set("scratch", scratch);
    define_kernels(env, exports, &state_);
  }

 private:
  /// (dtype, count) → { handle, buffer }, or null where the runtime forbids external buffers.
  Napi::Value alloc(const Napi::CallbackInfo& info) {
    return guarded(info, [&] {
      const auto dtype = static_cast<DType>(info[0].As<Napi::Number>().Int32Value());
      const auto count = static_cast<size_t>(info[1].As<Napi::Number>().Int64Value());
      const size_t bytes = area(count, byte_size(dtype));
      auto keeper = tensor::allocate(bytes, state_.memory);
      void* const data = keeper.get();
      // The ArrayBuffer's own share of the bytes. V8 counts them as long as it lives.
      auto lent = std::make_unique<std::shared_ptr<void>>(keeper);
      napi_value buffer;
      const napi_status status = napi_create_external_arraybuffer(
          info.Env(), data, bytes,
          [](napi_env, void*, void* share) { delete static_cast<std::shared_ptr<void>*>(share); }, lent.get(), &buffer);
      if (status == napi_no_external_buffers_allowed) return info.Env().Null();
      if (status != napi_ok) throw Napi::Error::New(info.Env());
      lent.release();
      auto result = Napi::Object::New(info.Env());
      result.Set("handle", state_.blocks.add({std::move(keeper), data, dtype, count}));
      result.Set("buffer", Napi::Value(info.Env(), buffer));
      return result.As<Napi::Value>();
    });
  }

  /// (typed array) → handle. Holds the array until free.
  Napi::Value adopt(const Napi::CallbackInfo& info) {
    return guarded(info, [&] {
      const auto array = info[0].As<Napi::TypedArray>();
      napi_typedarray_type type;
      void* data;
      if (napi_get_typedarray_info(info.Env(), array, &type, nullptr, &data, nullptr, nullptr) != napi_ok) {
        throw Napi::Error::New(info.Env());
      }
      auto keeper = std::make_shared<Napi::Reference<Napi::TypedArray>>(Napi::Persistent(array));
      const Block block{std::move(keeper), data, dtype_of(type), array.ElementLength()};
      return Napi::Number::New(info.Env(), state_.blocks.add(block)).As<Napi::Value>();
    });
  }

  /// (handle): memory that JavaScript still sees stays until the collector takes its last view.
  Napi::Value free(const Napi::CallbackInfo& info) {
    return guarded(info, [&] {
      if (!state_.blocks.remove(info[0].As<Napi::Number>().Int32Value())) {
        throw std::invalid_argument("free: this memory has been freed already. This is a bug in @ringwise/tensor.");
      }
      return info.Env().Undefined();
    });
  }

  /// () → { handles, pieces, bytes }: handles in use, and memory that is held by a handle or by an ArrayBuffer.
  Napi::Value memory(const Napi::CallbackInfo& info) {
    auto result = Napi::Object::New(info.Env());
    result.Set("handles", static_cast<double>(state_.blocks.size()));
    result.Set("pieces", static_cast<double>(state_.memory->pieces));
    result.Set("bytes", static_cast<double>(state_.memory->bytes));
    return result;
  }

  /// (0 | 1 | 2) → name of the level now in use: this one, or the best of the CPU where it has less.
  Napi::Value use_cpu(const Napi::CallbackInfo& info) {
    const auto cap = static_cast<tensor::CpuLevel>(info[0].As<Napi::Number>().Int32Value());
    state_.kernels = &tensor::kernels_for(cap);
    return Napi::String::New(info.Env(), state_.kernels->name);
  }

  /// () → { compiled, count, devices: [{ name, memoryBytes, computeCapability }], reason }
  Napi::Value cuda_info(const Napi::CallbackInfo& info) {
    return guarded(info, [&] {
      const Napi::Env env = info.Env();
      const tensor::CudaInfo cuda = tensor::cuda_info();
      auto devices = Napi::Array::New(env, cuda.devices.size());
      for (uint32_t i = 0; i < cuda.devices.size(); i++) {
        const tensor::CudaDevice& found = cuda.devices[i];
        auto device = Napi::Object::New(env);
        device.Set("name", found.name);
        device.Set("memoryBytes", static_cast<double>(found.memory_bytes));
        device.Set("computeCapability", std::to_string(found.major) + "." + std::to_string(found.minor));
        devices.Set(i, device);
      }
      auto result = Napi::Object::New(env);
      result.Set("compiled", cuda.compiled);
      result.Set("count", static_cast<double>(cuda.devices.size()));
      result.Set("devices", devices);
      result.Set("reason", cuda.reason);
      return result.As<Napi::Value>();
    });
  }

  /// Exceptions of the library as JavaScript errors; those of Node-API pass as they are.
  template <class Body>
  static Napi::Value guarded(const Napi::CallbackInfo& info, Body body) {
    try {
      return body();
    } catch (const Napi::Error&) {
      throw;
    } catch (const std::bad_alloc&) {
      throw error(info.Env(), "not enough memory");
    } catch (const std::exception& cause) {
      throw error(info.Env(), cause.what());
    }
  }
  static Napi::Error error(Napi::Env env, const char* message) {
    Napi::Error result = Napi::Error::New(env, message);
    result.Set("code", Napi::String::New(env, "ERR_TENSOR_KERNELS"));
    return result;
  }

  TensorState state_;
};

}  // namespace

NODE_API_NAMED_ADDON(tensor, TensorAddon)

}  // namespace ringwise::node
