// Labels: names that programs give to operations, so that two operations of the same kind can be told apart. A
// signature carries a hash of the text, which is cheap to compare. The process keeps the latest texts that it has seen,
// so that error messages can show them. Any thread may call these functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ringwise::coll {

/// Longest text that is stored and shown, in bytes. The hash covers the whole text.
inline constexpr size_t kMaxLabelBytes = 160;

/// Returns the longest prefix of `text` that fits into `bytes` bytes and ends between UTF-8 characters. It refers to
/// the memory of `text`.
std::string_view first_of(std::string_view text, size_t bytes);

/// Returns the number (hash) of a text, below 2^53 and never 0. Remembers the text.
uint64_t label_of(std::string_view text);

/// Remembers the text that another rank sent for a number.
void remember_label(uint64_t label, std::string_view text);

/// Returns the text of a number, at most kMaxLabelBytes of it; empty if this process does not know it.
std::string text_of_label(uint64_t label);

/// Returns `labelled "layer 3"`, or `labelled #1f3a` if this process does not know the text.
std::string describe_label(uint64_t label);

/// Returns the first label that `sentence` shows by its number; 0 if there is none.
uint64_t unknown_label_in(std::string_view sentence);

/// Returns the sentence with texts in place of the label numbers that this process knows.
std::string with_known_labels(std::string sentence);

}  // namespace ringwise::coll
