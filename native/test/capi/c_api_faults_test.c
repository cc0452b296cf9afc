/* Tests failures through the C ABI: refused arguments, groups that cannot be created, and ranks that disagree, die, are
 * late, abort or close. */
#define _GNU_SOURCE /* for unshare */
#include <pthread.h>
#include <sched.h>

#include "c_api_ranks.h"

enum { SOON_MS = 5000, F32 = RINGWISE_FLOAT32, SUM = RINGWISE_SUM };

static void pause_ms(int ms) { poll(NULL, 0, ms); }

/* Checks all that a failed group reports from now on. */
static void check_failed(ringwise_group* group, int status, const char* text, int ranks, const int32_t* expected) {
  float x = 0;
  ringwise_operation operation;
  int32_t about[MAX_RANKS];
  CHECK_STATUS(group, ringwise_all_reduce(group, &x, 1, F32, SUM, 1, NULL), status);
  CHECK(error_has(group, text) && error_has(group, "ringwise_all_reduce: "));
  CHECK_OK(group, ringwise_barrier(group, &operation));
  CHECK_STATUS(group, ringwise_wait(group, operation), status);
  CHECK(error_has(group, text) && error_has(group, "ringwise_barrier: "));
  CHECK(ringwise_failed_ranks(group, about, MAX_RANKS) == (size_t)ranks);
  CHECK(memcmp(about, expected, (size_t)ranks * sizeof *about) == 0);
}

/* --------------------------------------------------------------------------------------------- failures of one call */

