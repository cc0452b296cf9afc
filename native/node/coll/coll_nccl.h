// Exports NcclGroup to JavaScript, and information about NCCL and the devices.
#pragma once

#include <napi.h>

#include <functional>
#include <memory>

#include "coll/failure/failure.h"

namespace ringwise::node {

/// Takes a HostGroup object. Returns a function that tells why its group has failed, or null; any thread may call that
/// function as long as the object exists.
using CauseOf = std::function<std::shared_ptr<const coll::Failure>()> (*)(const Napi::Object& host_group);

/// { NcclGroup, makeId, info }
Napi::Object define_nccl(Napi::Env env, CauseOf cause_of);

}  // namespace ringwise::node
