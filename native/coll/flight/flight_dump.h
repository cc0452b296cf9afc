// Flight records as JSON, and as files: written when the group fails, and when the process gets SIGUSR2, also while its
// program hangs in a loop or in a call. The signal is taken over only while there is a FlightDump; a thread of its own
// writes, because a signal handler may not. A handler that was there before is called as well.
#pragma once

#include <string>

#include "coll/flight/flight_recorder.h"

namespace ringwise::coll {

/// An array of objects, those of packages/collectives/src/flight/recorder.ts.
std::string to_json(const std::vector<FlightEntry>& entries);

class FlightDump {
 public:
  /// Writes to `path`. `head` is a JSON object that says whose record it is; the file's object has its members, too.
  /// Throws std::system_error. `flight` outlives this object.
  FlightDump(const FlightRecorder& flight, std::string path, std::string head);
  ~FlightDump();
  FlightDump(const FlightDump&) = delete;
  FlightDump& operator=(const FlightDump&) = delete;

  /// Replaces the file. Any thread; says nothing when the file cannot be written.
  void write(const std::string& reason) const;

 private:
  const FlightRecorder& flight_;
  const std::string path_;
  const std::string head_;  // without the closing brace
};

}  // namespace ringwise::coll
