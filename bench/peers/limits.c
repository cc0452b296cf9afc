// Measures what this machine allows: a minimal all-reduce between two processes, by the rule of harness.h. It has no
// signatures, no deadlines, no third rank and only one type; both processes spin, each on its own core.
//   gcc -O3 -march=native -o limits limits.c
//   ./limits staged --min 4 --max 268435456     private buffers, data passes through shared memory
//   ./limits shared --min 4 --max 268435456     both buffers are in shared memory
//   ./limits hop                                passes a cache line between the cores; prints nanoseconds one way
//   ./limits posts                              reads 1 to 128 posts of 128 bytes, 512 bytes apart, that the other core
//                                               has just written; prints nanoseconds for all of them
// `staged` prints the fastest of its variants for each size: in one step (each rank publishes all and adds what the
// other published) or in two (each rank sums one half of every chunk and takes the other half's sum from the other
// rank), with plain and with streaming stores.
#define _GNU_SOURCE
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#if defined(__x86_64__)
#include <immintrin.h>
#define PAUSE() _mm_pause()
#else
#define PAUSE() __asm__ volatile("yield")
#endif

enum { SLOT_BYTES = 8 << 20, ONE_STEP_BYTES = 4 << 20, MAX_SAMPLES = 20000 };

// A counter with its own cache lines. 128 bytes, because cores fetch lines in pairs.
struct counter {
  _Alignas(128) _Atomic uint64_t value;
};
struct shared {
  // Each pair has one counter per rank: the largest number n of an operation or chunk of which the comment is true.
  struct counter ready[2];    // the rank's input of n is in its slot
  struct counter reduced[2];  // the sum of the rank's half of n is in its slot
  struct counter taken[2];    // the rank has read the other rank's slot of n
  struct counter met[2];      // the rank has reached meeting n, in maximum()
  double values[2][MAX_SAMPLES];
};
static struct shared* shared;
static float* slots[2][2];  // by rank, and by the parity of n
static float* vectors[2];   // the ranks' buffers, for the program `shared`
static uint64_t n_done;     // operations or chunks so far
static size_t chunk;        // floats in a chunk of two_step
static int streaming;       // whether to use streaming stores

static void reach(struct counter* counter, uint64_t n) {
  atomic_store_explicit(&counter->value, n, memory_order_release);
}
static void await(struct counter* counter, uint64_t n) {
  while (atomic_load_explicit(&counter->value, memory_order_acquire) < n) PAUSE();
}

// Sixteen floats: one register with AVX-512, several without.
typedef float wide __attribute__((vector_size(64), aligned(4)));
static inline void stream(float* to, wide value) {
#if defined(__AVX512F__)
  _mm512_stream_ps(to, (__m512)value);
#elif defined(__x86_64__)
  for (int i = 0; i < 4; i++) _mm_stream_ps(to + 4 * i, ((__m128*)&value)[i]);
#else
  *(wide*)to = value;
#endif
}
static void fence(void) {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}
static void copy(float* to, const float* from, size_t n) {
  size_t i = 0;
  if (!streaming) memcpy(to, from, n * sizeof(float)), i = n;
  for (; i + 16 <= n; i += 16) stream(to + i, *(const wide*)(from + i));
  for (; i < n; i++) to[i] = from[i];
  if (streaming) fence();
}
// Adds y to x, and writes the sum also to `also`.
static void add_to_both(float* x, const float* y, float* also, size_t n) {
  size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    wide sum = *(wide*)(x + i) + *(const wide*)(y + i);
    *(wide*)(x + i) = sum;
    if (streaming)
      stream(also + i, sum);
    else
      *(wide*)(also + i) = sum;
  }
  for (; i < n; i++) also[i] = x[i] += y[i];
  if (streaming) fence();
}

// Operation n + 2 may overwrite the slot of n: its writer has seen `ready` = n + 1 of the other rank, which therefore
// has finished n.
static void one_step(struct bench* b) {
  int me = b->rank, other = 1 - me;
  uint64_t n = ++n_done;
  copy(slots[me][n & 1], b->out, b->count);
  reach(&shared->ready[me], n);
  await(&shared->ready[other], n);
  const float* theirs = slots[other][n & 1];
  for (size_t i = 0; i < b->count; i++) b->out[i] += theirs[i];
}

