// A collective written as sequential code that suspends where it waits for other ranks; its owner resumes it when the
// wait is over. It is a C++20 coroutine without heap allocation: its frame is in memory of its owner.
#pragma once

#include <atomic>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <utility>

namespace ringwise::coll {

/// Memory for the frame of one program at a time.
struct alignas(std::max_align_t) ProgramFrame {
  std::byte memory[2048];
};

class Program {
 public:
  struct promise_type {
    std::exception_ptr error;

    Program get_return_object() { return Program(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { error = std::current_exception(); }

    /// Places the frame in the ProgramFrame of `Owner`, of which the program is a member function.
    template <class Owner>
    static void* operator new(size_t bytes, Owner& owner) {
      if (bytes > sizeof(ProgramFrame)) throw std::logic_error("a program's frame is larger than ProgramFrame");
      return owner.program_frame().memory;
    }
    static void operator delete(void*) {}
  };

  Program() = default;
  explicit Program(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  Program(Program&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Program& operator=(Program&& other) noexcept {
    reset();
    handle_ = std::exchange(other.handle_, nullptr);
    return *this;
  }
  ~Program() { reset(); }

  void reset() {
    if (handle_) std::exchange(handle_, nullptr).destroy();
  }

  /// Continues the program after the wait at which it is suspended.
  void resume() { handle_.resume(); }

  /// Returns whether the program has ended; rethrows the exception that ended it.
  bool ended() const {
    if (!handle_.done()) return false;
    if (handle_.promise().error) std::rethrow_exception(handle_.promise().error);
    return true;
  }

 private:
  std::coroutine_handle<promise_type> handle_;
};

}  // namespace ringwise::coll
