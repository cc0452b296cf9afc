// Lets threads that we do not own and cannot join, such as those of the CUDA driver, have a function called on the
// JavaScript thread. The environment may have ended by then (process.exit in a worker, a terminated worker, a script
// that did not wait), and Node frees a thread-safe function together with its environment, even if a thread still holds
// it. So a Bell is told of the end first, and refuses later calls of ring().
#pragma once

#include <napi.h>

#include <functional>
#include <memory>
#include <mutex>
#include <utility>

namespace ringwise::node {

class Bell {
 public:
  /// Makes a bell for `function`, which may be null. For each ring(), `rung(env, function, null, data)` runs on the
  /// JavaScript thread; a null `env` means that it must only free `data`. `at_end` also runs on that thread, when the
  /// environment ends, before ring() starts to refuse.
  static std::shared_ptr<Bell> make(napi_env env, napi_value function, napi_threadsafe_function_call_js rung,
                                    std::function<void()> at_end = {}) {
    const std::shared_ptr<Bell> bell(new Bell(env, std::move(at_end)));
    napi_value name;
    if (napi_create_string_utf8(env, "ringwise.device", NAPI_AUTO_LENGTH, &name) != napi_ok ||
        napi_create_threadsafe_function(env, function, nullptr, name, 0, 1, nullptr, nullptr, nullptr, rung,
                                        &bell->function_) != napi_ok) {
      throw Napi::Error::New(env, "napi_create_threadsafe_function failed");
    }
    // Hooks run in reverse order, so this one runs before the hook by which Node frees the function.
    napi_add_env_cleanup_hook(env, &Bell::on_environment_end, bell.get());
    return bell;
  }

  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;

  /// Schedules a call of `rung` with `data`. Returns false after close() or the end of the environment; the caller then
  /// keeps ownership of `data`. Any thread.
  bool ring(void* data) {
    const std::lock_guard lock(mutex_);
    return function_ && napi_call_threadsafe_function(function_, data, napi_tsfn_nonblocking) == napi_ok;
  }

  /// Sets whether the bell keeps the event loop alive, which it does at first. JavaScript thread.
  void keep_loop(bool is_kept) {
    if (is_kept)
      napi_ref_threadsafe_function(env_, function_);
    else
      napi_unref_threadsafe_function(env_, function_);
  }

  /// Stops accepting rings; earlier ones are still delivered. Call it once on the JavaScript thread, before the last
  /// owner there drops the bell.
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

  const napi_env env_;                           // JavaScript thread
  const std::function<void()> at_end_;           // JavaScript thread
  std::mutex mutex_;                             // guards function_; held only during a Node call that does not block
  napi_threadsafe_function function_ = nullptr;  // any thread; null once ring() refuses
};

}  // namespace ringwise::node
