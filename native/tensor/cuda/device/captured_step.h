// A captured step: work that is captured once as a CUDA graph and then launched as a whole. The step has its own
// allocator, so that no other code reuses the addresses in the graph, and it keeps other memory that it uses alive.
// Numbers that change from run to run (learning rates, positions in random streams) are in device memory. Each run
// writes them again, in the order in which they were requested during the capture. A step belongs to one thread.
#pragma once

#include <cstddef>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tensor/cuda/device/device.h"

namespace ringwise::tensor::cuda {

class CapturedStep {
 public:
  explicit CapturedStep(Device& device);
  ~CapturedStep();
  CapturedStep(const CapturedStep&) = delete;
  CapturedStep& operator=(const CapturedStep&) = delete;

  /// Between enter() and leave(), work of the calling thread runs normally, but allocates from this step's memory.
  void enter();
  void leave();
  /// Between begin() and end(), work of the calling thread is captured. Throws CudaError, also for work that cannot be
  /// captured.
  void begin();
  void end();
  /// Ends the capture and drops the captured work.
  void abort();

  /// Makes put() start again at the first place, for the numbers of the next run.
  void rewind() { next_ = 0; }
  /// Stores `count` numbers in the next places. Returns the position of the first one.
  size_t put(const double* values, size_t count);
  const double* address(size_t position) const { return live_ + position; }
  /// Starts a run on the calling thread's stream, and returns at once.
  void launch();
  /// Destroys the graph, so that other libraries (NCCL) can see that it is gone; keeps the memory. The step cannot run
  /// any more.
  void drop();
  /// Returns the stream that is captured, so that other libraries can add work to the graph.
  Stream stream() const { return stream_; }

  const std::shared_ptr<CachingAllocator>& memory() const { return memory_; }
  /// Keeps memory alive as long as the step.
  void hold(const std::shared_ptr<Piece>& piece) { held_.emplace(piece.get(), piece); }
  /// Keeps something else that the captured work uses alive, until the step and its runs have ended.
  void hold_other(const std::shared_ptr<void>& used) { others_.insert(used); }

 private:
  static constexpr size_t kMostNumbers = 32768;  // a run can change at most this many

  Graph stop();

  Device& device_;
  std::shared_ptr<CachingAllocator> memory_;                // only for this step
  std::unordered_map<void*, std::shared_ptr<Piece>> held_;  // kept alive with the step, by address
  std::unordered_set<std::shared_ptr<void>> others_;        // kept alive with the step and its runs
  uint32_t streams_ = 0;                                    // bit set of the streams on which it has run
  double* live_ = nullptr;                                  // in device memory; kMostNumbers numbers of the current run
  std::vector<double> numbers_;                             // on the host; the numbers of the next run
  size_t next_ = 0;                                         // the next free place in numbers_
  Stream stream_ = nullptr;                                 // only captured; no work ever runs on it
  GraphExec graph_ = nullptr;                               // null before end() and after drop()
  Activity before_;                                         // what the thread did before enter(); leave() restores it
};

/// Returns the step that the calling thread is capturing; null if there is none.
inline CapturedStep* step_being_captured(int device) {
  const Activity& now = activity_on(device);
  return now.is_capturing ? now.step : nullptr;
}

}  // namespace ringwise::tensor::cuda
