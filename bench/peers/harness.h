// Code that the programs of this folder share, so that their figures can be compared with each other and with those of
// `ringwise bench`: the buffers and their expected results, the sizes, the rule of measuring, and the line of JSON that
// is printed for every size. For C and C++.
//
// A buffer consists of parts of `count` floats each. `bytes` is what nccl-tests calls size: the larger of input and
// output on the root. The time of a call is that of its slowest rank; p50_us is the median over the calls, mean_us the
// total time divided by the number of calls. Calls below 10 us are timed in batches: p50_us is then the median over the
// batches of their mean call.
#pragma once
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum verb {
  ALL_REDUCE,
  REDUCE,
  BROADCAST,
  ALL_GATHER,
  REDUCE_SCATTER,
  GATHER,
  SCATTER,
  ALL_TO_ALL,
  SEND_RECV,
  BARRIER,
  VERBS
};
static const char* const verb_names[] = {"all-reduce", "reduce",  "broadcast",  "all-gather", "reduce-scatter",
                                         "gather",     "scatter", "all-to-all", "send-recv",  "barrier"};

struct bench {
  const char* peer;
  int rank, ranks;
  enum verb verb;
  double seconds;
  size_t min, max, factor;
  float *in, *out;  // the same memory for the in-place verbs: all-reduce, reduce, broadcast
  size_t count;     // floats in each part
  void (*call)(struct bench*);
  // Replaces each of the n values by the largest that any rank has. Collective.
  void (*maximum)(struct bench*, double* values, size_t n);
};

static inline int in_place(enum verb v) { return v == ALL_REDUCE || v == REDUCE || v == BROADCAST; }
static inline size_t in_parts(const struct bench* b, int rank) {
  if (b->verb == BARRIER) return 0;
  if (b->verb == SCATTER) return rank == 0 ? b->ranks : 0;
  return b->verb == REDUCE_SCATTER || b->verb == ALL_TO_ALL ? b->ranks : 1;
}
static inline size_t out_parts(const struct bench* b, int rank) {
  if (b->verb == BARRIER) return 0;
  if (b->verb == GATHER) return rank == 0 ? b->ranks : 0;
  return b->verb == ALL_GATHER || b->verb == ALL_TO_ALL ? b->ranks : 1;
}
static inline int next_rank(const struct bench* b) { return (b->rank + 1) % b->ranks; }
static inline int previous_rank(const struct bench* b) { return (b->rank + b->ranks - 1) % b->ranks; }

// term() returns element i of rank r's input to a reduction, message() element i of message `id`. Values are small
// integers, so sums are exact.
static inline float term(size_t r, size_t i) { return (float)((i * 5 + r * 3) % 7); }
static inline float message(size_t id, size_t i) { return (float)((i * 5 + id * 37) % 101); }
static inline float sum_of_terms(const struct bench* b, size_t i) {
  float sum = 0;
  for (int r = 0; r < b->ranks; r++) sum += term(r, i);
  return sum;
}

static inline float given(const struct bench* b, size_t i) {
  size_t part = i / b->count;
  switch (b->verb) {
    case ALL_REDUCE:
    case REDUCE:
    case REDUCE_SCATTER: return term(b->rank, i);
    case SCATTER: return message(part, i % b->count);
    case ALL_TO_ALL: return message(b->rank * b->ranks + part, i % b->count);
    default: return message(b->rank, i);
  }
}
static inline float expected(const struct bench* b, size_t i) {
  size_t part = i / b->count;
  switch (b->verb) {
    case ALL_REDUCE:
    case REDUCE: return sum_of_terms(b, i);
    case REDUCE_SCATTER: return sum_of_terms(b, b->rank * b->count + i);
    case BROADCAST: return message(0, i);
    case SCATTER: return message(b->rank, i);
    case ALL_TO_ALL: return message(part * b->ranks + b->rank, i % b->count);
    case SEND_RECV: return message(previous_rank(b), i);
    default: return message(part, i % b->count);
  }
}
// Runs one call on known input and returns the number of wrong elements on this rank.
static inline double check(struct bench* b) {
  size_t given_count = in_parts(b, b->rank) * b->count, count = out_parts(b, b->rank) * b->count;
  if (!in_place(b->verb)) memset(b->out, 0x7b, count * sizeof(float));
  for (size_t i = 0; i < given_count; i++) b->in[i] = given(b, i);
  b->call(b);
  if (b->verb == REDUCE && b->rank != 0) return 0;
  size_t wrong = 0;
  for (size_t i = 0; i < count; i++) wrong += b->out[i] != expected(b, i);
  return (double)wrong;
}

