// A JavaScript function that threads of others ring for: those of the CUDA driver, which nobody here can join. When
// they do, the environment may have ended (process.exit, a terminated worker, a script that did not wait), and Node
// frees a thread-safe function together with its environment, also when a thread still holds it. So the bell hears of
// the end first, and who rings later is told that nobody listens.
#pragma once

#include <napi.h>

#include <functional>
#include <memory>
#include <mutex>
#include <utility>

namespace ringwise::node {

class Bell {
 public:
  /// `function` may be null. For each ring `rung(env, function, null, data)` runs on the JavaScript thread, with a null
  /// `env` when only `data` is to be freed. `at_end` runs there, too, when the environment ends, before ring() begins
  /// to refuse.
  static std::shared_ptr<Bell> make(napi_env env, napi_value function, napi_threadsafe_function_call_js rung,
                                    std::function<void()> at_end = {}) {
    const std::shared_ptr<Bell> bell(new Bell(env, std::move(at_end)));
    napi_value name;
    if (napi_create_string_utf8(env, "ringwise.device", NAPI_AUTO_LENGTH, &name) != napi_ok ||
        napi_create_threadsafe_function(env, function, nullptr, name, 0, 1, nullptr, nullptr, nullptr, rung,
                                        &bell->function_) != napi_ok) {
      throw Napi::Error::New(env, "napi_create_threadsafe_function failed");
    }
    // Hooks run in reverse order: this one ahead of the one with which Node frees the function.
    napi_add_env_cleanup_hook(env, &Bell::on_environment_end, bell.get());
    return bell;
  }

  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;

  /// Any thread. False when nobody listens any more: `data` is still the caller's then.
  bool ring(void* data) {
    const std::lock_guard lock(mutex_);
    return function_ && napi_call_threadsafe_function(function_, data, napi_tsfn_nonblocking) == napi_ok;
  }

  /// JavaScript thread. Whether the event loop lives on for it; it does at first.
  void keep_loop(bool is_kept) {
    if (is_kept)
      napi_ref_threadsafe_function(env_, function_);
    else
      napi_unref_threadsafe_function(env_, function_);
  }

  /// JavaScript thread, once, before the last owner there lets go. What has been rung until now is still heard.
  void close() {
    if (const napi_threadsafe_function function = silence()) {
      napi_remove_env_cleanup_hook(env_, &Bell::on_environment_end, this);
      napi_release_threadsafe_function(function, napi_tsfn_release);
    }
  }

 private:
  Bell(napi_env env, std::function<void()> at_end) : env_(env), at_end_(std::move(at_end)) {}

  static void on_environment_end(void* data) {
    auto* self = static_cast<Bell*>(data);
    if (self->at_end_) self->at_end_();
    self->silence();
  }

  napi_threadsafe_function silence() {
    const std::lock_guard lock(mutex_);
    return std::exchange(function_, nullptr);
  }

  const napi_env env_;                  // JavaScript thread
  const std::function<void()> at_end_;  // JavaScript thread
  std::mutex mutex_;                    // of function_; held for no longer than a call of Node's, which does not wait
  napi_threadsafe_function function_ = nullptr;  // any thread; null once nobody listens
};

}  // namespace ringwise::node
