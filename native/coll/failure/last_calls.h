// Reports the last calls of this process's groups when the process crashes.
#pragma once

#include "coll/flight/flight_recorder.h"

namespace ringwise::coll {

/// Registers a flight recorder with write_last_calls() for its lifetime. At most 16 are registered at a time.
class LastCalls {
 public:
  LastCalls(const FlightRecorder& flight, int ranks);
  ~LastCalls();
  LastCalls(const LastCalls&) = delete;
  LastCalls& operator=(const LastCalls&) = delete;

 private:
  size_t index_;
};

/// Writes a line for each group that has called an operation, such as "last call in a group of 4 ranks: allReduce #12,
/// running, train.ts:57". Any thread; safe in a signal handler.
void write_last_calls(int fd);

}  // namespace ringwise::coll
