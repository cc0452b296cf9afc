/* ringwise: collective operations between processes, for any language that can call C.
 *
 * A group is `size` processes, its ranks, on one host or several. All ranks make the same collective calls in the same
 * order: all_reduce, broadcast, ... Between ranks of a host data travels through shared memory, between hosts by TCP.
 *
 * Blocking and started calls. The last argument of every verb is `operation`. If it is NULL, the call blocks until the
 * operation has ended and returns its status. Otherwise the call returns at once and sets *operation; ringwise_test or
 * ringwise_wait returns the status later, once. Until the operation has ended, the caller must keep the memory alive,
 * must not change what the operation reads, and must not touch what it writes. Arrays of counts are copied at once.
 *
 * Status. RINGWISE_OK is 0. Negative: only this call failed; it started nothing, and the group still works. Positive:
 * the group has failed, or is closed, for good. All ranks are told of a failure, and every pending and later call on
 * each of them returns the same status. The death of a process is noticed within a second, that of a host or its
 * network within some 15 seconds. ringwise_error returns the text.
 *
 * Threads. Any thread may call any function, but ringwise_group_destroy must be the last call on its group. Calls on
 * one group run one after another, and so do their operations: a blocking call delays the calls of other threads,
 * except ringwise_group_abort, ringwise_test (which then returns RINGWISE_PENDING), ringwise_error and
 * ringwise_failed_ranks. So threads that depend on each other's progress need separate groups, or must poll with
 * ringwise_test. Groups are independent of each other. A group does not survive fork(): create it in the process that
 * uses it.
 *
 * Trust. Two ranks that connect prove themselves by random tokens, which they have exchanged before (see
 * ringwise_exchange). So a process that can read the exchanged blobs can pose as a rank, and one that can change them
 * can redirect ranks. Data between hosts is not encrypted.
 */
#ifndef RINGWISE_H
#define RINGWISE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* The version of this header: major << 16 | minor. A program runs with a library of the same major version and at
 * least the program's minor version. A new minor version adds; a new major version changes or removes. */
#define RINGWISE_ABI_VERSION 0x00010002u

/* Returns the version of the library that is running. */
uint32_t ringwise_abi_version(void);

/* Returns whether the running library can serve a program that was written for `version`, its RINGWISE_ABI_VERSION. */
int ringwise_abi_fits(uint32_t version);

enum ringwise_status {
  RINGWISE_OK = 0,

  /* The group has failed. */
  RINGWISE_TIMEOUT = 1,   /* ranks did not answer in time */
  RINGWISE_PEER_LOST = 2, /* a rank has ended, or closed the group while others still needed it */
  RINGWISE_MISMATCH = 3,  /* ranks made different calls */
  RINGWISE_ABORTED = 4,   /* a rank called ringwise_group_abort */
  RINGWISE_CLOSED = 5,    /* this rank has closed the group */
  RINGWISE_SYSTEM = 6,    /* a system call failed */

  /* Only this call has failed. */
  RINGWISE_PENDING = -1,   /* ringwise_test: not ended yet; no error */
  RINGWISE_INVALID = -2,   /* an argument was refused */
  RINGWISE_NO_MEMORY = -3, /* out of memory */
  RINGWISE_EXCHANGE = -4   /* the exchange callback failed, or did not deliver the ranks' blobs */
};

/* Element types; bool is a byte that is 0 or 1. */
enum ringwise_dtype {
  RINGWISE_FLOAT32 = 0,
  RINGWISE_FLOAT64 = 1,
  RINGWISE_FLOAT16 = 2,
  RINGWISE_BFLOAT16 = 3,
  RINGWISE_INT8 = 4,
  RINGWISE_INT16 = 5,
  RINGWISE_INT32 = 6,
  RINGWISE_INT64 = 7,
  RINGWISE_UINT8 = 8,
  RINGWISE_UINT16 = 9,
  RINGWISE_UINT32 = 10,
  RINGWISE_UINT64 = 11,
  RINGWISE_BOOL = 12,
  RINGWISE_FLOAT8_E4M3FN = 13, /* since 1.2, as the next */
  RINGWISE_FLOAT8_E5M2 = 14
};

/* Reductions. avg and premul_sum are for floating types, the bitwise ones for integers and bool, sum and prod for all
 * types but bool, min and max for all types. Floats of 16 and 8 bits are accumulated in float32. Results too large for
 * an 8-bit float become its largest number. Integers wrap. min and max return NaN when either side is NaN. The result
 * is bitwise equal on all ranks. */
enum ringwise_reduce_op {
  RINGWISE_SUM = 0,
  RINGWISE_AVG = 1,
  RINGWISE_PROD = 2,
  RINGWISE_MIN = 3,
  RINGWISE_MAX = 4,
  RINGWISE_BAND = 5,
  RINGWISE_BOR = 6,
  RINGWISE_BXOR = 7,
  RINGWISE_PREMUL_SUM = 8 /* the sum of factor × buffer; every rank has a factor of its own */
};

