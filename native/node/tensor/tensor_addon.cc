// tensor.node: memory and kernels for JavaScript. Its typed surface is NativeAddon in
// packages/tensor/src/backends/native/addon.ts. Everything here runs on the JavaScript thread of one environment.
//
// Host memory is that of typed arrays, which JavaScript allocates: the garbage collector counts it, an array that the
// program still holds stays valid when its tensor is freed, and nothing waits for a finalizer (those of external
// ArrayBuffers run on a later turn of the event loop, which a synchronous training loop never reaches). A handle keeps
// its array alive, so the address in the table is valid until `free`.
#include <napi.h>

#include <memory>
#include <string>
#include <utility>

#include "base/os/library.h"
#include "node/tensor/tensor_call.h"
#include "node/tensor/tensor_cuda.h"
#include "node/tensor/tensor_loan.h"

namespace ringwise::node {

namespace {

using tensor::Block;

constexpr uintptr_t kAlignment = 64;  // a cache line, and the widest vector

/// Returns whether a typed array has elements of the size of `dtype`, and of a kind that can hold them.
bool holds(napi_typedarray_type type, DType dtype) {
  switch (dtype) {
    case DType::Float32: return type == napi_float32_array;
    case DType::Float64: return type == napi_float64_array;
    case DType::Float16:
    case DType::BFloat16: return type == napi_uint16_array;
    case DType::Int32: return type == napi_int32_array;
    case DType::Int64: return type == napi_bigint64_array;
    case DType::UInt8:
    case DType::Bool: return type == napi_uint8_array;
    default: return false;
  }
}

class TensorAddon final : public Napi::Addon<TensorAddon> {
 public:
  TensorAddon(Napi::Env env, Napi::Object exports) {
    DefineAddon(
        exports,
        {InstanceMethod<&TensorAddon::padding>("padding"), InstanceMethod<&TensorAddon::adopt>("adopt"),
         InstanceMethod<&TensorAddon::buffer_at>("bufferAt"), InstanceMethod<&TensorAddon::borrow>("borrow"),
         InstanceMethod<&TensorAddon::address>("address"), InstanceMethod<&TensorAddon::free>("free"),
         InstanceMethod<&TensorAddon::memory>("memory"),
         InstanceMethod<&TensorAddon::adjust_external>("adjustExternalMemory"),
         InstanceMethod<&TensorAddon::use_cpu>("useCpu"), InstanceMethod<&TensorAddon::num_threads>("numThreads"),
         InstanceMethod<&TensorAddon::set_num_threads>("setNumThreads")});
    os::keep_loaded(reinterpret_cast<const void*>(&holds));
    const auto scratch = Napi::Float64Array::New(env, kScratchCount);
    state_.scratch = scratch.Data();
    state_.scratch_owner = Napi::Persistent(scratch.As<Napi::Object>());
    exports.Set("scratch", scratch);
    define_kernels(env, exports, &state_);
    define_optimizer(env, exports, &state_);
    define_cuda(env, exports, &state_);
  }

 private:
  /// (ArrayBuffer) → bytes from its start to the next multiple of kAlignment in memory.
  Napi::Value padding(const Napi::CallbackInfo& info) {
    const auto address = reinterpret_cast<uintptr_t>(info[0].As<Napi::ArrayBuffer>().Data());
    return Napi::Number::New(info.Env(), static_cast<double>((kAlignment - address % kAlignment) % kAlignment));
  }

  /// (typed array, dtype) → handle. Keeps the array until `free`; its buffer must be neither transferred nor resized.
  Napi::Value adopt(const Napi::CallbackInfo& info) {
    return guarded(info, [&] {
      napi_typedarray_type type = napi_uint8_array;
      size_t count = 0;
      void* data = nullptr;
      const napi_status status = napi_get_typedarray_info(info.Env(), info[0], &type, &count, &data, nullptr, nullptr);
      const auto dtype = static_cast<DType>(info[1].As<Napi::Number>().Int32Value());
      if (status != napi_ok || !holds(type, dtype))
        throw std::invalid_argument("adopt: the array does not hold elements of this dtype.");
      auto keeper = std::make_shared<Napi::ObjectReference>(Napi::Persistent(info[0].As<Napi::Object>()));
      return Napi::Number::New(info.Env(), state_.blocks.add({std::move(keeper), data, dtype, count}))
          .As<Napi::Value>();
    });
  }

