/* Runs the ranks of a group as processes, for the tests of the C ABI. The parent exchanges the blobs that the
 * ranks pass to their exchange callbacks. Alarms end every rank that hangs, and the parent. */
#ifndef RINGWISE_TEST_C_API_RANKS_H
#define RINGWISE_TEST_C_API_RANKS_H

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ringwise.h"

enum { MAX_RANKS = 4, CASE_SECONDS = 60 };

static int failures;
static const char* case_name = "";
static int my_rank = -1; /* rank of this process; -1 in the parent */

#define CHECK(condition)                                                                                 \
  do {                                                                                                   \
    if (!(condition)) {                                                                                  \
      ++failures;                                                                                        \
      fprintf(stderr, "  %s, rank %d: %s:%d: %s\n", case_name, my_rank, __FILE__, __LINE__, #condition); \
    }                                                                                                    \
  } while (0)

/* Checks a status, and prints the group's error if the status differs. */
#define CHECK_STATUS(group, expression, expected)                                                                 \
  do {                                                                                                            \
    const int status_ = (expression);                                                                             \
    if (status_ != (expected)) {                                                                                  \
      char text_[1024];                                                                                           \
      ringwise_error(group, text_, sizeof text_);                                                                 \
      ++failures;                                                                                                 \
      fprintf(stderr, "  %s, rank %d: %s:%d: %s: got status %d, expected %d: %s\n", case_name, my_rank, __FILE__, \
              __LINE__, #expression, status_, (int)(expected), text_);                                            \
    }                                                                                                             \
  } while (0)
#define CHECK_OK(group, expression) CHECK_STATUS(group, expression, RINGWISE_OK)

static inline int64_t now_ms(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

/* Returns whether the group's last error contains `part`, and prints the error if it does not. */
static inline int error_has(const ringwise_group* group, const char* part) {
  char text[2048];
  ringwise_error(group, text, sizeof text);
  if (strstr(text, part) != NULL) return 1;
  fprintf(stderr, "  the error is: %s\n", text);
  return 0;
}

static inline int move_all(int fd, void* data, size_t bytes, int writes) {
  char* at = data;
  while (bytes > 0) {
    const ssize_t moved = writes ? send(fd, at, bytes, MSG_NOSIGNAL) : recv(fd, at, bytes, 0);
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) return -1;
    at += moved;
    bytes -= (size_t)moved;
  }
  return 0;
}

/* A rank of a test case, which is one process. */
struct rank {
  int rank;
  int size;
  int fd; /* socket to the parent */
};

/* The exchange callback, by way of the parent. `user` is a struct rank. */
static inline int exchange_by_parent(void* user, const void* mine, size_t bytes, void* all) {
  const struct rank* self = user;
  char* blob = malloc(bytes);
  if (blob == NULL) return -1;
  memcpy(blob, mine, bytes);
  int failed = move_all(self->fd, &bytes, sizeof bytes, 1) || move_all(self->fd, blob, bytes, 1);
  free(blob);
  return failed || move_all(self->fd, all, bytes * (size_t)self->size, 0);
}

static inline ringwise_options options_of(struct rank* self, int64_t timeout_ms) {
  const ringwise_options options = {.struct_size = sizeof options,
                                    .rank = self->rank,
                                    .size = self->size,
                                    .timeout_ms = timeout_ms,
                                    .exchange = exchange_by_parent,
                                    .user = self};
  return options;
}

static inline ringwise_group* join(struct rank* self, int64_t timeout_ms) {
  const ringwise_options options = options_of(self, timeout_ms);
  ringwise_group* group = NULL;
  CHECK_OK(group, ringwise_group_create(&options, &group));
  return group;
}

/* Closes the group once all ranks have come here. */
static inline void leave(ringwise_group* group) {
  CHECK_OK(group, ringwise_barrier(group, NULL));
  CHECK_OK(group, ringwise_group_close(group));
  ringwise_group_destroy(group);
}

/* Carries the blobs of `size` ranks, once for every group that they create, until a rank has ended. */
static inline void carry(const int* fds, int size) {
  for (;;) {
    char* all = NULL;
    size_t bytes = 0;
    int ended = 0;
    for (int r = 0; r < size; ++r) {
      size_t own = 0;
      if (move_all(fds[r], &own, sizeof own, 0) != 0) {
        ++ended;
        continue;
      }
      if (all == NULL) all = calloc((size_t)size, bytes = own);
      if (all == NULL || own != bytes || move_all(fds[r], all + bytes * (size_t)r, bytes, 0) != 0) ++ended;
    }
    for (int r = 0; ended == 0 && r < size; ++r) move_all(fds[r], all, bytes * (size_t)size, 1);
    free(all);
    if (ended > 0) break;
  }
  for (int r = 0; r < size; ++r) close(fds[r]); /* a rank that still waits for blobs then gets an error */
}

/* Runs `body` in `size` processes. Ranks whose bit is set in `killed` must end by SIGKILL, and the others without a
 * failure. */
static inline void run_ranks(const char* name, int size, unsigned killed, void (*body)(struct rank* self)) {
  int fds[MAX_RANKS];
  pid_t pids[MAX_RANKS];
  case_name = name;
  for (int r = 0; r < size; ++r) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) abort();
    pids[r] = fork();
    if (pids[r] < 0) abort();
    if (pids[r] == 0) {
      for (int other = 0; other < r; ++other) close(fds[other]);
      close(pair[0]);
      alarm(CASE_SECONDS);
      my_rank = r;
      failures = 0;
      struct rank self = {r, size, pair[1]};
      body(&self);
      exit(failures == 0 ? 0 : 1);
    }
    close(pair[1]);
    fds[r] = pair[0];
  }
  alarm(CASE_SECONDS + 10);
  carry(fds, size);
  for (int r = 0; r < size; ++r) {
    int status = 0;
    waitpid(pids[r], &status, 0);
    const int by_kill = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    const int well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if ((killed >> r & 1u) ? by_kill : well) continue;
    ++failures;
    fprintf(stderr, "  %s: rank %d ended with wait status %#x\n", name, r, (unsigned)status);
  }
  alarm(0);
}

#endif
