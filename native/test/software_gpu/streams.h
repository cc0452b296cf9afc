// Streams, events and graphs of the software device. Work runs as late as possible: when a caller waits for it, queries
// it twice, or frees memory. So code that lacks a necessary wait reads data that are not written yet, in every run of a
// test and not in one of a thousand.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

namespace ringwise::software_gpu {

/// Returns a status of the driver, or kAgain if it waits for another process and must be called again.
using Work = std::function<int()>;
constexpr int kAgain = -1;

/// A graph: the work of each captured stream. The first stream is the one on which the capture began; the work of the
/// others runs concurrently, on streams that the graph owns.
struct Graph {
  struct Node {
    Work work;
    size_t lane = 0, until = 0;  // for a node without work: waits until `until` nodes of stream `lane` have run
  };
  std::vector<std::vector<Node>> lanes;
};
/// An executable graph. Launches run one after another.
struct ExecutableGraph {
  Graph graph;
  std::vector<struct SoftwareStream*> beside;  // by index of the captured stream, without the first
};

/// A capture in progress. Events of it may outlive it, but cannot be used then.
struct Capture {
  Graph graph;
  std::vector<std::vector<size_t>> known;  // by stream: number of nodes of each stream that precede its next work
  std::vector<struct SoftwareStream*> streams;
  bool is_invalid = false, is_over = false;
};

struct SoftwareStream {
  int device = 0;
  std::deque<Work> queue;
  uint64_t submitted = 0, executed = 0;
  int error = 0;                     // error of work that has run
  std::shared_ptr<Capture> capture;  // if not null, work is captured there
  size_t lane = 0;                   // index of this stream in `capture`
};

struct SoftwareEvent {
  int device = 0;
  bool has_time = false;
  SoftwareStream* stream = nullptr;  // null if never recorded
  uint64_t position = 0;             // position in the stream after which the event is reached
  std::shared_ptr<Capture> capture;  // if not null, the event was recorded in this capture, not on a stream
  size_t lane = 0;
  std::vector<size_t> known;  // numbers of nodes that precede it, by stream
  double time_ms = 0;
  bool was_asked = false;
};

// For all functions below, a null stream is the default one, which cannot be captured.
SoftwareStream* create_stream(int device);
void destroy_stream(SoftwareStream* stream);
/// Submits work to the stream, or adds it to the graph that the stream captures.
int submit(SoftwareStream* stream, Work work);
bool is_recorded(SoftwareStream* stream);
int synchronize(SoftwareStream* stream);
/// Synchronizes all streams, except those that are being captured.
void synchronize_all();
/// Runs all work that can run now, on all streams.
void advance_all();

int record(SoftwareEvent* event, SoftwareStream* stream);
/// If the event was recorded in a capture and the stream is not captured yet, the stream joins the capture.
int wait(SoftwareStream* stream, const SoftwareEvent* event);
int synchronize(SoftwareEvent* event);
/// Queries the event. Returns kNotReady at the first query.
int query(SoftwareEvent* event);
/// Makes a separate thread call `function` with the status of the stream once the stream has reached this point,
/// delayed by the milliseconds in RINGWISE_SOFTWARE_CUDA_CALL_MS. Later work of the stream waits until it has returned.
int call(SoftwareStream* stream, void (*function)(SoftwareStream*, int, void*), void* data);
/// Returns whether the stream has passed the event, without running any work.
bool is_reached(const SoftwareEvent* event);
/// Makes all later work fail with this status, as after an illegal memory access of a kernel.
void break_device(int status);

void destroy(SoftwareEvent* event);

int begin_capture(SoftwareStream* stream);
/// Ends the capture and returns the graph; or null and the reason, for example if work of other captured streams does
/// not precede the end of this one.
int end_capture(SoftwareStream* stream, Graph** graph);
ExecutableGraph* instantiate(const Graph& graph);
int launch(const ExecutableGraph& executable, SoftwareStream* stream);

/// Called when device memory is freed: the software libnccl checks whether it is registered.
void given_back(const void* data, size_t bytes);

}  // namespace ringwise::software_gpu
