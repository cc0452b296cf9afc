// The host backend of one rank: operations over shared memory and TCP. A progress thread of the group, the lane, runs
// them, or the calling thread when the lane has nothing to do. This class owns the threads and decides which of them
// works. The work itself is in RequestQueue (order), ProgressEngine (operations) and FailureProtocol (root causes).
//
// Threads. The owner's thread calls the public functions, except where they say otherwise. The engine and the failure
// protocol belong to the thread that holds the mutex `owner_`: the lane, or the owner's thread inside `start`, `run`
// and `wait`. Nothing here depends on Node; `notify` is called on the thread that ends an operation, mostly the lane.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "coll/engine/lane_signals.h"
#include "coll/engine/progress_engine.h"
#include "coll/engine/request_queue.h"
#include "coll/failure/failure_protocol.h"
#include "coll/failure/last_calls.h"
#include "coll/flight/flight_dump.h"
#include "coll/flight/flight_recorder.h"
#include "coll/transport/bootstrap.h"

namespace ringwise::coll {

class HostGroup final {
 public:
  /// Listens on `host` at once; `connect` starts the lane. `notify` is called when `take_ended` has something to
  /// return.
  HostGroup(int rank, int size, const std::string& host, std::function<void()> notify);
  /// Ends the lane, even in the middle of an operation; pending operations never end. Peers see a lost rank unless
  /// `close` was called before and has ended.
  ~HostGroup();

  const Listener& listener() const { return listener_; }

  /// Returns the record of this rank's latest calls and their outcomes. Any thread may read it at any time.
  const FlightRecorder& flight() const { return flight_; }

  /// Makes the group write the flight record to a file when it fails or the process gets SIGUSR2; see FlightDump. Call
  /// it before `connect`.
  void dump_flight_to(std::string path, std::string head) { dump_.emplace(flight_, std::move(path), std::move(head)); }

  /// Sets the function that returns the source location of the owner's current call. It is called on the owner's
  /// thread, inside `start` and `run`: when `run` waits for long, and otherwise for at most 1/400 of the time (see
  /// kSiteShare).
  void locate_calls_by(std::function<std::string()> where);

  /// Sets the function that returns whether the owner's thread must end. It is called on that thread when `run` or
  /// `wait` has waited for long, about once per second. They then return, and the other ranks see this one as lost.
  void leave_calls_by(std::function<bool()> must_end) { must_end_ = std::move(must_end); }

  /// Returns the memory for buffers on which the ranks of this host work in place; null if there is none. Call it on
  /// the owner's thread after the group has connected. The arena may outlive the group.
  const std::shared_ptr<Arena>& arena() const { return engine_.arena(); }

  /// Returns whether the group runs reproducible reductions of this verb, on all ranks. Call it after the group has
  /// connected.
  bool reproduces(Verb verb) const { return engine_.reproduces(verb); }

  /// Starts the lane, which connects to all peers. Ends like an operation with the returned id. Called once.
  uint64_t connect(std::vector<PeerAddress> peers, int64_t timeout_ns);

  /// Tells when the lane makes progress on a started operation. `Later`: the caller will call `wait` or
  /// `request_progress`; until then, the lane of an oversubscribed host advances it only about once per millisecond.
  enum class Progress { AtOnce, Later };

  /// Queues an operation and returns its id. Never blocks.
  uint64_t start(Op op, Progress progress = Progress::AtOnce);

  /// Makes the lane work on the started operations at full speed, for callers that wait for them without `wait`.
  void request_progress();

  /// Works on a started operation for a caller that awaits it and may not block: on the calling thread for less than
  /// 50 µs, which is enough if all ranks make the call at about the same time. Returns whether it has ended; otherwise
  /// the lane goes on with it at full speed.
  bool attempt(uint64_t id);

  /// Runs an operation, mostly on the calling thread, and blocks until it has ended; returns null on success. For a
  /// receive, `source` is set to the sender.
  std::shared_ptr<const Failure> run(Op op, int* source = nullptr);

  /// Blocks until the operation has ended. `take_ended` still returns its `Ended` afterwards.
  void wait(uint64_t id);

  /// Moves out the operations that have ended since the last call, in order of ending.
  void take_ended(std::vector<Ended>& ended) {
    requests_.take_ended(ended);
    isolate();
  }

  /// Fails all pending and later operations on all ranks with `failure`.
  void abort(Failure failure);

  /// Returns why collectives of all ranks cannot continue, or null if they can: the root cause once the group has
  /// failed, or the loss of a rank whose connection ended without a goodbye. Such a loss fails no operation until one
  /// needs that rank. Any thread.
  std::shared_ptr<const Failure> failure() const { return failures_.known(); }
  /// Returns the loss of all ranks that are lost so far, also after another failure; null if none is. Any thread.
  std::shared_ptr<const Failure> losses() const { return failures_.losses(); }

  /// Says goodbye to the peers once all pending operations have ended, then ends the lane. Ends like an operation with
  /// the returned id, and with a mismatch if one became known after the last operation.
  uint64_t close();

 private:
  void lane_main();
  void wait_for_wake(int timeout_ms);
  bool leave();
  void meet(const std::vector<PeerAddress>& peers, int64_t deadline_ns);

  // Owner's thread.
  void enqueue(Op& op);
  bool nudge();
  void drive(std::unique_lock<std::mutex>& owner, Driver driver, const Op* op = nullptr);
  std::shared_ptr<const Failure> reported();
  /// Takes the memory of a failed operation from the ranks that may still write it, before the program uses it again.
  void isolate() {
    if (const auto exposed = engine_.take_exposed(); !exposed.empty())
      engine_.arena()->isolate(exposed.data(), exposed.size());
  }
  void locate(uint32_t record);
  /// Records the source location of the call if that is due; `now` is in ticks of the recorder's clock.
  void locate_if_due(uint32_t record, int64_t now) {
    if (now >= next_site_) locate(record);
  }

  const int rank_;
  Listener listener_;  // open until all peers have connected; its descriptors belong to the lane
  FlightRecorder flight_;
  const LastCalls last_calls_;
  std::optional<FlightDump> dump_;  // set before the lane starts, if at all

  std::function<std::string()> where_;  // owner's thread; may be empty
  std::function<bool()> must_end_;      // owner's thread; may be empty
  int64_t next_site_;                   // owner's thread; when `where_` may be called again, by the recorder's clock
  int64_t next_site_ns_ = 0;            // owner's thread; the same by the monotonic clock
  int missed_attempts_ = 0;             // owner's thread; attempts in a row in which the operation did not end
  int skipped_attempts_ = 0;            // owner's thread; since the last attempt
  bool has_aborted_ = false;            // owner's thread
  uint32_t blocking_ = 0;               // owner's thread; the record of the operation that `run` runs

  LaneSignals signals_;
  RequestQueue requests_;
  std::mutex owner_;          // its holder owns the next two
  FailureProtocol failures_;  // owner_
  ProgressEngine engine_;     // owner_
  std::thread lane_;          // last member, so that nothing the lane uses is destroyed before it
};

}  // namespace ringwise::coll
