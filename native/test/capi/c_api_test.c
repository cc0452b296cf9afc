/* Tests the C ABI from a C11 program: its version, messages, threads, memory, and several groups in a process. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>

#include "c_api_calls.h"

static void messages_body(struct rank* self) {
  ringwise_group* group = join(self, 0);
  const int f32 = RINGWISE_FLOAT32, rank = self->rank, size = self->size;
  const size_t n = 1000003; /* more than a link holds */
  const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
  float *out = input_of(rank, 0, n), *in = malloc(n * sizeof *in);
  ringwise_operation sending, receiving;
  int32_t source = -7;

  /* All ranks send around the ring at once. Blocking calls could not do that. */
  CHECK_OK(group, ringwise_send(group, out, n, f32, next, 0, &sending));
  CHECK_OK(group, ringwise_recv(group, in, n, f32, previous, 0, &source, &receiving));
  CHECK(source == -7);
  CHECK_OK(group, ringwise_wait(group, receiving));
  CHECK_OK(group, ringwise_wait(group, sending));
  CHECK(source == previous);
  CHECK(wrong(in, previous, size, 0, n) == 0);

  /* Blocking messages. The message that is sent second is received first, by its tag. */
  if (rank == 0) {
    CHECK_OK(group, ringwise_send(group, out, 10, f32, 1, 5, NULL));
    CHECK_OK(group, ringwise_send(group, out + 1, 20, f32, 1, 2147483647, NULL));
  } else if (rank == 1) {
    CHECK_OK(group, ringwise_recv(group, in, 20, f32, 0, 2147483647, NULL, NULL));
    CHECK(wrong(in, 0, size, 1, 20) == 0);
    CHECK_OK(group, ringwise_recv(group, in, 10, f32, RINGWISE_ANY_RANK, 5, &source, NULL));
    CHECK(wrong(in, 0, size, 0, 10) == 0 && source == 0);
  }

  /* Receives from any rank, between collectives. */
  if (rank == 0) {
    int seen[MAX_RANKS] = {0};
    for (int i = 1; i < size; ++i) {
      CHECK_OK(group, ringwise_recv(group, in, 100, f32, RINGWISE_ANY_RANK, 9, &source, &receiving));
      if (i == 1) CHECK_OK(group, ringwise_barrier(group, NULL));
      CHECK_OK(group, ringwise_wait(group, receiving));
      CHECK(source > 0 && source < size && ++seen[source] == 1);
      CHECK(wrong(in, source, size, 0, 100) == 0);
    }
  } else {
    CHECK_OK(group, ringwise_barrier(group, NULL));
    CHECK_OK(group, ringwise_send(group, out, 100, f32, 0, 9, NULL));
  }
  free(in);
  free(out);
  leave(group);
}

struct thread {
  ringwise_group* group;
  int peer, tag;
};

/* Sends numbers to the thread of the same tag on the other rank, and receives its numbers. It must not block, because
 * the other threads need the group too. */
static void* converse(void* argument) {
  const struct thread* thread = argument;
  const int peer = thread->peer, tag = thread->tag;
  ringwise_group* group = thread->group;
  for (int32_t i = 0; i < 200; ++i) {
    int32_t mine = i * 100 + tag, theirs = -1;
    ringwise_operation sending, receiving;
    CHECK_OK(group, ringwise_recv(group, &theirs, 1, RINGWISE_INT32, peer, tag, NULL, &receiving));
    CHECK_OK(group, ringwise_send(group, &mine, 1, RINGWISE_INT32, peer, tag, &sending));
    CHECK_OK(group, finish(group, RINGWISE_OK, 2, sending));
    CHECK_OK(group, finish(group, RINGWISE_OK, 2, receiving));
    CHECK(theirs == mine);
  }
  return NULL;
}

static void threads_body(struct rank* self) {
  enum { THREADS = 3 };
  ringwise_group* group = join(self, 0);
  pthread_t ids[THREADS];
  struct thread threads[THREADS];
  for (int t = 0; t < THREADS; ++t) {
    threads[t] = (struct thread){group, 1 - self->rank, t};
    if (pthread_create(&ids[t], NULL, converse, &threads[t]) != 0) abort();
  }
  for (int i = 0; i < 50; ++i) {
    int64_t sum = self->rank;
    /* This call blocks, but ends without the other threads. */
    CHECK_OK(group, ringwise_all_reduce(group, &sum, 1, RINGWISE_INT64, RINGWISE_SUM, 1, NULL));
    CHECK(sum == 1);
  }
  for (int t = 0; t < THREADS; ++t) pthread_join(ids[t], NULL);
  leave(group);
}

