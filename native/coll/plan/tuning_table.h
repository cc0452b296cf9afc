// The built-in rules of tuning.h. Those for two hosts were measured, in network namespaces (docs/performance.md,
// "Between hosts"):
//
//   npx tsx bench/peers.ts --hosts 2 --link plain,1g,wan --ranks 2,4
//
// Those for more hosts come from the simulated network (docs/simulation.md, "What the choice costs"). One table serves
// two networks, both of which carry about 30 KB in the time of one latency:
//
//   npx tsx bench/simulate.ts --chosen --handshakes --latency-us 25 --overhead-us 2.5 --gbit 10    (and 2, 0.2, 100)
#pragma once

namespace ringwise::coll {

inline constexpr char kTuningTable[] = R"(
# verb       type  layout  ranks  bytes  algorithm
allReduce    *     hosts   2-4    2K     one-shot
allReduce    *     hosts   *      *      hierarchical

# Two ranks: one exchange of the whole buffer sends as many bytes as two exchanges of its halves, with half the latency.
# But where latency no longer counts and the buffer still fits a cache, it is faster if each rank sums only one half.
allReduce    half  flat    2      2K     recursive-doubling
allReduce    half  flat    2      16K    one-shot
allReduce    half  flat    2      *      two-shot
allReduce    full  flat    2      511K   recursive-doubling
allReduce    full  flat    2      8191K  ring
allReduce    full  flat    2      *      recursive-doubling

allReduce    *     flat    3      32K    one-shot
allReduce    *     flat    4      21K    one-shot
allReduce    *     flat    5      13K    one-shot
allReduce    *     flat    6      9K     one-shot
allReduce    *     flat    7-8    6K     one-shot
allReduce    *     flat    9-11   4K     one-shot
allReduce    *     flat    12-15  2700   one-shot
allReduce    *     flat    16-    32K    recursive-doubling

# Where ranks are no power of two, halving-doubling sends everything twice more.
allReduce    *     flat    32       *      halving-doubling
allReduce    *     flat    33-63    240K   halving-doubling
allReduce    *     flat    64       *      halving-doubling
allReduce    *     flat    65-127   480K   halving-doubling
allReduce    *     flat    128      *      halving-doubling
allReduce    *     flat    129-255  960K   halving-doubling
allReduce    *     flat    256      *      halving-doubling
allReduce    *     flat    257-511  1900K  halving-doubling
allReduce    *     flat    512      *      halving-doubling
allReduce    *     flat    513-1023 3800K  halving-doubling
allReduce    *     flat    1024-    *      halving-doubling
allReduce    *     flat    *        *      two-shot

# A chain needs n-1 hops until the last rank has its first chunk, so a tree is faster up to about
# 160 KiB·(n-2) / (⌈log2 n⌉-1).
broadcast    *     *       3      160K   tree
broadcast    *     *       4-5    320K   tree
broadcast    *     *       6-8    400K   tree
broadcast    *     *       9-16   600K   tree
broadcast    *     *       17-32  1M     tree
broadcast    *     *       33-128 2M     tree
broadcast    *     *       129-   8M     tree
broadcast    *     *       3-     *      chain

# Above these sizes, bytes count more than steps.
reduce       *     *       3-100   65535  tree
reduce       *     *       101-512 192K   tree
reduce       *     *       513-    640K   tree
reduce       *     *       3-      *      two-shot

# The root reaches up to 32 ranks in no more time than a tree takes.
gather       *     *       33-    8191   tree
scatter      *     *       33-    8191   tree

allGather    *     *       33-    16K    bruck
allToAll     *     *       33-    1K     bruck
)";

}  // namespace ringwise::coll
