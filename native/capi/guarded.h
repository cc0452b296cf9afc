// Keeps exceptions inside the functions of ringwise.h.
#pragma once

#include <new>

#include "capi/errors.h"
#include "capi/group.h"

namespace ringwise::capi {

/// Runs `body`, which returns a status, and converts exceptions to a status.
template <class Body>
int guarded(ringwise_group* group, const char* function, Body body) noexcept {
  if (group == nullptr) return RINGWISE_INVALID;
  try {
    return body();
  } catch (const Refused& refused) {
    return group->fail(refused.status, function, refused.text);
  } catch (const std::bad_alloc&) {
    return group->fail(RINGWISE_NO_MEMORY, function, "out of memory");
  } catch (const std::exception& error) {
    return group->fail(RINGWISE_SYSTEM, function, error.what());
  }
}

}  // namespace ringwise::capi
