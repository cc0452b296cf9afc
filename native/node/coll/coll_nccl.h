// Exports NcclGroup to JavaScript, and information about NCCL and the devices.
#pragma once

#include <napi.h>

#include <functional>
#include <memory>

#include "coll/failure/failure.h"

namespace ringwise::node {

/// Takes a HostGroup object. Returns a function that returns why its group has failed, or null. Any thread may call
/// that function until destroy() of the object.
using CauseOf = std::function<std::shared_ptr<const coll::Failure>()> (*)(const Napi::Object& host_group);

/// Returns a new object { NcclGroup, makeId, about }. `cause_of` must be the same in all calls.
Napi::Object define_nccl(Napi::Env env, CauseOf cause_of);

}  // namespace ringwise::node