static inline double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}
static inline double slowest(struct bench* b, double value) {
  b->maximum(b, &value, 1);
  return value;
}
static inline double clamp(double value, double min, double max) {
  return value < min ? min : value > max ? max : value;
}
static inline int by_value(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

struct timing {
  double p50_us, mean_us;
  long iters;
};
static inline struct timing measure(struct bench* b) {
  double call_us = 0, round_us = 0;
  for (long calls = 3; round_us < b->seconds * 1e5 && calls < 1000000; calls *= 4) {
    double start = now_us();
    for (long i = 0; i < calls; i++) b->call(b);
    call_us = clamp(slowest(b, (now_us() - start) / calls), 1e-3, 1e9);
    round_us = call_us * calls;
  }
  long batch = (long)clamp(10 / call_us + 0.999, 1, 1000);
  long samples = (long)clamp(b->seconds * 1e6 / (call_us * batch), 7, 20000);
  double* times = (double*)malloc(samples * sizeof(double));
  slowest(b, 0);  // serves as a barrier: all ranks begin together
  double start = now_us(), before = start;
  for (long i = 0; i < samples; i++) {
    for (long j = 0; j < batch; j++) b->call(b);
    double now = now_us();
    times[i] = (now - before) / batch;
    before = now;
  }
  struct timing t = {0, slowest(b, (before - start) / (samples * batch)), samples * batch};
  b->maximum(b, times, samples);
  qsort(times, samples, sizeof(double), by_value);
  t.p50_us = times[samples / 2];
  free(times);
  return t;
}

static inline void print_line(const struct bench* b, size_t bytes, struct timing t, double wrong) {
  printf(
      "{\"peer\":\"%s\",\"verb\":\"%s\",\"ranks\":%d,\"bytes\":%zu,\"iters\":%ld,\"p50_us\":%.4f,\"mean_us\":%.4f,"
      "\"wrong\":%.0f}\n",
      b->peer, verb_names[b->verb], b->ranks, bytes, t.iters, t.p50_us, t.mean_us, wrong);
  fflush(stdout);
}

// Measures and prints all sizes. Calls `each` before the calls of each size, for libraries that need to know the
// buffers in advance; it may be null.
static inline void run_sizes(struct bench* b, void (*each)(struct bench*)) {
  size_t parts = in_parts(b, 0) > out_parts(b, 0) ? in_parts(b, 0) : out_parts(b, 0);
  size_t capacity = b->max > parts * sizeof(float) ? b->max : parts * sizeof(float);
  b->in = (float*)aligned_alloc(4096, (capacity + 4095) / 4096 * 4096);
  b->out = in_place(b->verb) ? b->in : (float*)aligned_alloc(4096, (capacity + 4095) / 4096 * 4096);
  size_t last = 0;
  for (size_t bytes = b->min; bytes <= b->max; bytes *= b->factor) {
    b->count = parts == 0 || bytes < parts * sizeof(float) ? 1 : bytes / (parts * sizeof(float));
    size_t whole = b->count * parts * sizeof(float);
    if (whole == last && last != 0) continue;
    last = whole;
    if (each) each(b);
    double wrong = check(b);
    memset(b->in, 0, in_parts(b, b->rank) * b->count * sizeof(float));
    struct timing t = measure(b);
    wrong = slowest(b, wrong + check(b));
    if (b->rank == 0) print_line(b, whole, t, wrong);
    if (parts == 0) break;
  }
  if (b->out != b->in) free(b->out);
  free(b->in);
}

// Reads the flags --verb V --min B --max B --factor F --seconds S. Ignores other flags, which belong to the program and
// must have one value each.
static inline struct bench parse_bench(const char* peer, int argc, char** argv) {
  struct bench b;
  memset(&b, 0, sizeof b);
  b.peer = peer;
  b.ranks = 2;
  b.seconds = 0.3;
  b.min = 4, b.max = 64 << 20, b.factor = 4;
  for (int i = 1; i + 1 < argc; i += 2) {
    const char *flag = argv[i], *value = argv[i + 1];
    if (!strcmp(flag, "--min")) b.min = strtoull(value, 0, 10);
    if (!strcmp(flag, "--max")) b.max = strtoull(value, 0, 10);
    if (!strcmp(flag, "--factor")) b.factor = strtoull(value, 0, 10);
    if (!strcmp(flag, "--seconds")) b.seconds = atof(value);
    if (!strcmp(flag, "--verb")) {
      int v = 0;
      while (v < VERBS && strcmp(verb_names[v], value)) v++;
      if (v == VERBS) fprintf(stderr, "%s: unknown verb %s\n", peer, value), exit(2);
      b.verb = (enum verb)v;
    }
  }
  if (b.factor < 2) b.factor = 2;
  return b;
}
