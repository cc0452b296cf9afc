#pragma once

#include <napi.h>

namespace ringwise::node {

/// Defines the class DeviceLane: NativeDeviceLane of packages/collectives/src/backends/native.ts.
Napi::Function define_device_lane(Napi::Env env);

}  // namespace ringwise::node
