/* Data that the tests of the C ABI send and expect, and how a call of a verb ends in each of its forms. */
#ifndef RINGWISE_TEST_C_API_CALLS_H
#define RINGWISE_TEST_C_API_CALLS_H

#include <sched.h>

#include "c_api_ranks.h"

/* Returns the element that rank `rank` contributes at `index`. */
static inline float input_at(int rank, size_t index) { return (float)((index * 7 + (size_t)rank * 5) % 13); }

/* Returns the elements of rank `rank` from index `first` on, in memory that the caller frees. */
static inline float* input_of(int rank, size_t first, size_t count) {
  float* data = malloc((count + 1) * sizeof *data);
  if (data == NULL) abort();
  for (size_t i = 0; i < count; ++i) data[i] = input_at(rank, first + i);
  return data;
}

static inline float sum_at(int size, size_t index) {
  float sum = 0;
  for (int r = 0; r < size; ++r) sum += input_at(r, index);
  return sum;
}

/* Returns how many elements differ from input_at(rank, first…), or from sum_at(size, first…) if `rank` is -1. */
static inline size_t wrong(const float* data, int rank, int size, size_t first, size_t count) {
  size_t differences = 0;
  for (size_t i = 0; i < count; ++i) {
    differences += data[i] != (rank < 0 ? sum_at(size, first + i) : input_at(rank, first + i));
  }
  return differences;
}

/* Ends a call in one of its forms: `form` 0 has blocked, 1 waits for the operation, 2 asks until it has ended. Returns
 * the status. */
static inline int finish(ringwise_group* group, int status, int form, ringwise_operation operation) {
  if (form == 0 || status != RINGWISE_OK) return status;
  if (form == 1) return ringwise_wait(group, operation);
  while ((status = ringwise_test(group, operation)) == RINGWISE_PENDING) sched_yield();
  return status;
}

#define FORMS(form) for (int form = 0; form < 3; ++form)
/* Checks that a call of a verb ends well. `call` must have `operation` as its last argument. */
#define FINISHED(group, form, call)                                         \
  do {                                                                      \
    ringwise_operation id_ = 0, *const operation = form == 0 ? NULL : &id_; \
    const int started_ = call;                                              \
    CHECK(operation == NULL || (id_ != 0) == (started_ == RINGWISE_OK));    \
    CHECK_OK(group, finish(group, started_, form, id_));                    \
  } while (0)

#endif