/* The form in which an all-reduce sends values between hosts: unchanged; rounded to bfloat16, half of the bytes; or
 * rounded to int8 in blocks of 32 values that share a power of two as their scale, a quarter of the bytes. A block of
 * int8 with a NaN, an infinity or a magnitude of at least 127.5 · 2^121 arrives as 32 NaN. Since 1.1. */
enum ringwise_wire { RINGWISE_WIRE_FULL = 0, RINGWISE_WIRE_BFLOAT16 = 1, RINGWISE_WIRE_INT8 = 2 };

/* Receives from the rank that sends first. */
#define RINGWISE_ANY_RANK (-1)

/* One rank's end of a group. */
typedef struct ringwise_group ringwise_group;

/* An operation that was started and has not been reported by ringwise_test or ringwise_wait; never 0. */
typedef uint64_t ringwise_operation;

/* Exchanges blobs between the ranks while a group is created, like MPI_Allgather: every rank contributes the same
 * number of bytes, and `all` receives size × bytes, the blobs of all ranks in rank order. The library calls it once, on
 * the thread that creates the group, and not for a group of one. It may block, but must apply a timeout of its own.
 * Returns 0 on success. Must not throw. The blobs hold the ranks' addresses and tokens: see Trust above. */
typedef int (*ringwise_exchange)(void* user, const void* mine, size_t bytes, void* all);

typedef struct ringwise_options {
  size_t struct_size; /* sizeof(ringwise_options) */
  int32_t rank;       /* 0 to size - 1 */
  int32_t size;       /* at least 1 */
  int64_t timeout_ms; /* of the creation, and of every operation from its call; 0 means 300000 */
  /* Numeric IP address at which ranks of other hosts reach this one; 0.0.0.0 and :: are refused. NULL: 127.0.0.1, for
   * ranks of one host. Ranks of one host find each other whatever it says: they have the same kernel and the same
   * network namespace. */
  const char* listen_host;
  ringwise_exchange exchange;
  void* user; /* passed to exchange */
} ringwise_options;

/* Creates this rank's end of a group. All ranks call it, and it blocks until all are connected. On failure *group is
 * also set, if memory allows: read the error text from it, then destroy it; verbs refuse it. `options` need not outlive
 * the call. */
int ringwise_group_create(const ringwise_options* options, ringwise_group** group);

/* Waits until all pending operations have ended, then says goodbye to the other ranks. Not collective: an operation of
 * another rank that needs this one afterwards fails, with an error that this rank has closed the group. Later calls
 * return RINGWISE_CLOSED. Returns RINGWISE_MISMATCH if ranks disagreed, for example about a root, and no earlier call
 * of this rank reported it: a rank that only sends does not wait for the others' signatures. */
int ringwise_group_close(ringwise_group* group);

/* Fails all pending and later operations, on all ranks, with RINGWISE_ABORTED and `reason` in the text. Does not block;
 * a later ringwise_group_destroy waits until the other ranks are told. Ends a ringwise_wait of another thread. Cannot
 * interrupt a verb that blocks in another thread of this rank; the abort takes effect after that verb. */
int ringwise_group_abort(ringwise_group* group, const char* reason);

/* Frees the group; NULL is allowed. The other ranks see this rank as lost, unless ringwise_group_close was called
 * first. Pending operations never end, but their memory is no longer used when this returns. */
void ringwise_group_destroy(ringwise_group* group);

/* Copies the error text of the last failed call on the group, on any thread, as UTF-8, cut to `capacity` bytes with the
 * final 0. Returns the length of the whole text in bytes, without the 0; 0 if no call has failed. */
size_t ringwise_error(const ringwise_group* group, char* text, size_t capacity);

/* Copies the ranks that the group's failure is about (lost, late, disagreeing, or the one that aborted), at most
 * `capacity`. Returns the number of all of them, 0 if no call has returned a failure yet. */
size_t ringwise_failed_ranks(const ringwise_group* group, int32_t* ranks, size_t capacity);

/* Returns the status of the operation, or RINGWISE_PENDING while it has not ended. The status can be read once. Does
 * not block. */
int ringwise_test(ringwise_group* group, ringwise_operation operation);

/* Blocks until the operation has ended, and returns its status, which can be read once. */
int ringwise_wait(ringwise_group* group, ringwise_operation operation);

/* Sets *memory to zeroed memory for buffers of this group, aligned to 4096 bytes. If all ranks are on one host, they
 * access large buffers in it in place, without copies. Otherwise, or where a rank may not map that much address space,
 * it is ordinary memory. It is freed with the group at the latest. */
