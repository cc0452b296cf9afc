// Memory that is registered with NCCL, which NCCL may then access without intermediate copies. Either all ranks must
// pass registered memory to an NCCL call, or none. So a registration must take effect at the same place in the sequence
// of operations on every rank: it is done when the next operation is handed to NCCL, and undone after all earlier
// operations have ended and before a later one is handed over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "coll/nccl/library.h"

namespace ringwise::nccl {

class Registrations {
 public:
  /// Adds a registration; `id` comes from the same sequence as those of operations.
  void add(uint64_t id, void* data, size_t bytes) { all_.push_back({id, data, bytes}); }
  /// Marks a registration to be undone before operations later than `leaving_id`. Returns false if there is no such
  /// registration.
  bool remove(uint64_t id, uint64_t leaving_id);
  bool is_leaving(uint64_t leaving_id) const;
  /// Returns whether operation `id` has to wait until a registration is undone.
  bool is_blocking(uint64_t id) const;
  /// Registers the memory that was added before operation `id`. Returns an NCCL result.
  int register_before(uint64_t id, Comm comm);
  /// Undoes one registration that is marked before operation `oldest_id`, the oldest that has not ended. Returns its
  /// leaving_id, or 0 if there is none. `comm` may be null.
  uint64_t deregister_before(uint64_t oldest_id, Comm comm);
  /// Undoes all registrations. No operation may be running.
  void deregister_all(Comm comm);
  /// Forgets all registrations because the communicator has been aborted. Returns the leaving_ids of those that were
  /// marked.
  std::vector<uint64_t> forget();

 private:
  struct Registration {
    uint64_t id;
    void* data;
    size_t bytes;
    bool is_done = false;
    void* handle = nullptr;  // from NCCL; may be null
    uint64_t leaving_id = 0;
  };
  std::vector<Registration> all_;
};

}  // namespace ringwise::nccl
