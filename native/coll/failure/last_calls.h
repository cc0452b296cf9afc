// The last calls of this process's groups, for the words of a crash.
#pragma once

#include "coll/flight/flight_recorder.h"

namespace ringwise::coll {

/// While it lives, write_last_calls() tells of these calls. No more than 16 at a time are told.
class LastCalls {
 public:
  LastCalls(const FlightRecorder& flight, int ranks);
  ~LastCalls();
  LastCalls(const LastCalls&) = delete;
  LastCalls& operator=(const LastCalls&) = delete;

 private:
  size_t index_;
};

/// A line for each group that has called something: "last call in a group of 4 ranks: allReduce #12, running, train.ts:57".
/// Any thread, also in a signal handler.
void write_last_calls(int fd);

}  // namespace ringwise::coll
