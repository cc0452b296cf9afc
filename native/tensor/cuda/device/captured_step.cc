#include "tensor/cuda/device/captured_step.h"

#include <algorithm>
#include <utility>

namespace ringwise::tensor::cuda {

namespace {

/// Makes a call of the driver that needs device memory. If the device is full, frees the cached memory and calls again.
template <class Call>
int with_room(Device& device, Call call) {
  const int status = call();
  if (status != kOutOfMemory) return status;
  device.empty_caches();
  return call();
}

}  // namespace

CapturedStep::CapturedStep(Device& device)
    : device_(device), memory_(std::make_shared<CachingAllocator>(device.source())) {
  check(driver().cuStreamCreate(&stream_, kStreamNonBlocking), "cuStreamCreate");
  try {
    live_ = static_cast<double*>(memory_->allocate(kMostNumbers * sizeof(double), 0));
  } catch (...) {
    driver().cuStreamDestroy_v2(stream_);
    throw;
  }
}

CapturedStep::~CapturedStep() {
  // The driver keeps graphs that run until they have ended, and the device keeps the memory that they use.
  drop();
  for (const auto& used : others_) device_.retire(used, streams_);
  driver().cuStreamDestroy_v2(stream_);
  memory_->free(live_);
}

void CapturedStep::enter() {
  before_ = activity_on(device_.index());
  activity_on(device_.index()).step = this;
}

void CapturedStep::leave() { activity_on(device_.index()) = before_; }

void CapturedStep::begin() {
  check(driver().cuStreamBeginCapture_v2(stream_, kCaptureRelaxed), "cuStreamBeginCapture");
  enter();
  Activity& now = activity_on(device_.index());
  now.stream = {stream_, 0};
  now.is_capturing = true;
  memory_->keep_segments(true);
  next_ = 0;
  numbers_.clear();
}

Graph CapturedStep::stop() {
  leave();
  Graph graph = nullptr;
  const int status = driver().cuStreamEndCapture(stream_, &graph);
  if (status != kSuccess) memory_->keep_segments(false);
  check(status, "cuStreamEndCapture");
  return graph;
}

void CapturedStep::end() {
  const Graph graph = stop();
  const int status = with_room(device_, [&] { return driver().cuGraphInstantiateWithFlags(&graph_, graph, 0); });
  driver().cuGraphDestroy(graph);
  if (status != kSuccess) memory_->keep_segments(false);
  check(status, "cuGraphInstantiate");
}

void CapturedStep::abort() {
  leave();
  Graph graph = nullptr;
  // Fails if the error has invalidated the graph.
  if (driver().cuStreamEndCapture(stream_, &graph) == kSuccess && graph) driver().cuGraphDestroy(graph);
  memory_->keep_segments(false);
}

size_t CapturedStep::put(const double* values, size_t count) {
  if (kMostNumbers - next_ < count)
    throw std::runtime_error("compile: more than 32768 numbers change from run to run. Use fewer parameters.");
  const size_t first = std::exchange(next_, next_ + count);
  if (numbers_.size() < next_) numbers_.resize(next_);
  std::copy_n(values, count, numbers_.begin() + static_cast<ptrdiff_t>(first));
  return first;
}

void CapturedStep::drop() {
  if (const GraphExec graph = std::exchange(graph_, nullptr)) driver().cuGraphExecDestroy(graph);
}

void CapturedStep::launch() {
  if (!graph_) throw std::runtime_error("compile: what was captured has been dropped.");
  const WorkStream on = device_.work_stream();
  for (const auto& [_, piece] : held_) piece->used_on(on.number);
  streams_ |= 1u << on.number;
  device_.start_upload(live_, numbers_.data(), next_ * sizeof(double));
  check(with_room(device_, [&] { return driver().cuGraphLaunch(graph_, on.handle); }), "cuGraphLaunch");
}

}  // namespace ringwise::tensor::cuda
