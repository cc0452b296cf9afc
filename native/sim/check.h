// Checks that an algorithm moves the right data: runs the ranks' real executions over links in memory.
#pragma once

#include <string>

#include "coll/plan/choose.h"

namespace ringwise::sim {

/// Runs `verb` with parts of `count` elements (allReduce, broadcast, reduce: a buffer of `count` elements) and compares
/// every output with the expected values; for reduce and gather, only that of the root. Returns a description of the
/// first error, or "". Needs memory for size² pointers to links.
std::string check(coll::Verb verb, const coll::Algorithm& algorithm, const coll::Hosts& hosts, size_t count);

}  // namespace ringwise::sim