static void refused_body(struct rank* self) {
  ringwise_group* group = join(self, 0);
  float a[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  float b[8];
  const size_t mine = self->rank == 0 ? 3 : 1, counts[2] = {3, 1}, enormous[2] = {SIZE_MAX, SIZE_MAX};
  ringwise_operation operation = 0, *const id = &operation;
#define REFUSED(call, text)                      \
  do {                                           \
    CHECK_STATUS(group, call, RINGWISE_INVALID); \
    CHECK(error_has(group, text));               \
  } while (0)
  REFUSED(ringwise_all_reduce(group, a, 1, 15, SUM, 1, id), "dtype is not a ringwise_dtype; expected 0 to 14, got 15");
  REFUSED(ringwise_all_reduce(group, a, 1, -1, SUM, 1, NULL), "got -1");
  REFUSED(ringwise_all_reduce(group, a, 1, F32, 9, 1, NULL), "op is not a ringwise_reduce_op");
  REFUSED(ringwise_all_reduce(group, a, 1, F32, RINGWISE_BOR, 1, NULL), "RINGWISE_BOR is not defined for float32");
  REFUSED(ringwise_all_reduce(group, NULL, 1, F32, SUM, 1, NULL), "buffer is NULL but has elements");
  REFUSED(ringwise_all_reduce(group, a, SIZE_MAX / 2, F32, SUM, 1, NULL), "no memory holds that many elements");
  REFUSED(ringwise_all_reduce_wire(group, a, 1, F32, SUM, 3, NULL, NULL),
          "wire is not a ringwise_wire; expected 0 to 2");
  REFUSED(ringwise_all_reduce_wire(group, a, 1, F32, RINGWISE_MAX, RINGWISE_WIRE_INT8, NULL, NULL),
          "RINGWISE_WIRE_INT8 is for RINGWISE_SUM and RINGWISE_AVG of float32; got RINGWISE_MAX of float32");
  REFUSED(ringwise_all_reduce_wire(group, a, 1, RINGWISE_FLOAT64, SUM, RINGWISE_WIRE_BFLOAT16, NULL, NULL),
          "of float64");
  REFUSED(ringwise_all_reduce_wire(group, a, 1, F32, RINGWISE_MAX, RINGWISE_WIRE_FULL, NULL, NULL), "RINGWISE_MAX");
  REFUSED(ringwise_all_reduce_wire(group, a, 1, F32, SUM, RINGWISE_WIRE_BFLOAT16, b, id),
          "residual is for RINGWISE_WIRE_INT8");
  REFUSED(ringwise_all_reduce_wire(group, a, 4, F32, SUM, RINGWISE_WIRE_INT8, a + 3, id),
          "buffer and residual share memory");
  REFUSED(ringwise_broadcast(group, a, 1, F32, 2, NULL), "root is not a rank of the group; expected 0 to 1, got 2");
  REFUSED(ringwise_reduce(group, a, 1, F32, SUM, 1, -1, NULL), "root is not a rank");
  REFUSED(ringwise_all_gather(group, a, a + 3, 4, NULL, F32, NULL), "input and output share memory");
  REFUSED(ringwise_all_gather(group, a, b, 2, counts, F32, NULL), "count is not this rank's in counts");
  REFUSED(ringwise_all_gather(group, a, b, SIZE_MAX, enormous, F32, NULL), "no memory holds that many elements");
  REFUSED(ringwise_scatter(group, NULL, b, 1, NULL, F32, self->rank, NULL), "input is NULL");
  REFUSED(ringwise_gather(group, a, NULL, 1, NULL, F32, self->rank, NULL), "output is NULL");
  REFUSED(ringwise_reduce_scatter(group, a, NULL, 1, NULL, F32, SUM, 1, NULL), "output is NULL");
  REFUSED(ringwise_all_to_all(group, a, b, 0, counts, NULL, F32, NULL), "expected both or neither");
  REFUSED(ringwise_all_to_all(group, a, b, 2, counts, counts, F32, NULL), "count must be 0 beside send_counts");
  REFUSED(ringwise_send(group, a, 1, F32, self->rank, 0, NULL), "is this rank itself");
  REFUSED(ringwise_send(group, a, 1, F32, RINGWISE_ANY_RANK, 0, NULL), "peer is not a rank");
  REFUSED(ringwise_recv(group, a, 1, F32, 1 - self->rank, -1, NULL, NULL), "tag is not usable");
  REFUSED(ringwise_group_abort(group, NULL), "reason is NULL");
  REFUSED(ringwise_wait(group, 12345), "there is no operation 12345");
  CHECK(operation == 0);
  CHECK(ringwise_barrier(NULL, NULL) == RINGWISE_INVALID);
  CHECK(ringwise_failed_ranks(group, NULL, 0) == 0);

  /* The group still works, because refused calls have no number in its sequence on any rank. */
  CHECK_OK(group, ringwise_all_gather(group, a, b, mine, counts, F32, id));
  CHECK_OK(group, ringwise_wait(group, operation));
  CHECK(b[0] == 1 && b[1] == 2 && b[2] == 3 && b[3] == 1);
  REFUSED(ringwise_wait(group, operation), "there is no operation");
  REFUSED(ringwise_test(group, operation), "there is no operation");
  leave(group);
}

static void error_text_body(struct rank* self) {
  ringwise_group* group = join(self, 0);
  char text[256] = "x", cut[8] = "xxxxxxx";
  CHECK(ringwise_error(group, text, sizeof text) == 0 && text[0] == 0);
  ringwise_all_reduce(group, NULL, 1, F32, SUM, 1, NULL);
  const size_t bytes = ringwise_error(group, text, sizeof text);
  CHECK(strcmp(text, "ringwise_all_reduce: buffer is NULL but has elements (rank 0 of 1).") == 0);
  CHECK(bytes == strlen(text));
  CHECK(ringwise_error(group, cut, sizeof cut) == bytes && strcmp(cut, "ringwis") == 0);
  CHECK(ringwise_error(group, NULL, 0) == bytes);
  CHECK(ringwise_error(NULL, text, sizeof text) == 0);
  leave(group);
}

/* -------------------------------------------------------------------------------------- failures of the whole group */

static void mismatch_body(struct rank* self) {
  ringwise_group* group = join(self, 0);
  float x[8] = {0};
  const int32_t both[] = {0, 1};
  CHECK_STATUS(group, ringwise_all_reduce(group, x, self->rank == 0 ? 3 : 4, F32, SUM, 1, NULL), RINGWISE_MISMATCH);
  const char* text = "rank 0 called allReduce sum 3 × float32 (seq 0) but rank 1 called allReduce sum 4";
  check_failed(group, RINGWISE_MISMATCH, text, 2, both);
  CHECK_OK(group, ringwise_group_close(group));
  ringwise_group_destroy(group);
}

static void killed_body(struct rank* self) {
  ringwise_group* group = join(self, 0);
  float x = 0;
  ringwise_operation pending;
  const int32_t one[] = {1};
  CHECK_OK(group, ringwise_barrier(group, NULL));
  if (self->rank == 1) raise(SIGKILL);
  const int64_t start = now_ms();
  CHECK_OK(group, ringwise_all_reduce(group, &x, 1, F32, SUM, 1, &pending));
  CHECK_STATUS(group, ringwise_broadcast(group, &x, 1, F32, 1, NULL), RINGWISE_PEER_LOST);
  CHECK(error_has(group, "ringwise_broadcast: lost rank 1"));
  CHECK_STATUS(group, ringwise_wait(group, pending), RINGWISE_PEER_LOST);
  CHECK(now_ms() - start < SOON_MS);
  check_failed(group, RINGWISE_PEER_LOST, "lost rank 1", 1, one);
  ringwise_group_destroy(group);
}

/* A rank is killed while blocking calls of the other ranks wait for it. */
static void killed_later_body(struct rank* self) {
  ringwise_group* group = join(self, 0);
  CHECK_OK(group, ringwise_barrier(group, NULL));
  if (self->rank == 0) {
    pause_ms(300);
    raise(SIGKILL);
  }
  const int32_t zero[] = {0};
  CHECK_STATUS(group, ringwise_barrier(group, NULL), RINGWISE_PEER_LOST);
  check_failed(group, RINGWISE_PEER_LOST, "lost rank 0", 1, zero);
  ringwise_group_destroy(group);
}

static void late_body(struct rank* self) {
  ringwise_group* group = join(self, 500);
  const int32_t two[] = {2};
  if (self->rank == 2) {
    float never = 0;
    while (ringwise_failed_ranks(group, NULL, 0) == 0) { /* until the other ranks have given up */
      ringwise_operation operation;
      pause_ms(50);
      CHECK_OK(group, ringwise_recv(group, &never, 1, F32, 0, 3, NULL, &operation));
      int status;
      while ((status = ringwise_test(group, operation)) == RINGWISE_PENDING) pause_ms(1);
      CHECK_STATUS(group, status, RINGWISE_TIMEOUT);
    }
  } else {
    const int64_t start = now_ms();
    CHECK_STATUS(group, ringwise_barrier(group, NULL), RINGWISE_TIMEOUT);
    CHECK(now_ms() - start >= 400 && now_ms() - start < SOON_MS);
    check_failed(group, RINGWISE_TIMEOUT, "rank 2 never entered barrier #0 within 500 ms; it has been in recv #0 for ",
                 1, two);
  }
  CHECK_OK(group, ringwise_group_close(group));
  ringwise_group_destroy(group);
}

static void abort_body(struct rank* self) {
  ringwise_group* group = join(self, 0);
  const int32_t zero[] = {0};
  float x = 0;
  ringwise_operation pending;
  if (self->rank == 0) {
    CHECK_OK(group, ringwise_recv(group, &x, 1, F32, 1, 0, NULL, &pending));
    CHECK_OK(group, ringwise_group_abort(group, "the loss is not a number"));
    CHECK_STATUS(group, ringwise_wait(group, pending), RINGWISE_ABORTED);
  } else {
    CHECK_STATUS(group, ringwise_barrier(group, NULL), RINGWISE_ABORTED);
  }
  check_failed(group, RINGWISE_ABORTED, "rank 0 aborted the group: the loss is not a number", 1, zero);
  ringwise_group_destroy(group);
}

static void* abort_soon(void* group) {
  pause_ms(200); /* by now the other thread most likely waits; the result must be the same if it does not */
  CHECK_OK(group, ringwise_group_abort(group, "the watchdog has had enough"));
  return NULL;
}

/* Another thread aborts the group while this one waits. */
static void watchdog_body(struct rank* self) {
  ringwise_group* group = join(self, 20000);
  const int64_t start = now_ms();
  ringwise_operation operation;
  if (self->rank == 0) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, abort_soon, group) != 0) abort();
    CHECK_OK(group, ringwise_barrier(group, &operation));
    CHECK_STATUS(group, ringwise_wait(group, operation), RINGWISE_ABORTED);
    pthread_join(thread, NULL);
  } else {
    while (now_ms() - start < SOON_MS && ringwise_failed_ranks(group, NULL, 0) == 0) {
      float never;
      CHECK_OK(group, ringwise_recv(group, &never, 1, F32, 0, 0, NULL, &operation));
      CHECK_STATUS(group, ringwise_wait(group, operation), RINGWISE_ABORTED);
    }
  }
  CHECK(now_ms() - start < SOON_MS);
  CHECK(error_has(group, "rank 0 aborted the group: the watchdog has had enough"));
  ringwise_group_destroy(group);
}

