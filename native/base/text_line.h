// A line of text that is built without allocating, for signal handlers. Text beyond its capacity is dropped.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace ringwise {

class TextLine {
 public:
  TextLine& operator<<(const char* text) {
    while (*text != 0) put(*text++);
    return *this;
  }
  TextLine& operator<<(uint64_t value) { return number(value, 10); }
  TextLine& hex(uint64_t value) { return (*this << "0x").number(value, 16); }
  /// Writes the text and a line break, by one write() unless the kernel takes only a part. Gives up at an error.
  void write_to(int fd) {
    text_[size_++] = '\n';
    for (size_t sent = 0; sent < size_;) {
      const ssize_t bytes = ::write(fd, text_ + sent, size_ - sent);
      if (bytes <= 0) return;
      sent += static_cast<size_t>(bytes);
    }
  }

 private:
  void put(char c) {
    if (size_ + 1 < sizeof text_) text_[size_++] = c;
  }
  TextLine& number(uint64_t value, unsigned base) {
    char digits[20];
    int count = 0;
    do digits[count++] = "0123456789abcdef"[value % base];
    while ((value /= base) != 0);
    while (count > 0) put(digits[--count]);
    return *this;
  }

  char text_[512];
  size_t size_ = 0;
};

}  // namespace ringwise
