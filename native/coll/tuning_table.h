// The built-in rules of tuning.h. Those for two hosts were measured, in network namespaces (docs/performance.md, "Between
// hosts"):
//
//   npx tsx bench/peers.ts --hosts 2 --link plain,1g,wan --ranks 2,4
//
// Those for more follow from what a link costs: a latency a, a time per byte, and for every message about a tenth of a at
// its sender. One-shot: a + (n−1)·S. Two-shot: 2·a + 2·S·(n−1)/n. In the time of its latency a link carries 10 to 100 KiB.
// With more than 32 ranks, algorithms with few messages win.
#pragma once

namespace ringwise::coll {

inline constexpr char kTuningTable[] = R"(
# verb       type  layout  ranks  bytes  algorithm
allReduce    *     hosts   2-32   2K     one-shot
allReduce    *     hosts   33-    2K     recursive-doubling
allReduce    *     hosts   *      *      hierarchical

# Two ranks: one exchange of everything is as many bytes as two of halves, and half the latency. But between sizes where
# latency counts and those that fit no cache anyway, a rank that only sums half of them is the faster one.
allReduce    half  flat    2      2K     recursive-doubling
allReduce    half  flat    2      16K    one-shot
allReduce    half  flat    2      *      two-shot
allReduce    full  flat    2      511K   recursive-doubling
allReduce    full  flat    2      8191K  ring
allReduce    full  flat    2      *      recursive-doubling

allReduce    *     flat    3      16K    one-shot
allReduce    *     flat    4      10K    one-shot
allReduce    *     flat    5-6    4K     one-shot
allReduce    *     flat    7-8    3K     one-shot
allReduce    *     flat    9-11   2000   one-shot
allReduce    *     flat    12-16  1248   one-shot
allReduce    *     flat    17-32  564    one-shot
allReduce    *     flat    33-    2K     recursive-doubling
allReduce    *     flat    33-    *      halving-doubling
allReduce    *     flat    *      *      two-shot

# From here on bytes count more than steps.
broadcast    *     *       3-     65535  tree
broadcast    *     *       3-     *      chain
reduce       *     *       3-     65535  tree
reduce       *     *       3-     *      two-shot

# The root reaches up to 4 ranks in about as many steps as a tree has.
gather       *     *       5-     8191   tree
scatter      *     *       5-     8191   tree

allGather    *     *       33-    2K     bruck
allToAll     *     *       33-    2K     bruck
)";

}  // namespace ringwise::coll