static void abort_and_go_body(struct rank* self) {
  ringwise_group* group = join(self, 0);
  if (self->rank == 2) {
    CHECK_OK(group, ringwise_group_abort(group, "no more data"));
  } else {
    CHECK_STATUS(group, ringwise_barrier(group, NULL), RINGWISE_ABORTED);
    CHECK(error_has(group, "rank 2 aborted the group: no more data"));
  }
  ringwise_group_destroy(group);
}

static void close_body(struct rank* self) {
  ringwise_group* group = join(self, 0);
  const int32_t one[] = {1};
  float x = 1;
  ringwise_operation pending, other;
  CHECK_OK(group, ringwise_all_reduce(group, &x, 1, F32, SUM, 1, &pending));
  if (self->rank == 1) {
    CHECK_OK(group, ringwise_group_close(group)); /* ends the pending operations first */
    CHECK_OK(group, ringwise_test(group, pending));
    CHECK(x == 2);
    CHECK_STATUS(group, ringwise_barrier(group, NULL), RINGWISE_CLOSED);
    CHECK(error_has(group, "this rank has closed the group"));
    CHECK_STATUS(group, ringwise_barrier(group, &other), RINGWISE_CLOSED);
    CHECK_STATUS(group, ringwise_group_close(group), RINGWISE_CLOSED);
  } else {
    CHECK_OK(group, ringwise_wait(group, pending));
    CHECK_STATUS(group, ringwise_barrier(group, NULL), RINGWISE_PEER_LOST);
    check_failed(group, RINGWISE_PEER_LOST, "rank 1 has closed the group, but rank 0 still needs it", 1, one);
  }
  ringwise_group_destroy(group);
}

