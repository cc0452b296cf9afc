// Why an operation failed, as every rank of the group is told. Thrown inside the engine, caught once by the lane.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <vector>

namespace ringwise::coll {

/// The order is the wire format's and that of `codes` in packages/collectives/src/backends/native-lane.ts.
enum class FailureCode : uint8_t { Timeout, PeerLost, Mismatch, Aborted, Closed, System };

struct Failure final : std::exception {
  FailureCode code = FailureCode::System;
  int origin = -1;         // the rank that noticed it
  std::vector<int> peers;  // the ranks it is about
  std::string text;        // a sentence without the group, rank and seq, which each rank adds for itself

  Failure() = default;
  Failure(FailureCode code, int origin, std::vector<int> peers, std::string text)
      : code(code), origin(origin), peers(std::move(peers)), text(std::move(text)) {}

  const char* what() const noexcept override { return text.c_str(); }
};

/// `what: strerror(errno)`, for system calls that cannot fail in a healthy process.
Failure system_failure(int rank, const std::string& what, int error);

}  // namespace ringwise::coll
