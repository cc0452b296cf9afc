// A step of a program, captured once as a graph of the driver and started as a whole ever after. Its memory comes from
// an allocator of its own, so that the addresses in the graph stay the step's; other memory that it works with is held.
// Numbers that change from run to run (learning rates, positions in random streams) lie in device memory: each run
// writes them anew, in the order in which they were asked for while the step was captured. A step belongs to one
// thread.
#pragma once

#include <cstddef>
#include <memory>
#include <unordered_map>
#include <vector>

#include "tensor/cuda/device/device.h"

namespace ringwise::tensor::cuda {

class CapturedStep {
 public:
  explicit CapturedStep(Device& device);
  ~CapturedStep();
  CapturedStep(const CapturedStep&) = delete;
  CapturedStep& operator=(const CapturedStep&) = delete;

  /// What the calling thread starts between these runs at once, in this step's memory.
  void enter();
  void leave();
  /// What the calling thread starts between these is captured. Throws CudaError, also for what cannot be captured.
  void begin();
  void end();
  /// Ends the capture and drops what was captured.
  void abort();

  /// The numbers of the next run, from the first on.
  void rewind() { next_ = 0; }
  /// Takes the next `count` places. Returns the first one's position.
  size_t put(const double* values, size_t count);
  const double* address(size_t position) const { return live_ + position; }
  /// Starts a run on the calling thread's stream, and returns at once.
  void launch();
  /// Destroys the graph, for those who have to see it go; the memory stays. There are no more runs.
  void drop();
  /// What is captured by others goes there, too.
  Stream stream() const { return stream_; }

  const std::shared_ptr<CachingAllocator>& memory() const { return memory_; }
  /// Keeps memory as long as the step.
  void hold(const std::shared_ptr<void>& piece) { held_.emplace(piece.get(), piece); }

 private:
  static constexpr size_t kMostNumbers = 32768;

  Graph stop();

  Device& device_;
  std::shared_ptr<CachingAllocator> memory_;
  std::unordered_map<void*, std::shared_ptr<void>> held_;
  double* live_ = nullptr;
  std::vector<double> numbers_;
  size_t next_ = 0;
  Stream stream_ = nullptr;  // nothing ever runs there
  GraphExec graph_ = nullptr;
  Activity before_;
};

/// The step that the calling thread is capturing; null when there is none.
inline CapturedStep* step_being_captured(int device) {
  const Activity& now = activity_on(device);
  return now.is_capturing ? now.step : nullptr;
}

}  // namespace ringwise::tensor::cuda
