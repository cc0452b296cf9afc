// Memory that another library lends: its owner is kept until nothing works with the memory any more, and is told then.
#pragma once

#include <napi.h>

namespace ringwise::node {

/// Belongs to the JavaScript thread, and ends there.
class Loan {
 public:
  explicit Loan(Napi::Object owner) : owner_(Napi::Persistent(owner)) {}
  ~Loan() {
    if (release_.IsEmpty()) return;
    // By the plain Node-API: at the end of an environment, when nothing can be called any more, it only says so.
    const napi_env env = release_.Env();
    const Napi::HandleScope scope(env);
    napi_value nothing = nullptr;
    napi_get_undefined(env, &nothing);
    napi_call_function(env, nothing, release_.Value(), 0, nullptr, nullptr);
  }
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;

  /// A function that neither throws nor comes back to this addon, or null.
  void release_by(const Napi::Value& release) {
    if (release.IsFunction()) release_ = Napi::Persistent(release.As<Napi::Function>());
  }

 private:
  Napi::ObjectReference owner_;
  Napi::FunctionReference release_;
};

/// A loan of host memory, which JavaScript sees by an ArrayBuffer. What is left of that is empty afterwards.
class HostLoan : public Loan {
 public:
  HostLoan(Napi::Object owner, Napi::ArrayBuffer buffer) : Loan(owner), buffer_(Napi::Persistent(buffer)) {}
  ~HostLoan() {
    const napi_env env = buffer_.Env();
    const Napi::HandleScope scope(env);
    napi_detach_arraybuffer(env, buffer_.Value());
  }

 private:
  Napi::Reference<Napi::ArrayBuffer> buffer_;
};

}  // namespace ringwise::node
