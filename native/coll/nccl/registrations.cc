#include "coll/nccl/registrations.h"

#include <algorithm>
#include <utility>

namespace ringwise::nccl {

bool Registrations::remove(uint64_t id, uint64_t leaving_id) {
  const auto found = std::find_if(all_.begin(), all_.end(), [id](const Registration& one) { return one.id == id; });
  if (found == all_.end() || found->leaving_id != 0) return false;
  found->leaving_id = leaving_id;
  return true;
}

bool Registrations::is_leaving(uint64_t leaving_id) const {
  return std::any_of(all_.begin(), all_.end(),
                     [leaving_id](const Registration& one) { return one.leaving_id == leaving_id; });
}

bool Registrations::is_blocking(uint64_t id) const {
  return std::any_of(all_.begin(), all_.end(),
                     [id](const Registration& one) { return one.leaving_id != 0 && one.leaving_id < id; });
}

int Registrations::register_before(uint64_t id, Comm comm) {
  for (Registration& one : all_) {
    if (one.id > id || one.is_done) continue;
    const int status = library().ncclCommRegister(comm, one.data, one.bytes, &one.handle);
    if (status != kSuccess) return status;
    one.is_done = true;
  }
  return kSuccess;
}

uint64_t Registrations::deregister_before(uint64_t oldest_id, Comm comm) {
  const auto found = std::find_if(all_.begin(), all_.end(), [oldest_id](const Registration& one) {
    return one.leaving_id != 0 && one.leaving_id < oldest_id;
  });
  if (found == all_.end()) return 0;
  const Registration one = *found;
  all_.erase(found);
  if (one.is_done) library().ncclCommDeregister(comm, one.handle);
  return one.leaving_id;
}

void Registrations::deregister_all(Comm comm) {
  for (const Registration& one : std::exchange(all_, {})) {
    if (one.is_done) library().ncclCommDeregister(comm, one.handle);
  }
}

std::vector<uint64_t> Registrations::forget() {
  std::vector<uint64_t> leaving;
  for (const Registration& one : std::exchange(all_, {})) {
    if (one.leaving_id != 0) leaving.push_back(one.leaving_id);
  }
  return leaving;
}

}  // namespace ringwise::nccl
