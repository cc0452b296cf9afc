// Sets a thread's current CUDA context for a scope.
#pragma once

#include "base/cuda/cuda_driver.h"

namespace ringwise::cuda {

/// Makes a context current on this thread and restores the previous one at the end of the scope, because other code on
/// the thread relies on it. Throws if the driver refuses.
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
