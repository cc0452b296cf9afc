/* Every rank contributes an array and gets the sum of all arrays. This is the same program as
 * ../from-python/all_reduce.py, and ranks of both can be in one group.
 *
 *   built=native/npm/capi-linux-x64
 *   cc -std=c11 -I$built examples/from-c/all_reduce.c -L$built -lringwise -o all_reduce
 *   export LD_LIBRARY_PATH=$PWD/$built
 *   mkdir -m 700 job; ./all_reduce 0 2 job & ./all_reduce 1 2 job      arguments: RANK SIZE FOLDER
 *
 * Claim: the sum of all ranks' arrays arrives on every rank.
 */
#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <ringwise.h>

enum { COUNT = 1 << 20 };

struct job {
  int rank, size;
  const char* folder;
};

/* Exchanges blobs of `bytes` bytes between the ranks through files in the job's folder, each named after its rank.
 * Writes this rank's blob `mine`, waits for those of the others, and stores all blobs in rank order in `all`. Returns 0
 * on success. */
static int by_directory(void* user, const void* mine, size_t bytes, void* all) {
  const struct job* job = user;
  char path[4096], finished[4096];
  snprintf(path, sizeof path, "%s/%d.new", job->folder, job->rank);
  snprintf(finished, sizeof finished, "%s/%d", job->folder, job->rank);
  const int file = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
  if (file < 0) return 1;
  const int written = write(file, mine, bytes) == (ssize_t)bytes;
  if (close(file) != 0 || !written || rename(path, finished) != 0) return 2;
  for (int other = 0; other < job->size; ++other) {
    snprintf(path, sizeof path, "%s/%d", job->folder, other);
    int fd = open(path, O_RDONLY);
    for (int tries = 0; fd < 0 && tries < 12000; ++tries) { /* waits up to a minute */
      nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
      fd = open(path, O_RDONLY);
    }
    if (fd < 0) return 3;
    const int whole = read(fd, (char*)all + bytes * (size_t)other, bytes) == (ssize_t)bytes;
    if (close(fd) != 0 || !whole) return 4;
  }
  return 0;
}

static void check(ringwise_group* group, int status) {
  if (status == RINGWISE_OK) return;
  char text[4096];
  ringwise_error(group, text, sizeof text);
  fprintf(stderr, "%s\n", text);
  exit(1);
}

int main(int argc, char** argv) {
  if (argc != 4 || !ringwise_abi_fits(RINGWISE_ABI_VERSION)) {
    fprintf(stderr, argc != 4 ? "usage: all_reduce RANK SIZE FOLDER\n" : "libringwise has another version\n");
    return 2;
  }
  struct job job = {atoi(argv[1]), atoi(argv[2]), argv[3]};
  const ringwise_options options = {
      .struct_size = sizeof options, .rank = job.rank, .size = job.size, .exchange = by_directory, .user = &job};
  ringwise_group* group = NULL;
  const int status = ringwise_group_create(&options, &group); /* sets group also where it fails, for the error's text */
  check(group, status);

  static float x[COUNT];
  for (int i = 0; i < COUNT; ++i) x[i] = (float)(i % 1000 + job.rank);
  ringwise_operation operation;
  check(group, ringwise_all_reduce(group, x, COUNT, RINGWISE_FLOAT32, RINGWISE_SUM, 1, &operation));
  check(group, ringwise_wait(group, operation));
  for (int i = 0; i < COUNT; ++i) {
    const float expected = (float)(i % 1000 * job.size + job.size * (job.size - 1) / 2);
    if (x[i] == expected) continue;
    fprintf(stderr, "element %d: expected %g, got %g\n", i, expected, x[i]);
    return 1;
  }
  int32_t has_torch = 0; /* Python ranks reduce whether all ranks have PyTorch, so this rank must take part */
  check(group, ringwise_all_reduce(group, &has_torch, 1, RINGWISE_INT32, RINGWISE_MIN, 1, NULL));

  check(group, ringwise_group_close(group));
  ringwise_group_destroy(group);
  printf("rank %d of %d has the sum of %d C arrays\n", job.rank, job.size, job.size);
  return 0;
}