// Returns where rank r's half of a piece of `length` floats begins, a multiple of 16 floats: streaming stores need
// whole cache lines.
static size_t half(size_t length, int r) { return r == 0 ? 0 : r == 1 ? length / 32 * 16 : length; }

static void two_step(struct bench* b) {
  int me = b->rank, other = 1 - me;
  const size_t second = SLOT_BYTES / sizeof(float) / 2, chunks = (b->count + chunk - 1) / chunk;
  for (size_t c = 0; c <= chunks; c++) {
    if (c < chunks) {
      uint64_t n = n_done + c + 1;
      float *x = b->out + c * chunk, *mine = slots[me][n & 1];
      size_t length = b->count - c * chunk < chunk ? b->count - c * chunk : chunk;
      if (n > 2) await(&shared->taken[other], n - 2);
      copy(mine, x + half(length, other), half(length, other + 1) - half(length, other));
      reach(&shared->ready[me], n);
      await(&shared->ready[other], n);
      add_to_both(x + half(length, me), slots[other][n & 1], mine + second, half(length, me + 1) - half(length, me));
      reach(&shared->reduced[me], n);
    }
    if (c > 0) {
      uint64_t n = n_done + c;
      float* x = b->out + (c - 1) * chunk;
      size_t length = b->count - (c - 1) * chunk < chunk ? b->count - (c - 1) * chunk : chunk;
      await(&shared->reduced[other], n);
      memcpy(x + half(length, other), slots[other][n & 1] + second,
             (half(length, other + 1) - half(length, other)) * sizeof(float));
      reach(&shared->taken[me], n);
    }
  }
  n_done += chunks;
}

static void in_shared_memory(struct bench* b) {
  int me = b->rank, other = 1 - me;
  uint64_t n = ++n_done;
  reach(&shared->ready[me], n);
  await(&shared->ready[other], n);
  size_t from = half(b->count, me);
  add_to_both(vectors[me] + from, vectors[other] + from, vectors[other] + from, half(b->count, me + 1) - from);
  reach(&shared->reduced[me], n);
  await(&shared->reduced[other], n);
}

static void maximum(struct bench* b, double* values, size_t n) {
  static uint64_t meetings;
  int me = b->rank, other = 1 - me;
  memcpy(shared->values[me], values, n * sizeof(double));
  reach(&shared->met[me], ++meetings);
  await(&shared->met[other], meetings);
  for (size_t i = 0; i < n; i++)
    if (shared->values[other][i] > values[i]) values[i] = shared->values[other][i];
  reach(&shared->met[me], ++meetings);
  await(&shared->met[other], meetings);
}

static void* map(size_t bytes) {
  void* memory = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) perror("limits: mmap"), exit(1);
  memset(memory, 0, bytes);
  return memory;
}

// Binds this process to a core: rank r to the r-th core that it may use.
static void pin(int rank) {
  cpu_set_t allowed, one;
  sched_getaffinity(0, sizeof allowed, &allowed);
  if (CPU_COUNT(&allowed) < 2) fprintf(stderr, "limits: two processes that spin need two cores\n"), exit(1);
  int cpu = 0;
  for (int left = rank; !CPU_ISSET(cpu, &allowed) || left-- > 0;) cpu++;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  sched_setaffinity(0, sizeof one, &one);
}

static struct timing timed(struct bench* b, double* wrong) {
  reach(&shared->taken[b->rank], n_done);  // one_step does not advance this counter
  *wrong += check(b);
  slowest(b, 0);  // barrier: a rank must not clear its buffer while the other still writes to it
  memset(b->out, 0, b->count * sizeof(float));
  slowest(b, 0);
  return measure(b);
}