  /// (address, bytes) → ArrayBuffer over memory of another library
  Napi::Value buffer_at(const Napi::CallbackInfo& info) {
    return guarded(info, [&] {
      bool is_exact = false;
      auto* data = reinterpret_cast<void*>(info[0].As<Napi::BigInt>().Uint64Value(&is_exact));
      const auto bytes = static_cast<size_t>(info[1].As<Napi::Number>().Int64Value());
      return Napi::ArrayBuffer::New(info.Env(), data, bytes).As<Napi::Value>();
    });
  }

  /// (typed array over buffer_at, dtype, owner, release or null) → handle. `free` drops the owner, detaches the array
  /// and calls `release`.
  Napi::Value borrow(const Napi::CallbackInfo& info) {
    return guarded(info, [&] {
      const auto array = info[0].As<Napi::TypedArray>();
      const auto dtype = static_cast<DType>(info[1].As<Napi::Number>().Int32Value());
      if (!holds(array.TypedArrayType(), dtype))
        throw std::invalid_argument("borrow: the array does not hold elements of this dtype.");
      const auto loan = std::make_shared<HostLoan>(info[2].As<Napi::Object>(), array.ArrayBuffer());
      void* data = static_cast<char*>(array.ArrayBuffer().Data()) + array.ByteOffset();
      const int32_t handle = state_.blocks.add({loan, data, dtype, array.ElementLength()});
      loan->release_by(info[3]);  // nothing fails any more
      return Napi::Number::New(info.Env(), handle).As<Napi::Value>();
    });
  }

  /// (handle) → address of the memory, for other libraries, whose work with it is on the calling thread's stream
  Napi::Value address(const Napi::CallbackInfo& info) {
    return guarded(info, [&] {
      const Block* block = state_.blocks.find(info[0].As<Napi::Number>().Int32Value());
      if (!block)
        throw std::invalid_argument("address: this memory has been freed. This is a bug in @ringwise/tensor.");
      if (block->device >= 0) tensor::cuda::touch(*block);
      return Napi::BigInt::New(info.Env(), static_cast<uint64_t>(reinterpret_cast<uintptr_t>(block->data)))
          .As<Napi::Value>();
    });
  }

  /// (handle)
  Napi::Value free(const Napi::CallbackInfo& info) {
    return guarded(info, [&] {
      if (!state_.blocks.remove(info[0].As<Napi::Number>().Int32Value())) {
        throw std::invalid_argument("free: this memory has been freed already. This is a bug in @ringwise/tensor.");
      }
      return info.Env().Undefined();
    });
  }

  /// () → { handles, bytes } that have not been freed, of host and device memory.
  Napi::Value memory(const Napi::CallbackInfo& info) {
    auto result = Napi::Object::New(info.Env());
    result.Set("handles", static_cast<double>(state_.blocks.size()));
    result.Set("bytes", static_cast<double>(state_.blocks.bytes()));
    return result;
  }

  /// (0 | 1 | 2) → name of the level now in use: this one, or the best that the CPU has if that is lower.
  Napi::Value use_cpu(const Napi::CallbackInfo& info) {
    const auto cap = static_cast<tensor::CpuLevel>(info[0].As<Napi::Number>().Int32Value());
    state_.kernels = &tensor::kernels_for(cap);
    return Napi::String::New(info.Env(), state_.kernels->name);
  }

  /// () → number of threads that share a kernel, for the whole process
  Napi::Value num_threads(const Napi::CallbackInfo& info) {
    return Napi::Number::New(info.Env(), tensor::thread_count());
  }

  /// (bytes): adds them, which may be negative, to the external memory that the garbage collector counts.
  Napi::Value adjust_external(const Napi::CallbackInfo& info) {
    Napi::MemoryManagement::AdjustExternalMemory(info.Env(), info[0].As<Napi::Number>().Int64Value());
    return info.Env().Undefined();
  }

  /// (threads), for the whole process
  Napi::Value set_num_threads(const Napi::CallbackInfo& info) {
    tensor::set_thread_count(info[0].As<Napi::Number>().Int32Value());
    return info.Env().Undefined();
  }

  /// Throws exceptions of the library as JavaScript errors; those of Node-API pass unchanged.
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
