// Pinned host memory for JavaScript: an ArrayBuffer over it, and a token that names it for copies. Each of them keeps
// the memory alive.
#include <cstdint>
#include <memory>
#include <stdexcept>

#include "node/tensor/tensor_cuda.h"
#include "node/tensor/tensor_guard.h"
#include "tensor/cuda/memory/pinned.h"

namespace ringwise::node {

namespace {

using namespace tensor::cuda;

using Token = std::shared_ptr<Pinned>;

Pinned& pinned_of(const Napi::Value& token) { return **token.As<Napi::External<Token>>().Data(); }

/// (bytes) → [ArrayBuffer, token]. `bytes` is more than 0, because the end of an empty buffer is not reported.
Napi::Value pin(const Napi::CallbackInfo& info) {
  return guarded(info, [&] {
    const Napi::Env env = info.Env();
    const int64_t bytes = info[0].As<Napi::Number>().Int64Value();
    if (bytes <= 0) throw std::invalid_argument("cuda: a count is out of range.");
    auto token = std::make_unique<Token>(std::make_shared<Pinned>(any_device(), static_cast<size_t>(bytes)));
    auto kept = std::make_unique<Token>(*token);
    const auto buffer = Napi::ArrayBuffer::New(
        env, (*token)->data(), (*token)->bytes(), [](Napi::Env, void*, Token* old) { delete old; }, kept.get());
    kept.release();
    const auto external = Napi::External<Token>::New(env, token.get(), [](Napi::Env, Token* old) { delete old; });
    token.release();
    auto result = Napi::Array::New(env, 2);
    result.Set(uint32_t{0}, buffer);
    result.Set(uint32_t{1}, external);
    return result.As<Napi::Value>();
  });
}

/// (token): whether no copy is under way
Napi::Value is_idle(const Napi::CallbackInfo& info) {
  return guarded(info, [&] { return Napi::Boolean::New(info.Env(), pinned_of(info[0]).is_idle()).As<Napi::Value>(); });
}

/// Elements of device memory, and bytes of pinned memory.
struct Range {
  Device& device;
  char* on_device;
  Pinned& pinned;
  size_t offset, bytes;
};

/// (handle, offset in elements, token, offset in bytes, bytes)
Range range(const Napi::CallbackInfo& info) {
  auto* state = static_cast<TensorState*>(info.Data());
  const tensor::Block* block = state->blocks.find(integer(info, 0));
  if (!block || block->device < 0)
    throw std::invalid_argument("cuda: the handle names no device memory. This is a bug in @ringwise/tensor.");
  const auto start = static_cast<size_t>(info[1].As<Napi::Number>().Int64Value()) * byte_size(block->dtype);
  Pinned& pinned = pinned_of(info[2]);
  const auto offset = static_cast<size_t>(info[3].As<Napi::Number>().Int64Value());
  const auto bytes = static_cast<size_t>(info[4].As<Napi::Number>().Int64Value());
  const size_t whole = block->count * byte_size(block->dtype);
  if (start > whole || bytes > whole - start || offset > pinned.bytes() || bytes > pinned.bytes() - offset) {
    throw std::invalid_argument("cuda: the copy exceeds the memory. This is a bug in @ringwise/tensor.");
  }
  touch(*block);
  return {entered(block->device), static_cast<char*>(block->data) + start, pinned, offset, bytes};
}

Napi::Value start_upload(const Napi::CallbackInfo& info) {
  return guarded(info, [&] {
    const Range r = range(info);
    r.pinned.start_upload(r.device, r.on_device, r.offset, r.bytes);
    return info.Env().Undefined();
  });
}

Napi::Value start_download(const Napi::CallbackInfo& info) {
  return guarded(info, [&] {
    const Range r = range(info);
    r.pinned.start_download(r.device, r.offset, r.on_device, r.bytes);
    return info.Env().Undefined();
  });
}

}  // namespace

void define_pinned(Napi::Env env, Napi::Object exports, TensorState* state) {
  const auto define = [&](const char* name, Napi::Value (*function)(const Napi::CallbackInfo&)) {
    exports.Set(name, Napi::Function::New(env, function, name, state));
  };
  define("cudaPin", &pin);
  define("cudaPinnedIsIdle", &is_idle);
  define("cudaStartUpload", &start_upload);
  define("cudaStartDownload", &start_download);
}

}  // namespace ringwise::node
