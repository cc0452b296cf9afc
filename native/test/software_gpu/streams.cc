#include "test/software_gpu/streams.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace ringwise::software_gpu {

namespace {

constexpr int kSuccess = 0, kInvalidValue = 1, kNotReady = 600, kCaptureUnsupported = 900, kCaptureInvalidated = 901,
              kCaptureMerge = 902, kCaptureUnmatched = 903, kCaptureUnjoined = 904, kCaptureIsolation = 905,
              kCaptureImplicit = 906, kCapturedEvent = 907;

// Guards all state of this file. Held while work runs; work that waits for other streams runs them recursively.
std::recursive_mutex mutex;
std::vector<SoftwareStream*>& streams() {
  static auto& all = *new std::vector<SoftwareStream*>;
  return all;
}

SoftwareStream* default_stream() {
  static auto* const by_default = new SoftwareStream;
  return by_default;
}
SoftwareStream* of(SoftwareStream* stream) { return stream ? stream : default_stream(); }

int broken = 0;  // status with which all work fails, or 0

/// Runs work of the stream until `position` has been reached, or until work must wait for another process. Returns a
/// status of the driver, or kAgain.
int run(SoftwareStream* stream, uint64_t position) {
  while (stream->executed < position) {
    const int status = broken ? broken : stream->queue.front()();
    if (status == kAgain) return kAgain;
    stream->queue.pop_front();
    stream->executed++;
    if (status) stream->error = status;
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

/// Returns the status of a call that waits during a capture, and marks the graph as invalid. After the capture, an
/// event that was recorded in it cannot be queried either.
int refused(Capture& capture, int status = kCaptureUnsupported) {
  if (capture.is_over) return kCapturedEvent;
  capture.is_invalid = true;
  return status;
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

/// Returns the number of nodes that a wait on the stream must cover: up to its last node that is not a wait.
size_t length_of(const std::vector<Graph::Node>& lane) {
  size_t length = lane.size();
  while (length > 0 && !lane[length - 1].work) --length;
  return length;
}

}  // namespace

SoftwareStream* create_stream(int device) {
  const std::lock_guard lock(mutex);
  SoftwareStream* const made = streams().emplace_back(new SoftwareStream);
  return made->device = device, made;
}

void destroy_stream(SoftwareStream* stream) {
  synchronize(stream);  // not freed, because events may still refer to it
}

int submit(SoftwareStream* stream, Work work) {
  const std::lock_guard lock(mutex);
  stream = of(stream);
  if (stream->capture) {
    stream->capture->graph.lanes[stream->lane].push_back({std::move(work)});
    return kSuccess;
  }
  stream->queue.push_back(std::move(work));
  stream->submitted++;
  return kSuccess;
}

bool is_recorded(SoftwareStream* stream) {
  const std::lock_guard lock(mutex);
  return of(stream)->capture != nullptr;
}

int synchronize(SoftwareStream* stream) {
  stream = of(stream);
  uint64_t position;
  {
    const std::lock_guard lock(mutex);
    if (stream->capture) return refused(*stream->capture);
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
  event->was_asked = false;
  if (stream->capture) {
    event->lane = stream->lane;
    event->known = stream->capture->known[stream->lane];
    event->known[event->lane] = stream->capture->graph.lanes[event->lane].size();
    return kSuccess;
  }
  submit(stream, [event] {
    event->time_ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
    return kSuccess;
  });
  event->stream = stream;
  event->position = stream->submitted;
  return kSuccess;
}

int wait(SoftwareStream* stream, const SoftwareEvent* event) {
  const std::lock_guard lock(mutex);
  stream = of(stream);
  if (event->capture) {
    const std::shared_ptr<Capture> capture = event->capture;
    if (capture->is_over) return kCapturedEvent;
    if (stream == default_stream()) return refused(*capture, kCaptureImplicit);
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
  return submit(stream, [other = event->stream, position = event->position] { return run(other, position); });
}

int synchronize(SoftwareEvent* event) {
  {
    const std::lock_guard lock(mutex);
    if (event->capture) return refused(*event->capture);
    if (!event->stream) return kSuccess;
  }
  return finish(event->stream, event->position);
}

int query(SoftwareEvent* event) {
  const std::lock_guard lock(mutex);
  if (event->capture) return refused(*event->capture);
  if (!event->stream || event->stream->executed >= event->position) return kSuccess;
  if (!std::exchange(event->was_asked, true)) return kNotReady;
  const int status = run(event->stream, event->position);
  return status == kAgain ? kNotReady : status;
}

int call(SoftwareStream* stream, void (*function)(SoftwareStream*, int, void*), void* data) {
  const std::lock_guard lock(mutex);
  stream = of(stream);
  if (stream->capture) return refused(*stream->capture);
  const auto has_returned = std::make_shared<std::atomic<bool>>(false);
  std::thread([stream, function, data, position = stream->submitted, has_returned] {
    static const char* const delay = std::getenv("RINGWISE_SOFTWARE_CUDA_CALL_MS");
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

void destroy(SoftwareEvent* event) {
  if (!event->capture) synchronize(event);  // its record may not have run yet
  delete event;
}

int begin_capture(SoftwareStream* stream) {
  const std::lock_guard lock(mutex);
  if (!stream) return kCaptureUnsupported;
  if (stream->capture) return kInvalidValue;
  take_part(stream, std::make_shared<Capture>());
  return kSuccess;
}

int end_capture(SoftwareStream* stream, Graph** graph) {
  const std::lock_guard lock(mutex);
  *graph = nullptr;
  const std::shared_ptr<Capture> capture = stream->capture;
  if (!capture || stream->lane != 0) return kCaptureUnmatched;
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
  auto* const executable = new ExecutableGraph{graph, {}};
  for (size_t lane = 1; lane < graph.lanes.size(); ++lane) executable->beside.push_back(create_stream(0));
  return executable;
}

int launch(const ExecutableGraph& executable, SoftwareStream* stream) {
  const std::lock_guard lock(mutex);
  const auto& lanes = executable.graph.lanes;
  std::vector<SoftwareStream*> on = {of(stream)};
  on.insert(on.end(), executable.beside.begin(), executable.beside.end());
  std::vector<uint64_t> begin;
  for (const SoftwareStream* each : on) begin.push_back(each->submitted);
  for (size_t lane = 0; lane < lanes.size(); ++lane) {
    for (const Graph::Node& node : lanes[lane]) {
      if (node.work)
        submit(on[lane], node.work);
      else
        submit(on[lane],
               [other = on[node.lane], position = begin[node.lane] + node.until] { return run(other, position); });
    }
  }
  return kSuccess;
}

}  // namespace ringwise::software_gpu
