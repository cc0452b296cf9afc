#include "coll/plan/tuning.h"

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <tuple>

#include "coll/handshake/signature.h"
#include "coll/plan/choose.h"
#include "coll/plan/tuning_table.h"

namespace ringwise::coll {

namespace {

std::invalid_argument wrong(const std::string& what, const std::string& expected, const std::string& got) {
  return std::invalid_argument(what + ": expected " + expected + ", got \"" + got + "\"");
}

/// Parses a number at the beginning of `text` and removes it from there. Returns −1 if there is none.
int64_t number(std::string_view& text) {
  int64_t value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value < 0) return -1;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return value;
}

size_t bytes_of(const std::string& word) {
  if (word == "*") return std::numeric_limits<size_t>::max();
  std::string_view rest = word;
  const int64_t value = number(rest);
  const size_t unit = rest.empty() ? 0 : rest == "K" ? 10 : rest == "M" ? 20 : rest == "G" ? 30 : 64;
  if (value < 0 || value > (int64_t{1} << 32) || unit == 64) throw wrong("bytes", "4, 64K, 16M, 1G or *", word);
  return static_cast<size_t>(value) << unit;
}

std::pair<int, int> ranks_of(const std::string& word) {
  constexpr int kMost = std::numeric_limits<int>::max();
  if (word == "*") return {1, kMost};
  std::string_view rest = word;
  const int64_t first = number(rest);
  int64_t last = first;
  if (!rest.empty() && rest.front() == '-') {
    rest.remove_prefix(1);
    last = rest.empty() ? kMost : number(rest);
  }
  if (first < 1 || last < first || last > kMost || !rest.empty()) throw wrong("ranks", "2, 5-8, 33- or *", word);
  return {static_cast<int>(first), static_cast<int>(last)};
}

/// Returns 0 if `word` is `*`, 1 if it equals `one`, 2 if it equals `other`. Throws otherwise.
int one_of(const char* what, const std::string& word, const std::string& one, const std::string& other) {
  if (word == "*") return 0;
  if (word == one) return 1;
  if (word == other) return 2;
  throw wrong(what, one + ", " + other + " or *", word);
}

Verb verb_of(const std::string& word) {
  std::string known;
  for (int verb = 0; verb < kVerbCount; ++verb) {
    const char* name = name_of(static_cast<Verb>(verb));
    if (word == name) return static_cast<Verb>(verb);
    known += (known.empty() ? "" : ", ") + std::string(name);
  }
  throw wrong("verb", "one of " + known, word);
}

}  // namespace

bool Tuning::Rule::matches(const Case& what) const {
  return verb == what.verb && what.bytes <= bytes && what.ranks >= first_rank && what.ranks <= last_rank &&
         (type == Type::Any || (type == Type::Half) == what.half) &&
         (layout == Layout::Any || (layout == Layout::Hosts) == what.hosts);
}

Tuning::Rule Tuning::rule_of(const std::vector<std::string>& words) {
  if (words.size() != 6)
    throw std::invalid_argument("expected verb, type, layout, ranks, bytes and algorithm, got " +
                                std::to_string(words.size()) + " words");
  Rule rule{};
  rule.verb = verb_of(words[0]);
  rule.type = static_cast<Type>(one_of("type", words[1], "half", "full"));
  rule.layout = static_cast<Layout>(one_of("layout", words[2], "flat", "hosts"));
  std::tie(rule.first_rank, rule.last_rank) = ranks_of(words[3]);
  rule.bytes = bytes_of(words[4]);
  rule.algorithm = find_algorithm(rule.verb, words[5]);
  if (rule.algorithm == nullptr)
    throw wrong(words[0] + "'s algorithm", "one of " + names_of_algorithms(rule.verb), words[5]);
  return rule;
}

void Tuning::add(std::string_view text, const std::string& source) {
  std::istringstream lines{std::string(text)};
  std::string line;
  for (int at = 1; std::getline(lines, line); ++at) {
    std::istringstream stream(line.substr(0, line.find('#')));
    std::vector<std::string> words;
    for (std::string word; stream >> word;) words.push_back(word);
    if (words.empty()) continue;
    try {
      rules_.push_back(rule_of(words));
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(source + ", line " + std::to_string(at) + ": " + error.what());
    }
    for (const std::string& word : words) {
      for (const char c : word + ' ') digest_ = (digest_ ^ static_cast<unsigned char>(c)) * 0x01000193;
    }
  }
}

const Tuning& Tuning::built_in() {
  static const Tuning tuning = [] {
    Tuning rules;
    rules.add(kTuningTable, "tuning_table.h");
    rules.digest_ = 0;
    return rules;
  }();
  return tuning;
}

Tuning Tuning::parse(std::string_view text, const std::string& source) {
  Tuning tuning;
  tuning.digest_ = 0x811c9dc5;
  tuning.add(text, source);
  if (tuning.rules_.empty()) tuning.digest_ = 0;
  const auto& rest = built_in().rules_;
  tuning.rules_.insert(tuning.rules_.end(), rest.begin(), rest.end());
  return tuning;
}

Tuning Tuning::from_environment() {
  const char* path = std::getenv("RINGWISE_TUNING");
  if (path == nullptr || *path == '\0') return built_in();
  std::ifstream file(path);
  std::string text;
  for (std::string line; std::getline(file, line);) text += line + '\n';
  if (!file.is_open() || file.bad())  // a folder can be opened, but not read
    throw std::invalid_argument("RINGWISE_TUNING: \"" + std::string(path) + "\" cannot be read");
  return parse(text, "RINGWISE_TUNING: " + std::string(path));
}

}  // namespace ringwise::coll
