/* Tests every collective through the C ABI, blocking and not, and every dtype with every reduction. */
#define _POSIX_C_SOURCE 200809L
#include "c_api_calls.h"
#include "c_api_values.h"

static const size_t lengths[] = {0, 1, 3, 1000, 100003};
enum { LENGTHS = sizeof lengths / sizeof lengths[0] };

static void in_place_verbs(ringwise_group* group, struct rank* self, int form) {
  const int f32 = RINGWISE_FLOAT32, rank = self->rank, size = self->size;
  for (int l = 0; l < LENGTHS; ++l) {
    const size_t n = lengths[l];
    float* data = input_of(rank, 0, n);
    FINISHED(group, form, ringwise_all_reduce(group, data, n, f32, RINGWISE_SUM, 1, operation));
    CHECK(wrong(data, -1, size, 0, n) == 0);
    free(data);
    for (int wire = RINGWISE_WIRE_FULL; wire <= RINGWISE_WIRE_INT8; ++wire) {
      float* residual = wire == RINGWISE_WIRE_INT8 ? calloc(n + 1, sizeof *residual) : NULL;
      data = input_of(rank, 0, n);
      FINISHED(group, form, ringwise_all_reduce_wire(group, data, n, f32, RINGWISE_SUM, wire, residual, operation));
      CHECK(wrong(data, -1, size, 0, n) == 0);
      for (size_t i = 0; residual != NULL && i < n; ++i) CHECK(residual[i] == 0);
      free(residual);
      free(data);
    }
    for (int root = 0; root < size; ++root) {
      data = input_of(rank, 0, n);
      FINISHED(group, form, ringwise_broadcast(group, data, n, f32, root, operation));
      CHECK(wrong(data, root, size, 0, n) == 0);
      free(data);
      data = input_of(rank, 0, n);
      FINISHED(group, form, ringwise_reduce(group, data, n, f32, RINGWISE_SUM, 1, root, operation));
      CHECK(wrong(data, rank == root ? -1 : rank, size, 0, n) == 0);
      free(data);
    }
  }
  FINISHED(group, form, ringwise_barrier(group, operation));
}

/* Sets `counts` to `n` for each rank, or to different numbers around `n`. Returns where the part of `rank` begins. */
static size_t part(size_t* counts, int size, size_t n, int uneven, int rank) {
  size_t begin = 0;
  for (int r = 0; r < size; ++r) {
    counts[r] = uneven ? n / 2 * (size_t)(r % 3) + (size_t)r : n;
    if (r < rank) begin += counts[r];
  }
  return begin;
}

static void parted_verbs(ringwise_group* group, struct rank* self, int form, int uneven) {
  const int f32 = RINGWISE_FLOAT32, rank = self->rank, size = self->size;
  for (int l = 0; l < LENGTHS; ++l) {
    size_t counts[MAX_RANKS] = {0};
    const size_t begin = part(counts, size, lengths[l], uneven, rank), n = counts[rank];
    const size_t total = part(counts, size, lengths[l], uneven, size), *given = uneven ? counts : NULL;
    float *own = input_of(rank, begin, n), *all = input_of(rank, 0, total), *output = input_of(rank, 0, total);

    memset(output, 0xff, total * sizeof *output);
    FINISHED(group, form, ringwise_all_gather(group, own, output, n, given, f32, operation));
    for (int r = 0; r < size; ++r) {
      const size_t at = part(counts, size, lengths[l], uneven, r);
      CHECK(wrong(output + at, r, size, at, counts[r]) == 0);
    }
    memset(output, 0xff, total * sizeof *output);
    FINISHED(group, form, ringwise_reduce_scatter(group, all, output, n, given, f32, RINGWISE_SUM, 1, operation));
    CHECK(wrong(output, -1, size, begin, n) == 0);
    CHECK(wrong(all, rank, size, 0, total) == 0);

    for (int root = 0; root < size; ++root) {
      const int is_root = rank == root;
      memset(output, 0xff, total * sizeof *output);
      FINISHED(group, form, ringwise_gather(group, own, is_root ? output : NULL, n, given, f32, root, operation));
      for (int r = 0; is_root && r < size; ++r) {
        const size_t at = part(counts, size, lengths[l], uneven, r);
        CHECK(wrong(output + at, r, size, at, counts[r]) == 0);
      }
      memset(output, 0xff, total * sizeof *output);
      FINISHED(group, form, ringwise_scatter(group, is_root ? all : NULL, output, n, given, f32, root, operation));
      CHECK(wrong(output, root, size, begin, n) == 0);
    }
    free(own);
    free(all);
    free(output);
  }
}

