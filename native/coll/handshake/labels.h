// What programs call their operations by, so that two of the same kind are told apart. A signature bears a number made of
// the text, which costs nothing to compare. The texts that this process has seen last are kept, so that sentences can
// show them. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ringwise::coll {

/// Longer texts are told apart, and shown as far as this.
inline constexpr size_t kMaxLabelBytes = 160;

/// As much of the text as fits into so many bytes, cut between characters of UTF-8. A part of `text`.
std::string_view first_of(std::string_view text, size_t bytes);

/// The number of a text: below 2^53, never 0. Remembers the text.
uint64_t label_of(std::string_view text);

/// Remembers a text whose number another rank has told.
void remember_label(uint64_t label, std::string_view text);

/// The text of a number, as far as it is shown; empty where it is not known here.
std::string text_of_label(uint64_t label);

/// `labelled "layer 3"`, or `labelled #1f3a` where the text is not known here.
std::string describe_label(uint64_t label);

/// The first label in a sentence that is shown by its number; 0 if there is none.
uint64_t unknown_label_in(std::string_view sentence);

/// A sentence with the texts in place of the numbers that are known here.
std::string with_known_labels(std::string sentence);

}  // namespace ringwise::coll
