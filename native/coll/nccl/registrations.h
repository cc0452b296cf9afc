// Memory that has been registered with NCCL, which may then reach it without a copy of its own. NCCL wants all ranks to
// pass registered memory to a call, or none. So a registration takes effect between the operations that were started
// before and after it, on every rank: it is done when the next operation is handed over, and undone when what was
// started before has ended and before anything later is handed over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "coll/nccl/library.h"

namespace ringwise::nccl {

class Registrations {
 public:
  /// `id`: numbered with the operations.
  void add(uint64_t id, void* data, size_t bytes) { all_.push_back({id, data, bytes}); }
  /// From the operations on that come after `leaving_id`. False where there is no such registration.
  bool remove(uint64_t id, uint64_t leaving_id);
  bool is_leaving(uint64_t leaving_id) const;
  /// Whether operation `id` has to wait for a registration to be undone.
  bool is_blocking(uint64_t id) const;
  /// Does what comes before operation `id`; a result of NCCL.
  int register_before(uint64_t id, Comm comm);
  /// Undoes one that is to go, when nothing before operation `oldest_id` is under way; its leaving_id, or 0. `comm` may
  /// be null.
  uint64_t deregister_before(uint64_t oldest_id, Comm comm);
  /// Undoes all, when nothing is under way. Those that were to go no longer wait.
  void deregister_all(Comm comm);
  /// The communicator is aborted, and with it what it knew of memory. Gives what waited to go.
  std::vector<uint64_t> forget();

 private:
  struct Registration {
    uint64_t id;
    void* data;
    size_t bytes;
    bool is_done = false;
    void* handle = nullptr;  // NCCL's, which may be null
    uint64_t leaving_id = 0;
  };
  std::vector<Registration> all_;
};

}  // namespace ringwise::nccl
