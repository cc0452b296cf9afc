#include "test/software_gpu/streams.h"

#include <chrono>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace ringwise::software_gpu {

namespace {

constexpr int kSuccess = 0, kInvalidValue = 1, kNotReady = 600, kCaptureUnsupported = 900, kCaptureInvalidated = 901,
              kCaptureUnjoined = 904;

// Of everything here, and held while work runs: work that waits for other streams runs them.
std::recursive_mutex mutex;
std::vector<SoftwareStream*>& streams() {
  static auto& all = *new std::vector<SoftwareStream*>;
  return all;
}

SoftwareStream* of(SoftwareStream* stream) {
  static auto* const by_default = new SoftwareStream;
  return stream ? stream : by_default;
}

/// Executes until `position` has been reached, or until work has to wait for another process.
int run(SoftwareStream* stream, uint64_t position) {
  while (stream->executed < position) {
    const int status = stream->queue.front()();
    if (status == kAgain) return kAgain;
    stream->queue.pop_front();
    stream->executed++;
    if (status) stream->error = status;
  }
  return stream->error;
}

/// The same to the end. The mutex is free in between: others may have to go on.
int finish(SoftwareStream* stream, uint64_t position) {
  for (;; std::this_thread::yield()) {
    const std::lock_guard lock(mutex);
    if (const int status = run(stream, position); status != kAgain) return status;
  }
}

/// Waiting is not allowed while work is recorded, and spoils the graph.
int refused(Graph* graph) {
  graph->is_invalid = true;
  return kCaptureUnsupported;
}

}  // namespace

SoftwareStream* create_stream() {
  const std::lock_guard lock(mutex);
  return streams().emplace_back(new SoftwareStream);
}

void destroy_stream(SoftwareStream* stream) {
  synchronize(stream);  // it stays: events may still name it
}

int submit(SoftwareStream* stream, Work work) {
  const std::lock_guard lock(mutex);
  stream = of(stream);
  if (stream->graph) {
    stream->graph->nodes.push_back(std::move(work));
    return kSuccess;
  }
  stream->queue.push_back(std::move(work));
  stream->submitted++;
  return kSuccess;
}

int synchronize(SoftwareStream* stream) {
  stream = of(stream);
  uint64_t position;
  {
    const std::lock_guard lock(mutex);
    if (stream->graph) return refused(stream->graph);
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

int record(SoftwareEvent* event, SoftwareStream* stream) {
  const std::lock_guard lock(mutex);
  stream = of(stream);
  event->graph = stream->graph;
  event->was_asked = false;
  if (stream->graph) return kSuccess;  // what is recorded into a graph is in order
  submit(stream, [event] {
    event->time_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
    return kSuccess;
  });
  event->stream = stream;
  event->position = stream->submitted;
  return kSuccess;
}

int wait(SoftwareStream* stream, const SoftwareEvent* event) {
  const std::lock_guard lock(mutex);
  stream = of(stream);
  if (event->graph) {
    if (!stream->graph) {
      stream->graph = event->graph;
      event->graph->streams.push_back(stream);
    }
    return kSuccess;
  }
  if (!event->stream) return kSuccess;
  if (stream->graph) return refused(stream->graph);  // what lies outside of a graph cannot be waited for in it
  return submit(stream, [other = event->stream, position = event->position] { return run(other, position); });
}

int synchronize(SoftwareEvent* event) {
  {
    const std::lock_guard lock(mutex);
    if (event->graph) return refused(event->graph);
    if (!event->stream) return kSuccess;
  }
  return finish(event->stream, event->position);
}

int query(SoftwareEvent* event) {
  const std::lock_guard lock(mutex);
  if (event->graph) return refused(event->graph);
  if (!event->stream || event->stream->executed >= event->position) return kSuccess;
  if (!std::exchange(event->was_asked, true)) return kNotReady;
  const int status = run(event->stream, event->position);
  return status == kAgain ? kNotReady : status;
}

int call(SoftwareStream* stream, void (*function)(void*), void* data) {
  const std::lock_guard lock(mutex);
  stream = of(stream);
  if (stream->graph) return refused(stream->graph);
  std::thread([stream, function, data, position = stream->submitted] {
    finish(stream, position);
    function(data);
  }).detach();
  return kSuccess;
}

int begin_capture(SoftwareStream* stream) {
  const std::lock_guard lock(mutex);
  if (stream->graph) return kInvalidValue;
  stream->graph = new Graph;
  stream->graph->streams.push_back(stream);
  return kSuccess;
}

int end_capture(SoftwareStream* stream, Graph** graph) {
  const std::lock_guard lock(mutex);
  *graph = nullptr;
  if (!stream->graph || stream->graph->streams.front() != stream) return kCaptureUnjoined;
  Graph* ended = stream->graph;
  for (SoftwareStream* each : ended->streams) each->graph = nullptr;
  ended->streams.clear();
  if (ended->is_invalid) return kCaptureInvalidated;
  *graph = ended;
  return kSuccess;
}

int launch(const std::vector<Work>& nodes, SoftwareStream* stream) {
  const std::lock_guard lock(mutex);
  for (const Work& node : nodes) submit(stream, node);
  return kSuccess;
}

}  // namespace ringwise::software_gpu
