// Streams, events and graphs of the software device. Work runs as late as possible: when a caller waits for it, queries
// it twice, or frees memory. So code that lacks a necessary wait reads data that are not written yet, in every run of a
// test and not in one of a thousand.
//
// In asynchronous mode (asynchronous.h), each call of the driver also lets some streams run for a while: some at once,
// some slowly, and some not before the host waits for them, in an order that the seed decides. So a stream may also be
// ahead of another one, and code that lacks a wait which keeps work from running too early fails too.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace ringwise::software_gpu {

/// Returns a status of the driver, or kAgain if it waits for another process or thread and must be called again.
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
/// An executable graph. Launches run one after another, on any streams.
struct ExecutableGraph {
  Graph graph;
  std::vector<struct SoftwareStream*> beside;  // beside[i] runs the work of graph.lanes[i + 1]
  struct SoftwareStream* last = nullptr;       // stream of the last launch
  uint64_t until = 0;                          // position in `last` at which that launch has ended
};

/// The threads whose calls are refused during a capture if they might make the device wait, such as an allocation: all
/// threads, the thread that has begun the capture, or none.
enum class CaptureMode { Global, ThreadLocal, Relaxed };

/// A capture in progress. Events of it may outlive it, but cannot be used then.
struct Capture {
  explicit Capture(CaptureMode refuses) : mode(refuses) {}
  const CaptureMode mode;
  const std::thread::id thread = std::this_thread::get_id();  // the thread that has begun it
  Graph graph;
  std::vector<std::vector<size_t>> known;  // by stream: number of nodes of each stream that precede its next work
  std::vector<struct SoftwareStream*> streams;
  bool is_invalid = false, is_over = false;
};

/// Work of a stream, or a wait for another stream.
struct Entry {
  Work work;
  struct SoftwareStream* other = nullptr;  // if not null, the entry waits until `other` has executed `until` entries
  uint64_t until = 0;
};

/// How fast a stream runs without being waited for, in asynchronous mode.
enum class Pace { Stopped, Slow, Steady, Fast };

struct SoftwareStream {
  int device = 0;
  bool is_default = false;
  bool is_blocking = false;  // ordered with the default stream of its device
  bool is_destroyed = false;
  Pace pace = Pace::Stopped;
  std::deque<Entry> queue;
  uint64_t submitted = 0, executed = 0;  // numbers of entries
  int error = 0;                         // error of work that has run
  std::shared_ptr<Capture> capture;      // if not null, work is captured there
  size_t lane = 0;                       // index of this stream in `capture`
};

struct SoftwareEvent {
  int device = 0;
  bool has_time = false;
  SoftwareStream* stream = nullptr;  // null if never recorded
  uint64_t position = 0;             // position in the stream after which the event is reached
  std::shared_ptr<Capture> capture;  // if not null, the event was recorded in this capture, not on a stream
  size_t lane = 0;
  std::vector<size_t> known;        // numbers of nodes that precede it, by stream
  std::shared_ptr<double> time_ms;  // of the last record
  uint32_t patience = 0;            // number of queries that will find it not ready although it could be
};

/// Returns the device whose context is current on this thread, or -1.
int current_device();

// For all functions below, a null stream is the (legacy) default stream of the current device, which cannot be captured
// and is ordered with the blocking streams of the device.
SoftwareStream* create_stream(int device, bool is_blocking);
void destroy_stream(SoftwareStream* stream);
/// Submits work to the stream, or adds it to the graph that the stream captures.
int submit(SoftwareStream* stream, Work work);
/// Returns whether the stream is being captured.
bool is_captured(SoftwareStream* stream);
int synchronize(SoftwareStream* stream);
/// Chooses the asynchronous mode and its seed, for tests of the mode.
void choose_seed(uint64_t seed);
/// In asynchronous mode, lets streams run for a while. Every call of the driver that takes time should call it.
void pass_time();
/// Returns a status other than success if a capture forbids calls that might make the device wait. Such a call
/// invalidates the capture.
int refuse_unsafe();
/// Runs all work that has been submitted to the streams. Captured work is not among it.
void synchronize_all();
/// Runs all work that can run now, on all streams.
void advance_all();

int record(SoftwareEvent* event, SoftwareStream* stream);
/// If the event was recorded in a capture and the stream is not captured yet, the stream joins the capture.
int wait(SoftwareStream* stream, const SoftwareEvent* event);
int synchronize(SoftwareEvent* event);
/// Queries the event. If the stream has not passed it, returns kNotReady at the first query (in asynchronous mode a
/// random number of times), and then runs the stream up to it.
int query(SoftwareEvent* event);
/// Makes a separate thread call `function` with the status of the stream once the stream has reached this point,
/// delayed by the milliseconds in RINGWISE_SOFTWARE_CUDA_CALL_MS. Later work of the stream waits until it has returned.
int call(SoftwareStream* stream, void (*function)(SoftwareStream*, int, void*), void* data);
/// Returns whether the stream has passed the event, without running any work.
bool is_reached(const SoftwareEvent* event);
/// Makes all later work fail with this status, as after an illegal memory access of a kernel.
void break_device(int status);

void destroy(SoftwareEvent* event);

int begin_capture(SoftwareStream* stream, CaptureMode mode);
/// Ends the capture and returns the graph; or null and the reason, for example if work of other captured streams does
/// not precede the end of this one.
int end_capture(SoftwareStream* stream, Graph** graph);
ExecutableGraph* instantiate(const Graph& graph);
int launch(ExecutableGraph& executable, SoftwareStream* stream);

/// Called when device memory is freed: the software libnccl checks whether it is registered.
void given_back(const void* data, size_t bytes);

}  // namespace ringwise::software_gpu
