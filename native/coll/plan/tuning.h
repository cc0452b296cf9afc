// The tuning rules, which choose the algorithm for an operation. The first rule applies that matches and whose
// algorithm can run the operation. The built-in rules (tuning_table.h) were measured or, for many ranks, follow from
// simulated costs. Rules in the file that RINGWISE_TUNING names take precedence. `ringwise bench <verb> --tune`
// measures and prints rules. A rule is a line:
//
//   verb       type  layout  ranks  bytes  algorithm
//   allReduce  *     flat    2      512K   recursive-doubling
//
// type: `half` (float16, bfloat16, float8: sums of several ranks travel as float32), `full`, or `*`. layout: `hosts`
// if there are several hosts and one of them has several ranks, else `flat`; or `*`. ranks: 2, 5-8, 33-, or `*`. bytes:
// the largest message size that the rule covers, such as 4, 64K, 16M or 1G, or `*`. The message size is that of the
// buffer or, if every rank has a part, of the mean part.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "coll/op.h"

namespace ringwise::coll {

struct Algorithm;

/// The properties of an operation by which its algorithm is looked up.
struct Case {
  Verb verb;
  bool half;   // whether the type is `half`
  bool hosts;  // whether the layout is `hosts`
  int ranks;
  size_t bytes;
};

class Tuning {
 public:
  /// Returns the built-in rules.
  static const Tuning& built_in();
  /// Returns the rules in `text`, followed by the built-in ones. Throws std::invalid_argument, which names `source` and
  /// the line.
  static Tuning parse(std::string_view text, const std::string& source);
  /// Returns parse() of the file that RINGWISE_TUNING names, or the built-in rules if it is not set.
  static Tuning from_environment();

  /// Returns the algorithm of the first rule that matches and for which fits(algorithm) is true; null if there is none.
  template <class Fits>
  const Algorithm* find(const Case& what, Fits&& fits) const {
    for (const Rule& rule : rules_) {
      if (rule.matches(what) && fits(*rule.algorithm)) return rule.algorithm;
    }
    return nullptr;
  }

  /// Returns a hash of the rules from the user's file, which ranks compare in signatures; 0 if there are none.
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
