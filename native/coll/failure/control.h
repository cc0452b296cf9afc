// The control connections of a group: they carry liveness, doorbells, failures (report and poison), and questions to
// late ranks. Frames are small; tensor data never travels here. Used only by the thread that owns the engine, except
// `wait_idle` and `set_timer`.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/os/poller.h"
#include "coll/failure/failure.h"
#include "coll/handshake/signature.h"
#include "coll/transport/shm_link.h"

namespace ringwise::coll {

/// The answer of a rank to the question what it is doing.
struct Activity {
  enum class Kind : uint8_t { Nothing, Running, Idle };

  Kind kind = Kind::Nothing;  // Nothing: it has not started an operation yet
  int64_t for_ns = 0;         // how long it has been in the operation, or idle since its end
  uint64_t begun = 0;         // collectives that it has begun
  std::string name;           // of the operation, such as "barrier #4820"
  std::string details;        // more about it; may be empty
};

/// Receives the frames of the control connections; called from `poll`.
class ControlEvents {
 public:
  virtual ~ControlEvents() = default;
  virtual void on_report(int peer, Failure failure) = 0;   // the peer noticed a failure; this rank decides
  virtual void on_poison(int peer, Failure failure) = 0;   // the peer announces the root cause
  virtual void on_left(int peer) = 0;                      // the peer has closed the group
  virtual void on_dead(int peer, const char* reason) = 0;  // the peer's connection ended without a goodbye
  virtual void on_garbage(int peer) = 0;  // the peer sent bytes that are no frame; this rank has closed its connection
  virtual void on_question(int peer, const Signature& signature) = 0;
  virtual void on_activity(int peer, const Activity& activity) = 0;
  virtual void on_label_question(int peer, uint64_t label) = 0;  // the peer asks for the text of a label
};

class Control final : public ShmLink::Doorbell {
 public:
  /// Takes ownership of the connections, by rank; this rank has none. `data` are descriptors that also end a sleep in
  /// `wait`.
  Control(std::vector<Fd> connections, const std::vector<int>& data, int wake);

  void ring(int peer) override;
  void report(int peer, const Failure& failure);
  void poison(const Failure& failure);
  void ask(int peer, const Signature& signature);
  void answer(int peer, const Activity& activity);
  /// Asks for the text of a label; the answer is remembered (see labels.h).
  void ask_label(int peer, uint64_t label);
  void answer_label(int peer, uint64_t label);
  void say_goodbye();

  /// Handles the frames that have arrived, without waiting.
  void poll(ControlEvents& events);
  /// Sleeps until something happens on a control or data connection, `wake` is written, the timer ends, or the time is
  /// over; a second at most.
  void wait(int64_t timeout_ns);
  /// Sleeps like `wait`, but not for data connections, and without its limit; for an idle lane. Any thread.
  void wait_idle(int64_t timeout_ns);
  /// Makes the timer end in `ns` nanoseconds, less than a second. Any thread.
  void set_timer(int64_t ns);

 private:
  struct Peer {
    Fd fd;
    std::vector<char> inbox;  // bytes of an incomplete frame
  };
  enum class Kind : uint16_t { Doorbell, Report, Poison, Goodbye, Question, Activity, LabelQuestion, Label };

  void send(int peer, Kind kind, const void* payload, size_t bytes) { send({&peer, 1}, kind, payload, bytes); }
  void send(std::span<const int> peers, Kind kind, const void* payload, size_t bytes);
  void send_to_all(Kind kind, const void* payload, size_t bytes);
  bool push(int peer, std::span<const char> frame, size_t& sent);
  void read(int peer, ControlEvents& events);
  void dispatch(int peer, Kind kind, const char* payload, size_t bytes, ControlEvents& events);
  void drop(int peer);
  void reject(int peer, ControlEvents& events);

  std::vector<Peer> peers_;
  os::Poller poller_;  // waits for the control connections and `wake`, and for changes of the data connections
};

}  // namespace ringwise::coll