/* ------------------------------------------------------------------------------------ groups that cannot be created */

static int no_exchange(void* user, const void* mine, size_t bytes, void* all) {
  (void)user, (void)mine, (void)bytes, (void)all;
  return 7;
}
static int garbage(void* user, const void* mine, size_t bytes, void* all) {
  (void)user, (void)mine;
  memset(all, 'x', bytes * 2);
  return 0;
}
static int only_mine(void* user, const void* mine, size_t bytes, void* all) {
  (void)user;
  memcpy(all, mine, bytes);
  memcpy((char*)all + bytes, mine, bytes);
  return 0;
}

static void check_not_created(ringwise_options options, int status, const char* text) {
  ringwise_group* group = NULL;
  float x = 0;
  CHECK_STATUS(group, ringwise_group_create(&options, &group), status);
  CHECK(group != NULL && error_has(group, text));
  CHECK_STATUS(group, ringwise_all_reduce(group, &x, 1, F32, SUM, 1, NULL), RINGWISE_INVALID);
  CHECK(error_has(group, "the group could not be created"));
  CHECK_STATUS(group, ringwise_group_close(group), RINGWISE_INVALID);
  CHECK_STATUS(group, ringwise_group_abort(group, ""), RINGWISE_INVALID);
  ringwise_group_destroy(group);
}

