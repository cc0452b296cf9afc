#include "coll/failure/failure.h"

#include <cstring>

namespace ringwise::coll {

Failure system_failure(int rank, const std::string& what, int error) {
  return {FailureCode::System,
          rank,
          {rank},
          what + " failed on rank " + std::to_string(rank) + ": " + std::strerror(error)};
}

}  // namespace ringwise::coll
