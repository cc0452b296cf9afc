// The asynchronous mode of the software device, chosen by RINGWISE_SOFTWARE_GPU=async:SEED: the seed decides which
// streams run and when. The decisions depend on the seed, the device and the calls of the driver, not on time, so a
// failure of a process that calls the driver from one thread repeats.
#pragma once

#include <cstdint>
#include <string>

namespace ringwise::software_gpu {

bool is_asynchronous();
/// Returns "software GPU", with the mode and the seed if it is asynchronous.
std::string device_name();

// The functions below are called with the mutex of the streams held.

/// Chooses the mode and the seed in place of the environment.
void set_seed(uint64_t seed);
/// Mixes the device into the seed, so that ranks with different devices run in different orders. Only the first call
/// has an effect.
void mix_seed(int device);
/// Returns a random number below `end`.
uint32_t below(uint32_t end);
inline bool one_in(uint32_t count) { return below(count) == 0; }

}  // namespace ringwise::software_gpu
