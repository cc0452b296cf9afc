// device_memory.node gives tests in JavaScript memory of CUDA devices. `reserve`, `write` and `read` work on any
// device. The software device is the CPU, so `allocate` can return its memory as an ArrayBuffer; a test must wait for
// the device before it accesses that memory. `keepBusy` works on any device, too.
// Also exports counters and faults of the software libnccl, and `breakDevice`.
#include <napi.h>

#include <chrono>
#include <cstdint>
#include <thread>

#include "base/cuda/cuda_driver.h"
#include "coll/nccl/library.h"

namespace {

using ringwise::cuda::check;
using ringwise::cuda::driver;

using ringwise::cuda::DevicePointer;

/// Makes the device current on this thread.
void enter(int device) {
  ringwise::cuda::Context context = nullptr;
  check(driver().cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  check(driver().cuCtxSetCurrent(context), "cuCtxSetCurrent");
}

/// (device, bytes): allocates memory of the device.
DevicePointer allocated(const Napi::CallbackInfo& info) {
  DevicePointer address = 0;
  enter(info[0].ToNumber().Int32Value());
  check(driver().cuMemAlloc_v2(&address, static_cast<size_t>(info[1].ToNumber().Int64Value())), "cuMemAlloc");
  return address;
}

/// (device, bytes): allocates memory that is never freed. Returns its address.
Napi::Value reserve(const Napi::CallbackInfo& info) {
  return Napi::BigInt::New(info.Env(), static_cast<uint64_t>(allocated(info)));
}

/// (device, address, bytes): copies between the device and the Uint8Array `bytes` on a separate stream, so that the
/// copy does not wait for other work. Blocks until it has ended.
template <class Copy>
void transfer(const Napi::CallbackInfo& info, const Copy& copy) {
  enter(info[0].ToNumber().Int32Value());
  bool is_lossless = false;
  const DevicePointer address = info[1].As<Napi::BigInt>().Uint64Value(&is_lossless);
  auto bytes = info[2].As<Napi::Uint8Array>();
  ringwise::cuda::Stream stream = nullptr;
  check(driver().cuStreamCreate(&stream, ringwise::cuda::kStreamNonBlocking), "cuStreamCreate");
  check(copy(address, bytes.Data(), bytes.ByteLength(), stream), "cuMemcpy");
  check(driver().cuStreamSynchronize(stream), "cuStreamSynchronize");
  check(driver().cuStreamDestroy_v2(stream), "cuStreamDestroy");
}
Napi::Value write(const Napi::CallbackInfo& info) {
  transfer(info, [](DevicePointer to, const void* from, size_t size, ringwise::cuda::Stream stream) {
    return driver().cuMemcpyHtoDAsync_v2(to, from, size, stream);
  });
  return info.Env().Undefined();
}
Napi::Value read(const Napi::CallbackInfo& info) {
  transfer(info, [](DevicePointer from, void* to, size_t size, ringwise::cuda::Stream stream) {
    return driver().cuMemcpyDtoHAsync_v2(to, from, size, stream);
  });
  return info.Env().Undefined();
}

/// (device, bytes): allocates memory of the software device. Returns it as an ArrayBuffer, which frees it.
Napi::Value allocate(const Napi::CallbackInfo& info) {
  const DevicePointer address = allocated(info);
  const auto bytes = static_cast<size_t>(info[1].ToNumber().Int64Value());
  return Napi::ArrayBuffer::New(info.Env(), reinterpret_cast<void*>(address), bytes,
                                [address](Napi::Env, void*) { driver().cuMemFree_v2(address); });
}

/// (buffer): returns the address of an ArrayBuffer.
Napi::Value address_of(const Napi::CallbackInfo& info) {
  return Napi::BigInt::New(info.Env(), reinterpret_cast<uint64_t>(info[0].As<Napi::ArrayBuffer>().Data()));
}

/// (device, ms): makes the device's default stream busy for a time, so that its later work waits.
void keep_busy(const Napi::CallbackInfo& info) {
  enter(info[0].ToNumber().Int32Value());
  const auto sleep = [](ringwise::cuda::Stream, int, void* ms) {
    std::this_thread::sleep_for(std::chrono::milliseconds(reinterpret_cast<intptr_t>(ms)));
  };
  void* const ms = reinterpret_cast<void*>(static_cast<intptr_t>(info[1].ToNumber().Int64Value()));
  check(driver().cuStreamAddCallback(nullptr, sleep, ms, 0), "cuStreamAddCallback");
}

/// (): makes the software device fail all later work.
Napi::Value break_device(const Napi::CallbackInfo& info) {
  reinterpret_cast<int (*)()>(driver().library.symbol("softwareCudaBreak"))();
  return info.Env().Undefined();
}

/// (): returns the number of groups of NCCL calls of this process.
Napi::Value batches(const Napi::CallbackInfo& info) {
  const auto count = reinterpret_cast<int (*)()>(ringwise::nccl::library().file.symbol("softwareNcclBatches"));
  return Napi::Number::New(info.Env(), count());
}

/// (): returns [number of registrations with NCCL in this process so far, number of those that still exist].
Napi::Value registrations(const Napi::CallbackInfo& info) {
  const auto count =
      reinterpret_cast<int (*)(int*)>(ringwise::nccl::library().file.symbol("softwareNcclRegistrations"));
  int now = 0;
  auto both = Napi::Array::New(info.Env());
  both.Set(0u, Napi::Number::New(info.Env(), count(&now)));
  both.Set(1u, Napi::Number::New(info.Env(), now));
  return both;
}

/// (): returns the number of registrations so far whose memory NVLink can use.
Napi::Value shareable(const Napi::CallbackInfo& info) {
  const auto count = reinterpret_cast<int (*)()>(ringwise::nccl::library().file.symbol("softwareNcclShareable"));
  return Napi::Number::New(info.Env(), count());
}

/// (): makes the network of this process's communicators fail.
void break_nccl(const Napi::CallbackInfo&) {
  reinterpret_cast<int (*)()>(ringwise::nccl::library().file.symbol("softwareNcclBreak"))();
}

/// (stalls): sets whether NCCL stays busy with all later calls.
void stall_nccl(const Napi::CallbackInfo& info) {
  reinterpret_cast<int (*)(int)>(ringwise::nccl::library().file.symbol("softwareNcclStall"))(
      info[0].ToBoolean().Value());
}

Napi::Object initialise(Napi::Env env, Napi::Object exports) {
  exports.Set("reserve", Napi::Function::New<reserve>(env, "reserve"));
  exports.Set("write", Napi::Function::New<write>(env, "write"));
  exports.Set("read", Napi::Function::New<read>(env, "read"));
  exports.Set("allocate", Napi::Function::New<allocate>(env, "allocate"));
  exports.Set("addressOf", Napi::Function::New<address_of>(env, "addressOf"));
  exports.Set("keepBusy", Napi::Function::New<keep_busy>(env, "keepBusy"));
  exports.Set("breakDevice", Napi::Function::New<break_device>(env, "breakDevice"));
  exports.Set("registrations", Napi::Function::New<registrations>(env, "registrations"));
  exports.Set("shareable", Napi::Function::New<shareable>(env, "shareable"));
  exports.Set("breakNccl", Napi::Function::New<break_nccl>(env, "breakNccl"));
  exports.Set("stallNccl", Napi::Function::New<stall_nccl>(env, "stallNccl"));
  exports.Set("batches", Napi::Function::New<batches>(env, "batches"));
  return exports;
}

}  // namespace

NODE_API_MODULE(device_memory, initialise)
