// Tests the labels of operations: ranks compare their numbers, and errors show their texts.
#include "coll/handshake/labels.h"

#include "test/check.h"
#include "test/coll/ranks.h"

using namespace ringwise;
using namespace ringwise::test;
using coll::FailureCode;

namespace {

Op labelled(std::vector<float>& data, uint64_t seq, uint64_t label) {
  Op op = all_reduce(data, DType::Float32, seq);
  op.label = label;
  return op;
}

/// Returns a label number whose text this process does not know, as if another process had made it.
uint64_t foreign(const char* text) { return coll::label_of(text) ^ 1; }

}  // namespace

TEST("a label is a number below 2^53, and its text is remembered") {
  const uint64_t label = coll::label_of("gradients");
  CHECK(label > 0 && label < uint64_t{1} << 53);
  CHECK_EQ(coll::label_of("gradients"), label);
  CHECK(coll::label_of("gradient") != label);
  CHECK_EQ(coll::text_of_label(label), "gradients");
  CHECK_EQ(coll::describe_label(label), "labelled \"gradients\"");
  CHECK_EQ(coll::text_of_label(0), "");
}

TEST("long texts are cut between characters, but their numbers differ") {
  const std::string base(coll::kMaxLabelBytes - 1, 'x');
  const uint64_t one = coll::label_of(base + "é1"), two = coll::label_of(base + "é2");
  CHECK(one != two);
  CHECK_EQ(coll::text_of_label(one), base);
}

TEST("the texts of many labels do not fill the memory") {
  const uint64_t first = coll::label_of("first of many");
  for (int i = 0; i < 5'000; ++i) coll::label_of("step " + std::to_string(i));
  CHECK_EQ(coll::text_of_label(first), "");
  CHECK_EQ(coll::text_of_label(coll::label_of("step 4999")), "step 4999");
}

TEST("a sentence gets the texts that have become known") {
  const uint64_t label = foreign("told later");
  const std::string sentence =
      "a " + coll::describe_label(label) + " but b " + coll::describe_label(label) + " (seq 1)";
  CHECK_EQ(coll::unknown_label_in(sentence), label);
  CHECK_EQ(coll::with_known_labels(sentence), sentence);
  coll::remember_label(label, "later");
  CHECK_EQ(coll::with_known_labels(sentence), "a labelled \"later\" but b labelled \"later\" (seq 1)");
  CHECK_EQ(coll::unknown_label_in(coll::with_known_labels(sentence)), uint64_t{0});
}

TEST("operations that differ only in their labels are a mismatch, on one host and between hosts") {
  for (const auto& place : {std::function<int(int)>(one_host), std::function<int(int)>(own_host)}) {
    with_ranks(3, place, [&](Rank& rank) {
      std::vector<float> data(10, 7.f);
      const uint64_t both = coll::label_of("both");
      const auto right = rank.group->run(labelled(data, 0, both));
      // On a slow rank this operation may fail already, because the other ranks have begun the next one and found its
      // mismatch.
      if (right == nullptr) CHECK_EQ(data[0], 21.f);
      const std::vector<float> before = data;
      const std::string text = rank.run(labelled(data, 1, rank.rank == 2 ? coll::label_of("odd") : both));
      CHECK(text.find("called allReduce sum 10 × float32 labelled \"both\" (seq 1)") != std::string::npos);
      CHECK(text.find("but rank 2 called allReduce sum 10 × float32 labelled \"odd\" (seq 1)") != std::string::npos);
      CHECK(data == before);
    });
  }
}

TEST("a label whose text no rank knows is shown by its number") {
  with_ranks(2, own_host, [&](Rank& rank) {
    std::vector<float> data(10, 7.f);
    const int64_t start = now_ns();
    const std::string text = rank.run(labelled(data, 0, rank.rank == 1 ? foreign("nowhere") : 0));
    CHECK(text.find("labelled #") != std::string::npos);
    CHECK(now_ns() - start < kTimeout / 2);
  });
}

TEST("the flight record has labels, and so has the error of a rank that waits") {
  with_ranks(2, one_host, [&](Rank& rank) {
    std::vector<float> data(10);
    Op op = labelled(data, 0, coll::label_of("late"));
    op.timeout_ns = kAnsweredTimeout;
    if (rank.rank == 0) {
      const std::string text = rank.run(op);
      CHECK(text.find("rank 1 never entered allReduce #0 (10 × float32 labelled \"late\") within 1000 ms") !=
            std::string::npos);
      const auto entries = rank.group->flight().entries();
      CHECK_EQ(entries.at(0).label, op.label);
    } else {
      sleep_until([&] { return rank.group->failure() != nullptr; });
    }
  });
}

int main() { return run_all(); }
