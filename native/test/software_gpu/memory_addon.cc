// software_memory.node: memory of the software device for tests in JavaScript. The device is the CPU, so an ArrayBuffer shows
// it; who reads and writes there waits for the device first, as with any memory. And what the software libnccl counts.
#include <napi.h>

#include <cstdint>

#include "base/cuda_driver.h"
#include "coll/nccl/library.h"

namespace {

using ringwise::cuda::check;
using ringwise::cuda::driver;

/// (device, bytes) => ArrayBuffer on new memory of the device.
Napi::Value allocate(const Napi::CallbackInfo& info) {
  const auto device = info[0].ToNumber().Int32Value();
  const auto bytes = static_cast<size_t>(info[1].ToNumber().Int64Value());
  ringwise::cuda::Context context = nullptr;
  ringwise::cuda::DevicePointer address = 0;
  check(driver().cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  check(driver().cuCtxSetCurrent(context), "cuCtxSetCurrent");
  check(driver().cuMemAlloc_v2(&address, bytes), "cuMemAlloc");
  return Napi::ArrayBuffer::New(info.Env(), reinterpret_cast<void*>(address), bytes, [address](Napi::Env, void*) {
    driver().cuMemFree_v2(address);
  });
}

/// (buffer) => its address
Napi::Value address_of(const Napi::CallbackInfo& info) {
  return Napi::BigInt::New(info.Env(), reinterpret_cast<uint64_t>(info[0].As<Napi::ArrayBuffer>().Data()));
}

/// () => the groups of calls that NCCL has had from this process
Napi::Value batches(const Napi::CallbackInfo& info) {
  const auto count = reinterpret_cast<int (*)()>(ringwise::nccl::library().file.symbol("softwareNcclBatches"));
  return Napi::Number::New(info.Env(), count());
}

Napi::Object initialise(Napi::Env env, Napi::Object exports) {
  exports.Set("allocate", Napi::Function::New<allocate>(env, "allocate"));
  exports.Set("addressOf", Napi::Function::New<address_of>(env, "addressOf"));
  exports.Set("batches", Napi::Function::New<batches>(env, "batches"));
  return exports;
}

}  // namespace

NODE_API_MODULE(software_memory, initialise)
