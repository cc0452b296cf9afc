// NcclGroup for JavaScript, and what can be asked about NCCL and devices.
#pragma once

#include <napi.h>

#include <functional>
#include <memory>

#include "coll/failure/failure.h"

namespace ringwise::node {

/// Why the group behind a HostGroup object has failed, or null. May be called from any thread until that object is
/// gone.
using CauseOf = std::function<std::shared_ptr<const coll::Failure>()> (*)(const Napi::Object& host_group);

/// { NcclGroup, makeId, info }
Napi::Object define_nccl(Napi::Env env, CauseOf cause_of);

}  // namespace ringwise::node
