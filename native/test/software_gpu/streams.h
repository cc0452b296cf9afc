// Streams, events and graphs of the software device. Work runs as late as it may: when somebody waits for it, asks
// twice whether it has ended, or gives memory back. So what does not wait where it should reads what is not there yet,
// in every run of a test and not in one of a thousand.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

namespace ringwise::software_gpu {

/// Returns a status of the driver; or kAgain where it waits for another process, and is to be called once more.
using Work = std::function<int()>;
constexpr int kAgain = -1;

/// A graph: what each of the streams that were recorded has been given. The first is the one where recording began; the
/// work of the others runs beside it, on streams of the graph's own.
struct Graph {
  struct Node {
    Work work;
    size_t lane = 0, until = 0;  // without work: waits until so many nodes of that lane have run
  };
  std::vector<std::vector<Node>> lanes;
};
/// A graph that can be launched. One launch comes after the other.
struct ExecutableGraph {
  Graph graph;
  std::vector<struct SoftwareStream*> beside;  // by lane, without the first
};

/// A recording on its way. Events that are part of it outlive it, and then are good for nothing.
struct Capture {
  Graph graph;
  std::vector<std::vector<size_t>> known;  // by lane: how many nodes of each lane come before what it is given next
  std::vector<struct SoftwareStream*> streams;
  bool is_invalid = false, is_over = false;
};

struct SoftwareStream {
  int device = 0;
  std::deque<Work> queue;
  uint64_t submitted = 0, executed = 0;
  int error = 0;                     // of work that has run
  std::shared_ptr<Capture> capture;  // what is submitted is recorded there,
  size_t lane = 0;                   // in this lane
};

struct SoftwareEvent {
  int device = 0;
  bool has_time = false;
  SoftwareStream* stream = nullptr;  // null: never recorded
  uint64_t position = 0;             // reached when so much of the stream has been executed
  std::shared_ptr<Capture> capture;  // recorded there, and not on a stream:
  size_t lane = 0;
  std::vector<size_t> known;  // what comes before it
  double time_ms = 0;
  bool was_asked = false;
};

// Of all below: a null stream is the default one, which cannot be recorded.
SoftwareStream* create_stream(int device);
void destroy_stream(SoftwareStream* stream);
/// Takes a turn after all that the stream has, or becomes part of its graph.
int submit(SoftwareStream* stream, Work work);
bool is_recorded(SoftwareStream* stream);
int synchronize(SoftwareStream* stream);
/// Of all streams, except those that are recorded.
void synchronize_all();
/// Runs what can run by now, on all streams.
void advance_all();

int record(SoftwareEvent* event, SoftwareStream* stream);
/// From a stream that is recorded to one that is not, it spreads the recording.
int wait(SoftwareStream* stream, const SoftwareEvent* event);
int synchronize(SoftwareEvent* event);
/// Not ready the first time.
int query(SoftwareEvent* event);
/// Calls `function` with the status of the stream, on a thread of its own, when the stream has come there, later by the
/// milliseconds in RINGWISE_SOFTWARE_CUDA_CALL_MS; what comes after it waits until it has returned.
int call(SoftwareStream* stream, void (*function)(SoftwareStream*, int, void*), void* data);
/// Whether the stream has passed the event, for those who must not wait.
bool is_reached(const SoftwareEvent* event);
/// From now on all work fails with this status, as when a kernel has written where nothing is.
void break_device(int status);

void destroy(SoftwareEvent* event);

int begin_capture(SoftwareStream* stream);
/// The graph, or null and why there is none: all that other streams were given has to come before the end of this one.
int end_capture(SoftwareStream* stream, Graph** graph);
ExecutableGraph* instantiate(const Graph& graph);
int launch(const ExecutableGraph& executable, SoftwareStream* stream);

/// Memory of the device goes back: the software libnccl looks whether it is registered.
void given_back(const void* data, size_t bytes);

}  // namespace ringwise::software_gpu