static void bad_options_body(struct rank* self) {
  const ringwise_options good = options_of(self, 1000);
  ringwise_options bad = good;
  bad.struct_size = 8;
  check_not_created(bad, RINGWISE_INVALID, "struct_size is not that of this library's ringwise_options");
  bad = good, bad.rank = 2, bad.size = 2;
  check_not_created(bad, RINGWISE_INVALID, "expected 0 <= rank < size, got rank 2, size 2");
  bad = good, bad.size = 0;
  check_not_created(bad, RINGWISE_INVALID, "expected 0 <= rank < size");
  bad = good, bad.timeout_ms = -1;
  check_not_created(bad, RINGWISE_INVALID, "timeout_ms is not usable");
  bad = good, bad.size = 2, bad.exchange = NULL;
  check_not_created(bad, RINGWISE_INVALID, "there is no exchange callback");
  bad = good, bad.listen_host = "not an address";
  check_not_created(bad, RINGWISE_INVALID, "listen_host is not a numeric IP address: \"not an address\"");
  const char* const wildcards[] = {"0.0.0.0", "0", "::", "::ffff:0.0.0.0"};
  for (int i = 0; i < 4; ++i) {
    bad = good, bad.listen_host = wildcards[i];
    check_not_created(bad, RINGWISE_INVALID, "listen_host names no address at which other ranks reach this one");
  }
  bad = good, bad.size = 2, bad.exchange = no_exchange;
  check_not_created(bad, RINGWISE_EXCHANGE, "the exchange callback failed; expected 0, got 7");
  bad.exchange = garbage;
  check_not_created(bad, RINGWISE_EXCHANGE, "bytes for rank 0 that are not a blob");
  bad.exchange = only_mine;
  check_not_created(bad, RINGWISE_EXCHANGE, "delivered the blob of rank 0 of 2 at index 1");
  CHECK(ringwise_group_create(&good, NULL) == RINGWISE_INVALID);
  ringwise_group* group = (ringwise_group*)&bad;
  CHECK(ringwise_group_create(NULL, &group) == RINGWISE_INVALID && group == NULL);
  ringwise_group_destroy(NULL);
}

/* An exchange callback that takes part in the exchange and then fails. */
static int exchange_and_give_up(void* user, const void* mine, size_t bytes, void* all) {
  exchange_by_parent(user, mine, bytes, all);
  return -1;
}

static void absent_body(struct rank* self) {
  ringwise_options options = options_of(self, 500);
  if (self->rank == 1) options.exchange = exchange_and_give_up;
  const int64_t start = now_ms();
  check_not_created(options, self->rank == 1 ? RINGWISE_EXCHANGE : RINGWISE_TIMEOUT,
                    self->rank == 1 ? "got -1" : "no connection with rank 1");
  CHECK(now_ms() - start < SOON_MS);
}

/* Moves this process to a network of its own, as if it were on another host. Returns whether that succeeded. Ranks 0
 * and 1 then cannot reach each other, because rank 0 listens on an address of its own host. */
static int on_own_host(void) { return unshare(CLONE_NEWNET) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0; }

static void unreachable_body(struct rank* self) {
  if (self->rank == 1) CHECK(on_own_host());
  const ringwise_options options = options_of(self, 20000);
  const int64_t start = now_ms();
  check_not_created(options, RINGWISE_INVALID, "rank 0 listens on 127.0.0.1, which only its own host reaches");
  CHECK(now_ms() - start < SOON_MS);
}

static int has_namespaces(void) {
  int status = 0;
  const pid_t pid = fork();
  if (pid == 0) _exit(on_own_host() ? 0 : 1);
  return waitpid(pid, &status, 0) == pid && status == 0;
}

int main(void) {
  run_ranks("refused arguments", 2, 0, refused_body);
  run_ranks("the error's text", 1, 0, error_text_body);
  run_ranks("ranks that disagree", 2, 0, mismatch_body);
  run_ranks("a rank that dies", 3, 1u << 1, killed_body);
  run_ranks("a rank that dies while it is waited for", 3, 1u << 0, killed_later_body);
  run_ranks("a rank that is late", 3, 0, late_body);
  run_ranks("a rank that aborts", 3, 0, abort_body);
  run_ranks("a rank that aborts while it waits", 2, 0, watchdog_body);
  for (int i = 0; i < 5; ++i) run_ranks("a rank that aborts and goes", 3, 0, abort_and_go_body);
  run_ranks("a rank that closes", 2, 0, close_body);
  run_ranks("options that are refused", 1, 0, bad_options_body);
  run_ranks("a rank that never connects", 2, 0, absent_body);
  if (has_namespaces())
    run_ranks("hosts that cannot reach each other", 2, 0, unreachable_body);
  else
    printf("there are no network namespaces here: not checked that hosts are told apart\n");
  printf("%s\n", failures == 0 ? "passed" : "FAILED");
  return failures == 0 ? 0 : 1;
}
