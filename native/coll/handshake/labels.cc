#include "coll/handshake/labels.h"

#include <charconv>
#include <deque>
#include <mutex>
#include <unordered_map>

namespace ringwise::coll {

namespace {

// Most texts that are kept. Bounds the memory of a program that uses a new label for every call.
constexpr size_t kMost = 4096;

constexpr std::string_view kByNumber = "labelled #";

struct Texts {
  std::mutex mutex;
  std::unordered_map<uint64_t, std::string> by_label;  // mutex
  std::deque<uint64_t> oldest_first;                   // mutex
};

Texts& texts() {
  static Texts all;
  return all;
}

/// Returns the FNV-1a hash of `text`, folded to 53 bits so that a double can hold it.
uint64_t hash_of(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  hash = (hash ^ (hash >> 53)) & ((uint64_t{1} << 53) - 1);
  return hash == 0 ? 1 : hash;
}

std::string hex(uint64_t number) {
  char digits[16];
  return std::string(digits, std::to_chars(digits, digits + sizeof digits, number, 16).ptr);
}

/// Returns where the next number after the words `kByNumber` begins, searching from `from`; npos if there is none.
size_t find_number(std::string_view sentence, size_t from) {
  const size_t found = sentence.find(kByNumber, from);
  return found == std::string_view::npos ? found : found + kByNumber.size();
}

uint64_t number_at(std::string_view sentence, size_t at) {
  uint64_t number = 0;
  std::from_chars(sentence.data() + at, sentence.data() + sentence.size(), number, 16);
  return number;
}

}  // namespace

std::string_view first_of(std::string_view text, size_t bytes) {
  if (text.size() <= bytes) return text;
  size_t end = bytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end);
}

uint64_t label_of(std::string_view text) {
  const uint64_t label = hash_of(text);
  remember_label(label, text);
  return label;
}

void remember_label(uint64_t label, std::string_view text) {
  if (label == 0 || text.empty()) return;
  Texts& all = texts();
  std::lock_guard lock(all.mutex);
  if (!all.by_label.emplace(label, first_of(text, kMaxLabelBytes)).second) return;
  all.oldest_first.push_back(label);
  if (all.oldest_first.size() <= kMost) return;
  all.by_label.erase(all.oldest_first.front());
  all.oldest_first.pop_front();
}

std::string text_of_label(uint64_t label) {
  if (label == 0) return {};
  Texts& all = texts();
  std::lock_guard lock(all.mutex);
  const auto found = all.by_label.find(label);
  return found == all.by_label.end() ? std::string() : found->second;
}

std::string describe_label(uint64_t label) {
  const std::string text = text_of_label(label);
  return text.empty() ? std::string(kByNumber) + hex(label) : "labelled \"" + text + '"';
}

uint64_t unknown_label_in(std::string_view sentence) {
  const size_t at = find_number(sentence, 0);
  return at == std::string_view::npos ? 0 : number_at(sentence, at);
}

std::string with_known_labels(std::string sentence) {
  for (size_t at = find_number(sentence, 0); at != std::string::npos; at = find_number(sentence, at)) {
    const uint64_t label = number_at(sentence, at);
    if (text_of_label(label).empty()) continue;
    const size_t begin = at - kByNumber.size();
    sentence.replace(begin, kByNumber.size() + hex(label).size(), describe_label(label));
  }
  return sentence;
}

}  // namespace ringwise::coll