/* Tests buffers from the library, which the ranks of a host access in place. */
static void alloc_body(struct rank* self) {
  ringwise_group* group = join(self, 0);
  enum { N = 300001 };
  for (int round = 0; round < 3; ++round) {
    void *block = NULL, *b = NULL;
    CHECK_OK(group, ringwise_alloc(group, N * sizeof(float), &block));
    CHECK_OK(group, ringwise_alloc(group, 0, &b));
    CHECK(block != NULL && b != NULL && (uintptr_t)block % 4096 == 0 && (uintptr_t)b % 4096 == 0);
    float* a = block;
    int zeros = 0;
    for (size_t i = 0; i < N; ++i) {
      zeros += a[i] == 0;
      a[i] = input_at(self->rank, i);
    }
    CHECK(zeros == N);
    CHECK_OK(group, ringwise_all_reduce(group, a, N, RINGWISE_FLOAT32, RINGWISE_SUM, 1, NULL));
    CHECK(wrong(a, -1, self->size, 0, N) == 0);
    CHECK_OK(group, ringwise_free(group, b));
    CHECK_STATUS(group, ringwise_free(group, b), RINGWISE_INVALID);
    if (round > 0) CHECK_OK(group, ringwise_free(group, a)); /* the first buffer is freed with the group */
  }
  void* nothing = NULL;
  CHECK_STATUS(group, ringwise_alloc(group, SIZE_MAX, &nothing), RINGWISE_NO_MEMORY);
  /* More memory than the host has. In a group of one rank, the C library's allocator reports that in its own way. */
  if (self->size > 1) CHECK_STATUS(group, ringwise_alloc(group, SIZE_MAX / 4, &nothing), RINGWISE_NO_MEMORY);
  CHECK(nothing == NULL);
  CHECK_OK(group, ringwise_free(group, NULL));
  leave(group);
}

/* Tests several groups in one process at the same time, with many pending operations in each. */
static void groups_body(struct rank* self) {
  enum { GROUPS = 3, OPERATIONS = 50 };
  ringwise_group* groups[GROUPS];
  ringwise_operation operations[GROUPS][OPERATIONS];
  int32_t sums[GROUPS][OPERATIONS];
  for (int g = 0; g < GROUPS; ++g) groups[g] = join(self, 0);
  for (int g = 0; g < GROUPS; ++g) {
    for (int i = 0; i < OPERATIONS; ++i) {
      int32_t* sum = &sums[g][i];
      *sum = i * GROUPS + g;
      CHECK_OK(groups[g], ringwise_all_reduce(groups[g], sum, 1, RINGWISE_INT32, RINGWISE_SUM, 1, &operations[g][i]));
    }
  }
  for (int i = OPERATIONS - 1; i >= 0; --i) {
    for (int g = 0; g < GROUPS; ++g) {
      CHECK_OK(groups[g], ringwise_wait(groups[g], operations[g][i]));
      CHECK(sums[g][i] == self->size * (i * GROUPS + g));
    }
  }
  for (int g = 0; g < GROUPS; ++g) leave(groups[g]);
}

int main(void) {
  if (ringwise_abi_version() != RINGWISE_ABI_VERSION || !ringwise_abi_fits(RINGWISE_ABI_VERSION)) return 2;
  if (ringwise_abi_fits(RINGWISE_ABI_VERSION + 1) || ringwise_abi_fits(0x00020000u) || ringwise_abi_fits(0)) return 3;
  for (int size = 2; size <= MAX_RANKS; ++size) run_ranks("messages", size, 0, messages_body);
  for (int size = 1; size <= 3; ++size) run_ranks("memory of the group", size, 0, alloc_body);
  run_ranks("threads that share a group", 2, 0, threads_body);
  run_ranks("groups side by side", 3, 0, groups_body);
  printf("%s\n", failures == 0 ? "passed" : "FAILED");
  return failures == 0 ? 0 : 1;
}
