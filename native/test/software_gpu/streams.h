// Streams, events and graphs of the software device. Work runs as late as it may: when somebody waits for it, asks
// twice whether it has ended, or gives memory back. So what does not wait where it should reads what is not there yet, in
// every run of a test and not in one of a thousand.
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

struct Graph {
  std::vector<Work> nodes;
  std::vector<struct SoftwareStream*> streams;  // that are recorded into it
  bool is_invalid = false;
};

struct SoftwareStream {
  std::deque<Work> queue;
  uint64_t submitted = 0, executed = 0;
  int error = 0;             // of work that has run
  Graph* graph = nullptr;    // what is submitted is recorded there
};

struct SoftwareEvent {
  SoftwareStream* stream = nullptr;  // null: never recorded
  uint64_t position = 0;             // reached when so much of the stream has been executed
  Graph* graph = nullptr;            // recorded there, and not on a stream
  double time_ms = 0;
  bool was_asked = false;
};

// Of all below: a null stream is the default one.
SoftwareStream* create_stream();
void destroy_stream(SoftwareStream* stream);
/// Takes a turn after all that the stream has, or becomes part of its graph.
int submit(SoftwareStream* stream, Work work);
int synchronize(SoftwareStream* stream);
/// Of all streams, except those that are recorded.
void synchronize_all();

int record(SoftwareEvent* event, SoftwareStream* stream);
int wait(SoftwareStream* stream, const SoftwareEvent* event);
int synchronize(SoftwareEvent* event);
/// Not ready the first time.
int query(SoftwareEvent* event);
/// Calls `function` on a thread of its own when the stream has come there.
int call(SoftwareStream* stream, void (*function)(void*), void* data);

int begin_capture(SoftwareStream* stream);
/// The graph, or null and why there is none.
int end_capture(SoftwareStream* stream, Graph** graph);
int launch(const std::vector<Work>& nodes, SoftwareStream* stream);

/// Memory of the device goes back: the software libnccl looks whether it is registered.
void given_back(const void* data, size_t bytes);

}  // namespace ringwise::software_gpu
