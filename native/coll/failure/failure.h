// The failure of an operation, which is reported to every rank of the group. Functions inside the engine throw it;
// ProgressEngine catches it and hands it to the failure protocol.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <vector>

namespace ringwise::coll {

/// The numbers are part of the wire format and equal the order of `codes` in
/// packages/collectives/src/backends/native-lane.ts.
enum class FailureCode : uint8_t { Timeout, PeerLost, Mismatch, Aborted, Closed, System };

struct Failure final : std::exception {
  FailureCode code = FailureCode::System;
  int origin = -1;         // the rank that noticed the failure
  std::vector<int> peers;  // the ranks that the failure is about
  std::string text;        // a sentence without the group, rank and seq, which each rank adds for itself

  Failure() = default;
  Failure(FailureCode code, int origin, std::vector<int> peers, std::string text)
      : code(code), origin(origin), peers(std::move(peers)), text(std::move(text)) {}

  const char* what() const noexcept override { return text.c_str(); }
};

/// Returns the failure of a system call that cannot fail in a healthy process; `error` is its errno.
Failure system_failure(int rank, const std::string& what, int error);

}  // namespace ringwise::coll