static void all_to_all(ringwise_group* group, struct rank* self, int form, int uneven) {
  const int f32 = RINGWISE_FLOAT32, rank = self->rank, size = self->size;
  for (int l = 0; l < LENGTHS; ++l) {
    size_t sends[MAX_RANKS], receives[MAX_RANKS], n = lengths[l], sent = 0, received = 0;
    for (int r = 0; r < size; ++r) {
      sent += sends[r] = uneven ? n / 4 + (size_t)(rank * size + r) : n;
      received += receives[r] = uneven ? n / 4 + (size_t)(r * size + rank) : n;
    }
    float *input = input_of(rank, 0, sent), *output = malloc((received + 1) * sizeof *output);
    FINISHED(group, form,
             ringwise_all_to_all(group, input, output, uneven ? 0 : n, uneven ? sends : NULL, uneven ? receives : NULL,
                                 f32, operation));
    size_t at = 0;
    for (int r = 0; r < size; ++r) {
      size_t first = 0; /* where the input of rank r for this rank begins */
      for (int before = 0; before < rank; ++before) first += uneven ? n / 4 + (size_t)(r * size + before) : n;
      CHECK(wrong(output + at, r, size, first, receives[r]) == 0);
      at += receives[r];
    }
    free(input);
    free(output);
  }
}

static void verbs_body(struct rank* self) {
  ringwise_group* group = join(self, 0);
  FORMS(form) {
    in_place_verbs(group, self, form);
    for (int uneven = 0; uneven < 2; ++uneven) {
      parted_verbs(group, self, form, uneven);
      all_to_all(group, self, form, uneven);
    }
  }
  leave(group);
}

static double value_of(int dtype, int rank, size_t index) {
  /* float8_e5m2 has two bits of mantissa and cannot hold 11, which RINGWISE_PREMUL_SUM of 2, 3 and 1 gives. So all
   * ranks have 1, or all have 2. */
  const size_t number = dtype == RINGWISE_FLOAT8_E5M2 ? index % 2 : index + (size_t)rank;
  return dtype == RINGWISE_BOOL ? (double)(number % 2) : 1 + (double)(number % 3);
}

/* Returns the reduction of the values of all ranks at `index`; -1 if `op` is not defined for the dtype. */
static double reduced(int dtype, int op, int size, size_t index) {
  const int floating = dtype <= RINGWISE_BFLOAT16 || dtype >= RINGWISE_FLOAT8_E4M3FN, is_bool = dtype == RINGWISE_BOOL;
  double result = 0;
  for (int r = 0; r < size; ++r) {
    const double x = value_of(dtype, r, index);
    const int64_t a = (int64_t)result, b = (int64_t)x;
    if (r == 0)
      result = x; /* the factor of rank 0 is 1 */
    else if (op == RINGWISE_SUM || op == RINGWISE_AVG)
      result += x;
    else if (op == RINGWISE_PREMUL_SUM)
      result += x * (r + 1);
    else if (op == RINGWISE_PROD)
      result *= x;
    else if (op == RINGWISE_MIN)
      result = x < result ? x : result;
    else if (op == RINGWISE_MAX)
      result = x > result ? x : result;
    else if (op == RINGWISE_BAND)
      result = (double)(a & b);
    else if (op == RINGWISE_BOR)
      result = (double)(a | b);
    else
      result = (double)(a ^ b);
  }
  if (op == RINGWISE_AVG) return floating ? result / size : -1;
  if (op == RINGWISE_PREMUL_SUM) return floating ? result : -1;
  if (op >= RINGWISE_BAND && op <= RINGWISE_BXOR) return floating ? -1 : result;
  return is_bool && (op == RINGWISE_SUM || op == RINGWISE_PROD) ? -1 : result;
}

static void types_body(struct rank* self) {
  ringwise_group* group = join(self, 0);
  enum { N = 65 };
  for (int dtype = 0; dtype < DTYPES; ++dtype) {
    for (int op = 0; op < REDUCE_OPS; ++op) {
      double data[N]; /* large enough for any dtype */
      for (size_t i = 0; i < N; ++i) put(data, i, dtype, value_of(dtype, self->rank, i));
      const int status = ringwise_all_reduce(group, data, N, dtype, op, self->rank + 1, NULL);
      if (reduced(dtype, op, self->size, 0) < 0) {
        CHECK_STATUS(group, status, RINGWISE_INVALID);
        CHECK(error_has(group, "is not defined for"));
        continue;
      }
      CHECK_OK(group, status);
      int differences = 0;
      for (size_t i = 0; i < N; ++i) {
        const double error = get(data, i, dtype) - reduced(dtype, op, self->size, i);
        const double tolerance = op == RINGWISE_AVG ? 0.02 : 0; /* room for rounding */
        differences += error > tolerance || error < -tolerance;
      }
      if (differences > 0) fprintf(stderr, "  dtype %d, op %d:\n", dtype, op);
      CHECK(differences == 0);
    }
  }
  leave(group);
}

int main(void) {
  for (int size = 1; size <= MAX_RANKS; ++size) run_ranks("every verb, in every form", size, 0, verbs_body);
  for (int size = 1; size <= 3; ++size) run_ranks("every dtype and reduction", size, 0, types_body);
  printf("%s\n", failures == 0 ? "passed" : "FAILED");
  return failures == 0 ? 0 : 1;
}
