#include "test/software_gpu/streams.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "test/software_gpu/asynchronous.h"

namespace ringwise::software_gpu {

namespace {

constexpr int kSuccess = 0, kInvalidValue = 1, kNotReady = 600, kCaptureUnsupported = 900, kCaptureInvalidated = 901,
              kCaptureMerge = 902, kCaptureUnmatched = 903, kCaptureUnjoined = 904, kCaptureIsolation = 905,
              kCaptureImplicit = 906, kCapturedEvent = 907, kCaptureWrongThread = 908;

// Guards all state of this file. Held while work runs; work that waits for other streams runs them recursively.
std::recursive_mutex mutex;
std::vector<SoftwareStream*>& streams() {
  static auto& all = *new std::vector<SoftwareStream*>;
  return all;
}

/// Captures in progress.
std::vector<std::shared_ptr<Capture>>& captures() {
  static auto& all = *new std::vector<std::shared_ptr<Capture>>;
  return all;
}

/// Returns the stream; for null, the default stream of the current device, which it makes if there is none yet.
SoftwareStream* of(SoftwareStream* stream) {
  if (stream) return stream;
  const int device = std::max(0, current_device());
  const std::lock_guard lock(mutex);
  for (SoftwareStream* each : streams()) {
    if (each->is_default && each->device == device) return each;
  }
  SoftwareStream* const made = create_stream(device, false);
  return made->is_default = true, made;
}

int broken = 0;  // status with which all work fails, or 0

/// Executes the next entry of the stream, unless it must wait for another stream or another process. Returns whether it
/// has.
bool step(SoftwareStream* stream) {
  Entry& entry = stream->queue.front();
  int status = broken;
  if (!status && entry.other) {
    if (entry.other->executed < entry.until) return false;
    status = entry.other->error;
  } else if (!status) {
    status = entry.work();
    if (status == kAgain) return false;
  }
  stream->queue.pop_front();
  stream->executed++;
  if (status) stream->error = status;
  return true;
}

/// Runs work of the stream until `position` has been reached, or until work must wait for another process. Returns a
/// status of the driver, or kAgain.
int run(SoftwareStream* stream, uint64_t position) {
  for (pass_time(); stream->executed < position; pass_time()) {
    const Entry& next = stream->queue.front();
    if (!broken && next.other && next.other->executed < next.until) {
      if (run(next.other, next.until) == kAgain) return kAgain;
    } else if (!step(stream)) {
      return kAgain;
    }
  }
  return stream->error;
}

/// Runs work of the stream until `position` has been reached. Releases the mutex in between, because other threads may
/// have to advance first.
int finish(SoftwareStream* stream, uint64_t position) {
  for (;; std::this_thread::yield()) {
    const std::lock_guard lock(mutex);
    if (const int status = run(stream, position); status != kAgain) return status;
  }
}

/// Returns the status of a call that a capture forbids, and makes the capture invalid. After the capture, returns the
/// status of a call with an event that was recorded in it.
int refused(Capture& capture, int status = kCaptureUnsupported) {
  if (capture.is_over) return kCapturedEvent;
  capture.is_invalid = true;
  return status;
}

/// Lets later work of the stream wait for all work that `other` has now.
void wait_for(SoftwareStream* stream, SoftwareStream* other) {
  if (other->executed == other->submitted) return;
  stream->queue.push_back({nullptr, other, other->submitted});
  stream->submitted++;
}

/// Orders the default stream of a device with its blocking streams, before work is added to one of them. Refuses work
/// on the default stream while one of the others is captured.
int order_with_default(SoftwareStream* stream) {
  if (!stream->is_default && !stream->is_blocking) return kSuccess;
  for (SoftwareStream* other : streams()) {
    const bool is_pair = stream->is_default ? other->is_blocking : other->is_default;
    if (!is_pair || other->device != stream->device) continue;
    if (other->capture) return refused(*other->capture, kCaptureImplicit);
    wait_for(stream, other);
  }
  return kSuccess;
}

Pace random_pace() {
  constexpr Pace kPaces[] = {Pace::Stopped, Pace::Stopped, Pace::Slow, Pace::Steady, Pace::Fast, Pace::Fast};
  return kPaces[below(static_cast<uint32_t>(std::size(kPaces)))];
}
/// Returns how many entries a stream may execute during one call of the driver.
size_t steps_at(Pace pace) {
  switch (pace) {
    case Pace::Stopped: return 0;
    case Pace::Slow: return one_in(8) ? 1 : 0;
    case Pace::Steady: return below(3);
    default: return SIZE_MAX;
  }
}

/// Adds the stream to a capture.
void take_part(SoftwareStream* stream, const std::shared_ptr<Capture>& capture) {
  stream->capture = capture;
  stream->lane = capture->streams.size();
  capture->streams.push_back(stream);
  capture->graph.lanes.emplace_back();
  for (auto& known : capture->known) known.push_back(0);
  capture->known.emplace_back(capture->streams.size());
}

/// Adds an entry to the stream, or work to the graph that the stream captures.
int enqueue(SoftwareStream* stream, Entry entry) {
  const std::lock_guard lock(mutex);
  if (stream->capture) {
    stream->capture->graph.lanes[stream->lane].push_back({std::move(entry.work)});
    return kSuccess;
  }
  if (const int status = order_with_default(stream)) return status;
  stream->queue.push_back(std::move(entry));
  stream->submitted++;
  pass_time();
  return kSuccess;
}

/// Returns the number of nodes that a wait on the stream must cover: up to its last node that is not a wait.
size_t length_of(const std::vector<Graph::Node>& lane) {
  size_t length = lane.size();
  while (length > 0 && !lane[length - 1].work) --length;
  return length;
}

}  // namespace

void choose_seed(uint64_t seed) {
  const std::lock_guard lock(mutex);
  set_seed(seed);
}

void pass_time() {
  const std::lock_guard lock(mutex);
  if (!is_asynchronous() || streams().empty()) return;
  auto& all = streams();
  const auto count = static_cast<uint32_t>(all.size());
  const uint32_t first = below(count);
  for (uint32_t i = 0; i < count; ++i) {
    SoftwareStream* const stream = all[(first + i) % count];
    if (stream->queue.empty()) continue;
    if (one_in(16)) stream->pace = random_pace();
    for (size_t steps = steps_at(stream->pace); steps > 0 && !stream->queue.empty() && step(stream);) --steps;
  }
  // Destroyed streams leave the list but are never freed, because events may still refer to them.
  static auto& destroyed = *new std::vector<SoftwareStream*>;
  std::erase_if(all, [](SoftwareStream* each) {
    const bool has_ended = each->is_destroyed && each->queue.empty();
    if (has_ended) destroyed.push_back(each);
    return has_ended;
  });
}

int refuse_unsafe() {
  const std::lock_guard lock(mutex);
  for (const auto& capture : captures()) {
    const bool is_own = capture->thread == std::this_thread::get_id();
    if (capture->mode == CaptureMode::Global || (capture->mode == CaptureMode::ThreadLocal && is_own))
      return refused(*capture);
  }
  return kSuccess;
}

SoftwareStream* create_stream(int device, bool is_blocking) {
  const std::lock_guard lock(mutex);
  if (is_asynchronous()) mix_seed(device);
  SoftwareStream* const made = streams().emplace_back(new SoftwareStream);
  made->device = device;
  made->is_blocking = is_blocking;
  if (is_asynchronous()) made->pace = random_pace();
  return made;
}

void destroy_stream(SoftwareStream* stream) {
  {
    const std::lock_guard lock(mutex);
    stream->is_destroyed = true;  // not freed, because events may still refer to it
    if (is_asynchronous() && !stream->capture) return;
  }
  synchronize(stream);
}

int submit(SoftwareStream* stream, Work work) { return enqueue(of(stream), {std::move(work)}); }

bool is_captured(SoftwareStream* stream) {
  const std::lock_guard lock(mutex);
  return of(stream)->capture != nullptr;
}

int synchronize(SoftwareStream* stream) {
  stream = of(stream);
  uint64_t position;
  {
    const std::lock_guard lock(mutex);
    if (stream->capture) return refused(*stream->capture);
    if (const int status = refuse_unsafe()) return status;
    if (const int status = order_with_default(stream)) return status;
    position = stream->submitted;
  }
  return finish(stream, position);
}

void synchronize_all() {
  std::vector<std::pair<SoftwareStream*, uint64_t>> all;
  {
    const std::lock_guard lock(mutex);
    for (SoftwareStream* stream : streams()) all.emplace_back(stream, stream->submitted);
  }
  for (const auto& [stream, position] : all) finish(stream, position);
}

void advance_all() {
  const std::lock_guard lock(mutex);
  for (SoftwareStream* stream : streams()) run(stream, stream->submitted);
}

int record(SoftwareEvent* event, SoftwareStream* stream) {
  const std::lock_guard lock(mutex);
  stream = of(stream);
  event->capture = stream->capture;
  event->patience = is_asynchronous() ? below(5) : 1;
  if (stream->capture) {
    event->lane = stream->lane;
    event->known = stream->capture->known[stream->lane];
    event->known[event->lane] = stream->capture->graph.lanes[event->lane].size();
    return kSuccess;
  }
  // Shared, because the event may be destroyed or recorded again before this runs.
  event->time_ms = std::make_shared<double>(0);
  const int status = submit(stream, [time_ms = event->time_ms] {
    *time_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
    return kSuccess;
  });
  event->stream = stream;
  event->position = stream->submitted;
  return status;
}

int wait(SoftwareStream* stream, const SoftwareEvent* event) {
  const std::lock_guard lock(mutex);
  stream = of(stream);
  if (event->capture) {
    const std::shared_ptr<Capture> capture = event->capture;
    if (capture->is_over) return kCapturedEvent;
    if (stream->is_default) return refused(*capture, kCaptureImplicit);
    if (!stream->capture) take_part(stream, capture);
    if (stream->capture != capture) return capture->is_invalid = stream->capture->is_invalid = true, kCaptureMerge;
    auto& known = capture->known[stream->lane];
    if (event->known[event->lane] > known[event->lane] && event->lane != stream->lane) {
      capture->graph.lanes[stream->lane].push_back({nullptr, event->lane, event->known[event->lane]});
    }
    for (size_t lane = 0; lane < event->known.size(); ++lane) known[lane] = std::max(known[lane], event->known[lane]);
    return kSuccess;
  }
  if (!event->stream) return kSuccess;
  // Work inside a graph cannot wait for an event outside of it.
  if (stream->capture) return refused(*stream->capture, kCaptureIsolation);
  return enqueue(stream, {nullptr, event->stream, event->position});
}

int synchronize(SoftwareEvent* event) {
  {
    const std::lock_guard lock(mutex);
    if (event->capture) return refused(*event->capture);
    if (const int status = refuse_unsafe()) return status;
    if (!event->stream) return kSuccess;
  }
  return finish(event->stream, event->position);
}

int query(SoftwareEvent* event) {
  const std::lock_guard lock(mutex);
  if (event->capture) return refused(*event->capture);
  if (const int status = refuse_unsafe()) return status;
  pass_time();
  if (!event->stream || event->stream->executed >= event->position) return kSuccess;
  if (event->patience > 0) return event->patience--, kNotReady;
  const int status = run(event->stream, event->position);
  return status == kAgain ? kNotReady : status;
}

int call(SoftwareStream* stream, void (*function)(SoftwareStream*, int, void*), void* data) {
  const std::lock_guard lock(mutex);
  stream = of(stream);
  if (stream->capture) return refused(*stream->capture);
  const auto has_returned = std::make_shared<std::atomic<bool>>(false);
  std::thread([stream, function, data, position = stream->submitted, has_returned, is_late = is_asynchronous()] {
    static const char* const delay = std::getenv("RINGWISE_SOFTWARE_CUDA_CALL_MS");
    // Gives the host time to go on before this thread makes the stream run.
    if (is_late) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const int status = finish(stream, position);
    if (delay) std::this_thread::sleep_for(std::chrono::milliseconds(std::atoi(delay)));
    function(stream, status, data);
    *has_returned = true;
  }).detach();
  return submit(stream, [has_returned] { return has_returned->load() ? kSuccess : kAgain; });
}

bool is_reached(const SoftwareEvent* event) {
  const std::lock_guard lock(mutex);
  return event->stream && event->stream->executed >= event->position;
}

void break_device(int status) {
  const std::lock_guard lock(mutex);
  broken = status;
}

void destroy(SoftwareEvent* event) { delete event; }

int begin_capture(SoftwareStream* stream, CaptureMode mode) {
  const std::lock_guard lock(mutex);
  if (!stream) return kCaptureUnsupported;
  if (stream->capture) return kInvalidValue;
  take_part(stream, captures().emplace_back(std::make_shared<Capture>(mode)));
  return kSuccess;
}

int end_capture(SoftwareStream* stream, Graph** graph) {
  const std::lock_guard lock(mutex);
  *graph = nullptr;
  const std::shared_ptr<Capture> capture = stream->capture;
  if (!capture || stream->lane != 0) return kCaptureUnmatched;
  if (capture->mode != CaptureMode::Relaxed && capture->thread != std::this_thread::get_id())
    return kCaptureWrongThread;
  std::erase(captures(), capture);
  for (SoftwareStream* each : capture->streams) each->capture = nullptr;
  capture->is_over = true;
  if (capture->is_invalid) return kCaptureInvalidated;
  for (size_t lane = 1; lane < capture->graph.lanes.size(); ++lane) {
    if (capture->known[0][lane] < length_of(capture->graph.lanes[lane])) return kCaptureUnjoined;
  }
  *graph = new Graph(std::move(capture->graph));
  return kSuccess;
}

ExecutableGraph* instantiate(const Graph& graph) {
  auto* const executable = new ExecutableGraph{graph, {}, nullptr, 0};
  for (size_t lane = 1; lane < graph.lanes.size(); ++lane) executable->beside.push_back(create_stream(0, false));
  return executable;
}

int launch(ExecutableGraph& executable, SoftwareStream* stream) {
  const std::lock_guard lock(mutex);
  const auto& lanes = executable.graph.lanes;
  stream = of(stream);
  if (stream->capture) return refused(*stream->capture);
  if (const int status = order_with_default(stream)) return status;
  if (executable.last) stream->queue.push_back({nullptr, executable.last, executable.until}), stream->submitted++;
  std::vector<SoftwareStream*> on = {stream};
  on.insert(on.end(), executable.beside.begin(), executable.beside.end());
  for (SoftwareStream* each : executable.beside) wait_for(each, stream);  // the graph begins after earlier work
  std::vector<uint64_t> begin;
  for (const SoftwareStream* each : on) begin.push_back(each->submitted);
  for (size_t lane = 0; lane < lanes.size(); ++lane) {
    for (const Graph::Node& node : lanes[lane]) {
      const bool is_wait = !node.work;
      on[lane]->queue.push_back(
          {node.work, is_wait ? on[node.lane] : nullptr, is_wait ? begin[node.lane] + node.until : 0});
      on[lane]->submitted++;
    }
  }
  executable.last = stream;
  executable.until = stream->submitted;
  pass_time();
  return kSuccess;
}

}  // namespace ringwise::software_gpu
