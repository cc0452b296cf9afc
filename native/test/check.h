// A unit-test harness in one header. A test program defines tests as TEST("behaviour") { CHECK(...); } and calls
// run_all() in main.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

namespace ringwise::test {

struct Case {
  const char* title;
  std::function<void()> body;
};

inline std::vector<Case>& cases() {
  static std::vector<Case> all;
  return all;
}

inline int& failures() {
  static int count = 0;
  return count;
}

struct Register {
  Register(const char* title, std::function<void()> body) { cases().push_back({title, std::move(body)}); }
};

inline void fail(const char* file, int line, const std::string& what) {
  ++failures();
  std::fprintf(stderr, "  %s:%d: %s\n", file, line, what.c_str());
}

template <class A, class B>
std::string differ(const char* expression, const A& a, const B& b) {
  std::ostringstream text;
  text << expression << ": " << a << " against " << b;
  return text.str();
}

/// Returns the number of rounds of a test with random inputs: `usual`, or RINGWISE_ROUNDS if that is less. Tools that
/// watch every access to memory make a round hundreds of times slower.
inline int rounds(int usual) {
  const char* most = std::getenv("RINGWISE_ROUNDS");
  return most ? std::min(usual, std::max(1, std::atoi(most))) : usual;
}

/// Runs every test of the program. Returns the exit status: 0 if all passed, else 1.
inline int run_all() {
  int failed_cases = 0;
  for (auto& test : cases()) {
    const int before = failures();
    try {
      test.body();
    } catch (const std::exception& error) {
      fail(test.title, 0, std::string("threw ") + error.what());
    }
    if (failures() != before) {
      ++failed_cases;
      std::fprintf(stderr, "FAILED %s\n", test.title);
    }
  }
  std::printf("%zu passed, %d failed\n", cases().size() - failed_cases, failed_cases);
  return failed_cases == 0 ? 0 : 1;
}

}  // namespace ringwise::test

#define RINGWISE_JOIN2(a, b) a##b
#define RINGWISE_JOIN(a, b) RINGWISE_JOIN2(a, b)
#define TEST(title)                                                                                                  \
  static void RINGWISE_JOIN(test_body_, __LINE__)();                                                                 \
  static const ::ringwise::test::Register RINGWISE_JOIN(test_case_, __LINE__)(title,                                 \
                                                                              &RINGWISE_JOIN(test_body_, __LINE__)); \
  static void RINGWISE_JOIN(test_body_, __LINE__)()

#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition)) ::ringwise::test::fail(__FILE__, __LINE__, #condition); \
  } while (0)
#define CHECK_EQ(a, b)                                                                                   \
  do {                                                                                                   \
    const auto& left_ = (a);                                                                             \
    const auto& right_ = (b);                                                                            \
    if (!(left_ == right_))                                                                              \
      ::ringwise::test::fail(__FILE__, __LINE__, ::ringwise::test::differ(#a " == " #b, left_, right_)); \
  } while (0)
#define CHECK_NEAR(a, b, tolerance)                                                                     \
  do {                                                                                                  \
    const double left_ = (a);                                                                           \
    const double right_ = (b);                                                                          \
    if (!(std::fabs(left_ - right_) <= (tolerance)))                                                    \
      ::ringwise::test::fail(__FILE__, __LINE__, ::ringwise::test::differ(#a " ~ " #b, left_, right_)); \
  } while (0)
