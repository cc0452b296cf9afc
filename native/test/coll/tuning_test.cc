// Tests the tuning rules: the built-in rules, the rules of a file, and the errors for wrong rules.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>

#include "coll/plan/choose.h"
#include "test/check.h"
#include "test/coll/virtual_ranks.h"

using namespace ringwise;
using namespace ringwise::test;
using namespace ringwise::coll;

namespace {

std::string chosen(const Op& op, const Hosts& hosts, const Tuning& tuning = Tuning::built_in()) {
  return Choices().choose(op, {0, &hosts, &tuning}).name;
}

Op all_reduce(size_t bytes, DType dtype = DType::Float32) {
  return {.verb = Verb::AllReduce, .dtype = dtype, .count = bytes / byte_size(dtype)};
}

std::string complaint(const std::string& text) {
  try {
    Tuning::parse(text, "rules");
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST("the built-in rules choose by bytes, ranks, hosts and type") {
  const Hosts two = place_ranks(2, 1), many = place_ranks(64, 1), shared = place_ranks(4, 2), one = place_ranks(3, 3);
  CHECK(chosen(all_reduce(4), two) == "recursive-doubling");
  CHECK(chosen(all_reduce(1 << 20), two) == "ring");
  CHECK(chosen(all_reduce(64 << 20), two) == "recursive-doubling");
  CHECK(chosen(all_reduce(1 << 20, DType::BFloat16), two) == "two-shot");
  CHECK(chosen(all_reduce(1 << 20), many) == "halving-doubling");
  CHECK(chosen(all_reduce(1024), shared) == "one-shot");
  CHECK(chosen(all_reduce(1 << 20), shared) == "hierarchical");
  CHECK(chosen(all_reduce(1 << 20), one) == "two-shot");
  CHECK(chosen({.verb = Verb::Broadcast, .count = 2 << 20}, many) == "tree");
  CHECK(chosen({.verb = Verb::Broadcast, .count = (2 << 20) + 1}, many) == "chain");
  CHECK(chosen({.verb = Verb::Broadcast, .count = 65536}, two) == "tree");
  CHECK(chosen({.verb = Verb::Barrier}, many) == "direct");
}

TEST("ranks with parts of different sizes choose alike") {
  const Hosts hosts = place_ranks(64, 1);
  std::vector<size_t> counts(64, 1000);
  counts[0] = 10'000;
  Op small{.verb = Verb::AllGather, .count = 1000, .counts = counts.data()}, large = small;
  large.count = 10'000;
  CHECK(chosen(small, hosts) == "bruck");
  CHECK(chosen(large, hosts) == "bruck");
}

TEST("a file's rules come first, in their order, where they match and fit") {
  const Hosts two = place_ranks(2, 1), three = place_ranks(3, 1), shared = place_ranks(4, 2);
  const Tuning tuning = Tuning::parse(
      "# measured\n"
      "\n"
      "allReduce full flat 2 1K hierarchical\n"
      "allReduce half * 2-3 * tree\n"
      "allReduce * flat 3- 64K ring\n"
      "allReduce * hosts * * two-shot\n",
      "rules");
  CHECK(chosen(all_reduce(1024), two, tuning) == "hierarchical");
  CHECK(chosen(all_reduce(1028), two, tuning) == "recursive-doubling");
  CHECK(chosen(all_reduce(1028, DType::Float16), two, tuning) == "tree");
  CHECK(chosen(all_reduce(64 << 10), three, tuning) == "ring");
  CHECK(chosen(all_reduce(65 << 10), three, tuning) == "two-shot");
  CHECK(chosen(all_reduce(64 << 20), shared, tuning) == "two-shot");
  const Tuning misfit = Tuning::parse("allReduce * * * * hierarchical", "rules");
  const Hosts one = place_ranks(3, 3);
  CHECK(chosen(all_reduce(4), one, misfit) == "one-shot");
}

TEST("rules have a digest that spaces and comments do not change") {
  const Tuning tuning = Tuning::parse("allReduce * * 2 4K ring", "rules");
  CHECK(tuning.digest() != 0);
  CHECK(Tuning::parse("# x\nallReduce  * *  2 4K\tring # y\n", "rules").digest() == tuning.digest());
  CHECK(Tuning::parse("allReduce * * 2 8K ring", "rules").digest() != tuning.digest());
  CHECK(Tuning::parse("# nothing\n", "rules").digest() == 0);
  CHECK(Tuning::built_in().digest() == 0);
}

TEST("an error in a rule names the line and what is wrong") {
  CHECK(complaint("\nallReduce * * 2 4K") ==
        "rules, line 2: expected verb, type, layout, ranks, bytes and algorithm, got 5 words");
  CHECK(complaint("allReduce * * 2 4K rang") ==
        "rules, line 1: allReduce's algorithm: expected one of two-shot, one-shot, recursive-doubling, "
        "halving-doubling, ring, tree, "
        "hierarchical, got \"rang\"");
  CHECK(complaint("allreduce * * 2 4K ring").find("verb: expected one of allReduce, broadcast") != std::string::npos);
  CHECK(complaint("allReduce f32 * 2 4K ring").find("type: expected half, full or *, got \"f32\"") !=
        std::string::npos);
  CHECK(complaint("allReduce * two 2 4K ring").find("layout: expected flat, hosts or *, got \"two\"") !=
        std::string::npos);
  for (const char* ranks : {"0", "-", "8-2", "2x", "2-x", "99999999999"}) {
    CHECK(complaint(std::string("allReduce * * ") + ranks + " 4K ring").find("ranks: expected 2, 5-8, 33- or *") !=
          std::string::npos);
  }
  for (const char* bytes : {"K", "4k", "-1", "4KB", "99999999999G"}) {
    CHECK(complaint(std::string("allReduce * * 2 ") + bytes + " ring").find("bytes: expected 4, 64K, 16M, 1G or *") !=
          std::string::npos);
  }
}

TEST("ranks whose rules differ get an error, also where the first stage is the same") {
  const Hosts hosts = place_ranks(4, 2);
  const Tuning other = Tuning::parse("allReduce * flat 2 * ring", "rules");
  MemNetwork network(4, 4096);
  std::vector<Execution> ranks(4);
  std::vector<std::vector<float>> data(4, std::vector<float>(1000, 7.f));
  std::string text;
  for (int rank = 0; rank < 4; ++rank) {
    for (int peer = 0; peer < rank; ++peer) network.connect(rank, peer);
    Op op = all_reduce(4000);
    op.input = op.output = reinterpret_cast<std::byte*>(data[rank].data());
    const Topology topology{rank, &hosts, rank == 3 ? &other : nullptr};
    ranks[rank].begin(op, topology, Choices().choose(op, topology));
  }
  for (bool moved = true; moved && text.empty();) {
    moved = false;
    for (int rank = 0; rank < 4; ++rank) {
      try {
        moved |= ranks[rank].advance(network.links(rank));
      } catch (const Failure& failure) {
        text = failure.text;
      }
    }
  }
  CHECK(text.find("by hierarchical") != std::string::npos);
  CHECK(text.find("by hierarchical with RINGWISE_TUNING ") != std::string::npos);
  for (const auto& buffer : data) CHECK(buffer == std::vector<float>(1000, 7.f));
}

TEST("RINGWISE_TUNING names a file, which must be there") {
  const std::string path = "/tmp/ringwise-tuning-" + std::to_string(getpid());
  std::ofstream(path) << "allReduce * * 2 * tree\n";
  setenv("RINGWISE_TUNING", path.c_str(), 1);
  const Choices choices = Choices::from_environment();
  const Hosts two = place_ranks(2, 1);
  CHECK(std::string(choices.choose(all_reduce(4), {0, &two, &choices.tuning()}).name) == "tree");
  std::remove(path.c_str());
  for (const std::string& unreadable : {path, std::string("/tmp")}) {
    setenv("RINGWISE_TUNING", unreadable.c_str(), 1);
    std::string text;
    try {
      Choices::from_environment();
    } catch (const std::invalid_argument& error) {
      text = error.what();
    }
    CHECK_EQ(text, "RINGWISE_TUNING: \"" + unreadable + "\" cannot be read");
  }
  unsetenv("RINGWISE_TUNING");
}

int main() { return run_all(); }
