// Whether an algorithm moves the right data: the ranks' real executions, over links in memory.
#pragma once

#include <string>

#include "coll/plan/choose.h"

namespace ringwise::sim {

/// Runs `verb` with parts of `count` elements (allReduce, broadcast, reduce: a buffer of that) and compares every
/// output with what it must be. Returns what is wrong, or "". Takes memory for size² links.
std::string check(coll::Verb verb, const coll::Algorithm& algorithm, const coll::Hosts& hosts, size_t count);

}  // namespace ringwise::sim
