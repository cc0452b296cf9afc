// Memory that another library lends. Its owner is kept alive as long as the loan, at whose end a function is called.
#pragma once

#include <napi.h>

namespace ringwise::node {

/// A loan. Used and destroyed on the JavaScript thread.
class Loan {
 public:
  explicit Loan(Napi::Object owner) : owner_(Napi::Persistent(owner)) {}
  ~Loan() {
    if (release_.IsEmpty()) return;
    // Uses the plain Node-API, which returns an error, and does not throw, when the environment has ended.
    const napi_env env = release_.Env();
    const Napi::HandleScope scope(env);
    napi_value nothing = nullptr;
    napi_get_undefined(env, &nothing);
    napi_call_function(env, nothing, release_.Value(), 0, nullptr, nullptr);
  }
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;

  /// Sets the function to call at the end, or null. It must neither throw nor call this addon.
  void release_by(const Napi::Value& release) {
    if (release.IsFunction()) release_ = Napi::Persistent(release.As<Napi::Function>());
  }

 private:
  Napi::ObjectReference owner_;
  Napi::FunctionReference release_;
};

/// A loan of host memory, which JavaScript accesses by an ArrayBuffer. The buffer is detached at the end.
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
