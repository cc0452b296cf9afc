// A signal that ends the sleep of a thread which waits for descriptors.
#pragma once

#include "base/fd.h"

namespace ringwise::os {

class Wakeup {
 public:
  /// Throws std::system_error.
  Wakeup();

  /// Returns a descriptor that can be read from ring() to silence(). Only wait for it; do not read it.
  int descriptor() const { return reader_.get(); }
  /// May run on any thread, and in a signal handler.
  void ring() noexcept;
  /// Takes back all calls of ring() so far. Any thread.
  void silence() noexcept;
  /// Sleeps until ring() is called, or takes back earlier calls. For one thread.
  void wait() noexcept;

 private:
  Fd reader_;
  Fd writer_;  // of a pipe; empty where the reader is an eventfd
};

}  // namespace ringwise::os