static struct timing fastest_staged(struct bench* b, double* wrong) {
  struct timing best = {1e30, 0, 0};
  const size_t bytes = b->count * sizeof(float);
  for (streaming = 0; streaming <= (bytes >= 1024); streaming++) {
    // Sizes of a chunk in KiB; 0 means one_step.
    const size_t chunks[] = {0, 64, 256, 1024};
    for (int i = 0; i < 4; i++) {
      if (chunks[i] == 0 ? bytes > ONE_STEP_BYTES : bytes < 16384 || (chunks[i] > 64 && bytes < 1 << 20)) continue;
      chunk = chunks[i] * 1024 / sizeof(float);
      b->call = chunks[i] == 0 ? one_step : two_step;
      struct timing t = timed(b, wrong);
      if (t.p50_us < best.p50_us) best = t;
    }
  }
  return best;
}

static void hop(struct bench* b) {
  enum { TRIPS = 20000 };
  uint64_t from = ++n_done;
  double start = now_us();
  for (uint64_t n = from; n < from + TRIPS; n++) {
    if (b->rank == 1) await(&shared->ready[0], n);
    reach(&shared->ready[b->rank], n);
    if (b->rank == 0) await(&shared->ready[1], n);
  }
  if (b->rank == 0) printf("{\"hop_ns\":%.1f}\n", (now_us() - start) * 1000 / TRIPS / 2);
}

// One core writes posts, as the ranks of a host do for their calls, and the other one reads them all. So the time per
// post is what a rank of a host with a core for each rank pays for each further rank.
static void posts(struct bench* b) {
  enum { TRIPS = 2000, MOST = 128, STRIDE = 512 / sizeof(uint64_t) };
  static double ns[TRIPS];
  volatile uint64_t* memory = (volatile uint64_t*)slots[0][0];
  uint64_t n = n_done, sum = 0;
  for (int count = 1; count <= MOST; count *= 2) {
    for (int trip = 0; trip < TRIPS; trip++) {
      n++;
      if (b->rank == 0) {
        for (int i = 0; i < count; i++) memory[i * STRIDE] = n, memory[i * STRIDE + 8] = n;
        reach(&shared->ready[0], n);
        await(&shared->ready[1], n);
        continue;
      }
      await(&shared->ready[0], n);
      const double start = now_us();
      for (int i = 0; i < count; i++) sum += memory[i * STRIDE] + memory[i * STRIDE + 8];
      __asm__ volatile("" : : "r"(sum) : "memory");
      ns[trip] = (now_us() - start) * 1000;
      reach(&shared->ready[1], n);
    }
    if (b->rank == 0) continue;
    qsort(ns, TRIPS, sizeof *ns, by_value);
    printf("{\"posts\":%d,\"median_ns\":%.0f}\n", count, ns[TRIPS / 2]);
  }
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  const int is_shared = !strcmp(what, "shared"), is_hop = !strcmp(what, "hop"), is_posts = !strcmp(what, "posts");
  if (!is_shared && !is_hop && !is_posts && strcmp(what, "staged"))
    return fprintf(stderr, "limits: staged, shared, hop or posts\n"), 2;
  struct bench b = parse_bench(is_shared ? "limit-shared" : "limit-staged", argc - 1, argv + 1);
  if (b.verb != ALL_REDUCE) return 0;
  b.maximum = maximum;
  shared = (struct shared*)map(sizeof *shared);
  for (int i = 0; i < 4; i++) slots[i / 2][i % 2] = (float*)map(is_hop ? 4096 : SLOT_BYTES);
  for (int r = 0; r < 2; r++) vectors[r] = (float*)map(is_shared ? b.max : 4096);
  pid_t child = fork();
  b.rank = child == 0;
  pin(b.rank);
  if (is_hop) {
    hop(&b);
  } else if (is_posts) {
    posts(&b);
  } else {
    b.in = b.out = is_shared ? vectors[b.rank] : (float*)aligned_alloc(4096, (b.max + 4095) / 4096 * 4096);
    for (size_t bytes = b.min; bytes <= b.max; bytes *= b.factor) {
      b.count = bytes / sizeof(float);
      double wrong = 0;
      struct timing t;
      if (is_shared)
        b.call = in_shared_memory, streaming = 0, t = timed(&b, &wrong);
      else
        t = fastest_staged(&b, &wrong);
      wrong = slowest(&b, wrong);
      if (b.rank == 0) print_line(&b, bytes, t, wrong);
    }
  }
  fflush(stdout);
  if (child == 0) _exit(0);
  int status;
  waitpid(child, &status, 0);
  return status != 0;
}
