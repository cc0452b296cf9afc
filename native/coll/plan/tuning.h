// Which algorithm is best for what, as data: rules in lines, of which the first that matches counts. The built-in ones
// (tuning_table.h) were measured or, for many ranks, follow from costs; those of the file that RINGWISE_TUNING names
// come before them. `ringwise bench <verb> --tune` measures and prints rules. A rule is
//
//   verb       type  layout  ranks  bytes  algorithm
//   allReduce  *     flat    2      512K   recursive-doubling
//
// type: `half` (float16, bfloat16, float8: sums of several ranks travel twice as long), `full`, or `*`. layout: `hosts`
// where there are several hosts and one of them has several ranks, else `flat`; or `*`. ranks: 2, 5-8, 33-, or `*`.
// bytes: at most so many, as 4, 64K, 16M or 1G, or `*`; of the buffer or, where every rank has a part, of one part on
// average.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "coll/op.h"

namespace ringwise::coll {

struct Algorithm;

/// What is looked up.
struct Case {
  Verb verb;
  bool half;
  bool hosts;  // the layout
  int ranks;
  size_t bytes;
};

class Tuning {
 public:
  /// The built-in rules alone.
  static const Tuning& built_in();
  /// `text`'s rules, then the built-in ones. Throws std::invalid_argument that names `source` and the line.
  static Tuning parse(std::string_view text, const std::string& source);
  /// parse() of the file that RINGWISE_TUNING names; the built-in rules where it is not set.
  static Tuning from_environment();

  /// The first algorithm among those of the matching rules for which fits(algorithm); null without any.
  template <class Fits>
  const Algorithm* find(const Case& what, Fits&& fits) const {
    for (const Rule& rule : rules_) {
      if (rule.matches(what) && fits(*rule.algorithm)) return rule.algorithm;
    }
    return nullptr;
  }

  /// The same on ranks that have the same rules of their own; 0 without any. For signatures.
  uint32_t digest() const { return digest_; }

 private:
  enum class Type : uint8_t { Any, Half, Full };
  enum class Layout : uint8_t { Any, Flat, Hosts };
  struct Rule {
    Verb verb;
    Type type;
    Layout layout;
    int first_rank, last_rank;  // numbers of ranks
    size_t bytes;
    const Algorithm* algorithm;
    bool matches(const Case& what) const;
  };

  static Rule rule_of(const std::vector<std::string>& words);
  void add(std::string_view text, const std::string& source);

  std::vector<Rule> rules_;
  uint32_t digest_ = 0;
};

}  // namespace ringwise::coll
