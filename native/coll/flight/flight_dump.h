// Writes the flight recorder of a group as JSON to a file: when the group fails, and when the process gets SIGUSR2,
// even while its JavaScript hangs. The handler of SIGUSR2 is installed only while there is a FlightDump, and calls the
// handler that was installed before. On the signal, a separate thread writes the file, because a handler must not.
#pragma once

#include <string>

#include "coll/flight/flight_recorder.h"

namespace ringwise::coll {

/// Returns a JSON array of FlightEntry objects, which packages/collectives/src/flight/entry.ts defines.
std::string to_json(const std::vector<FlightEntry>& entries);

class FlightDump {
 public:
  /// Makes a dump that writes to `path`. `head` is a JSON object that identifies the rank and group; its members become
  /// part of the object in the file. `flight` must outlive this object. Throws std::system_error.
  FlightDump(const FlightRecorder& flight, std::string path, std::string head);
  ~FlightDump();
  FlightDump(const FlightDump&) = delete;
  FlightDump& operator=(const FlightDump&) = delete;

  /// Replaces the file; ignores errors. Any thread.
  void write(const std::string& reason) const;

 private:
  const FlightRecorder& flight_;
  const std::string path_;
  const std::string head_;  // without the closing brace
};

}  // namespace ringwise::coll