int ringwise_alloc(ringwise_group* group, size_t bytes, void** memory);

/* Frees memory of ringwise_alloc, which no operation may be using. NULL is allowed. */
int ringwise_free(ringwise_group* group, void* memory);

/* The verbs. `dtype` is a ringwise_dtype, `op` a ringwise_reduce_op, `factor` is used by RINGWISE_PREMUL_SUM only,
 * `root` is a rank. Counts are elements, not bytes. Two buffers of one call must not overlap. If `counts` is not NULL,
 * it has `size` entries, equal on all ranks: the lengths of the ranks' parts, which follow each other in rank order;
 * `count` must be counts[rank]. If it is NULL, every part has `count` elements. */

/* All-reduce: buffer = the reduction of all ranks' buffers, on every rank. */
int ringwise_all_reduce(ringwise_group* group, void* buffer, size_t count, int dtype, int op, double factor,
                        ringwise_operation* operation);

/* All-reduce with a choice of `wire` (a ringwise_wire), for RINGWISE_SUM and RINGWISE_AVG. A wire other than the full
 * one is for RINGWISE_FLOAT32: every rank's values (or the sums of a host's ranks) are rounded before they leave the
 * host, and so is the result; all ranks get the same bits. `residual` is for RINGWISE_WIRE_INT8 and may be NULL: an
 * array of `count` elements, initially zeros, that belongs to one buffer which is reduced repeatedly. It is added to
 * the values before rounding and then holds the loss of the rounding; the rules for the buffer's memory apply to it
 * too. In a group on one host nothing is rounded and the residual does not change. Since 1.1. */
int ringwise_all_reduce_wire(ringwise_group* group, void* buffer, size_t count, int dtype, int op, int wire,
                             float* residual, ringwise_operation* operation);

/* Reduce: buffer = the reduction of all ranks' buffers, on `root` only; the other ranks' buffers do not change. */
int ringwise_reduce(ringwise_group* group, void* buffer, size_t count, int dtype, int op, double factor, int root,
                    ringwise_operation* operation);

/* Broadcast: buffer = root's buffer, on every rank. */
int ringwise_broadcast(ringwise_group* group, void* buffer, size_t count, int dtype, int root,
                       ringwise_operation* operation);

/* All-gather: output = all ranks' inputs, on every rank. `count` is that of this rank's input. */
int ringwise_all_gather(ringwise_group* group, const void* input, void* output, size_t count, const size_t* counts,
                        int dtype, ringwise_operation* operation);

/* Gather: output = all ranks' inputs, on `root` only; other ranks do not use `output`, which may be NULL. `count` is
 * that of this rank's input. */
int ringwise_gather(ringwise_group* group, const void* input, void* output, size_t count, const size_t* counts,
                    int dtype, int root, ringwise_operation* operation);

/* Scatter: output = this rank's part of root's input. `count` is that of this rank's output. Only the root uses
 * `input`. */
int ringwise_scatter(ringwise_group* group, const void* input, void* output, size_t count, const size_t* counts,
                     int dtype, int root, ringwise_operation* operation);

/* Reduce-scatter: output = this rank's part of the reduction of all ranks' inputs. `count` is that of this rank's
 * output. */
int ringwise_reduce_scatter(ringwise_group* group, const void* input, void* output, size_t count, const size_t* counts,
                            int dtype, int op, double factor, ringwise_operation* operation);

/* All-to-all: part r of `input` is sent to rank r and becomes the part of its `output` that belongs to this rank. Even
 * parts have `count` elements each, and both arrays are NULL. With uneven parts, this rank sends send_counts[r]
 * elements to rank r and receives recv_counts[r] from it, which must be the number that rank r sends; `count` is 0. */
int ringwise_all_to_all(ringwise_group* group, const void* input, void* output, size_t count, const size_t* send_counts,
                        const size_t* recv_counts, int dtype, ringwise_operation* operation);

/* Barrier: ends on each rank after all ranks have called it. */
int ringwise_barrier(ringwise_group* group, ringwise_operation* operation);

/* Sends one message from this rank to `peer`, another rank. Messages with equal tags (0 to 2147483647) arrive in the
 * order of their sends. count and dtype must equal the receiver's. Independent of the collectives. Ends when `data` may
 * be changed, which may be before the message is received. */
int ringwise_send(ringwise_group* group, const void* data, size_t count, int dtype, int peer, int tag,
                  ringwise_operation* operation);

/* Receives the next message with that tag from `peer`, or from any rank with RINGWISE_ANY_RANK. `source`, if not NULL,
 * is set to the sender when the operation is reported as successful, and must live as long as `data`. */
int ringwise_recv(ringwise_group* group, void* data, size_t count, int dtype, int peer, int tag, int32_t* source,
                  ringwise_operation* operation);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
