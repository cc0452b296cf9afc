// A thread's current context.
#pragma once

#include "base/cuda/cuda_driver.h"

namespace ringwise::cuda {

/// Makes a context the thread's own for a while: others on this thread rely on theirs. Throws where the driver has none
/// to give.
class Entered {
 public:
  explicit Entered(Context context) {
    driver().cuCtxGetCurrent(&before_);
    is_other_ = before_ != context;
    if (is_other_) check(driver().cuCtxSetCurrent(context), "cuCtxSetCurrent");
  }
  ~Entered() {
    if (is_other_) driver().cuCtxSetCurrent(before_);
  }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;

 private:
  Context before_ = nullptr;
  bool is_other_ = false;
};

}  // namespace ringwise::cuda
