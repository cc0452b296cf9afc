/* ringwise: collective operations between processes, for any language that can call C.
 *
 * A group is `size` processes, its ranks, on one host or several. All ranks make the same collective calls in the same
 * order: all_reduce, broadcast, ... Between ranks of a host data travels through shared memory, between hosts by TCP.
 *
 * Both forms. Every verb ends with `operation`. NULL: the call blocks until the operation has ended, and returns its
 * status. Otherwise the call returns at once, *operation names what it started, and ringwise_test or ringwise_wait
 * tells its status, once. From the call until then memory that the operation reads must not change, and memory that it
 * writes must not be touched; it is the caller's, and must live that long. Arrays of counts are copied at once.
 *
 * Status. RINGWISE_OK is 0. Negative: only this call failed, nothing was started, the group goes on. Positive: the
 * group has failed or is closed, for good; a failure is told to all ranks, and every pending and later call on each of
 * them returns the same. A rank that dies is noticed within a second. ringwise_error has the sentence.
 *
 * Threads. Any thread may call any function, except that ringwise_group_destroy is the last call on its group. The
 * calls on one group run one after the other, and operations in that order: a call that blocks holds up those of other
 * threads, except ringwise_group_abort, ringwise_test (which then says RINGWISE_PENDING), ringwise_error and
 * ringwise_failed_ranks. So threads that depend on each other's progress have groups of their own, or ask by
 * ringwise_test. Groups are independent of each other. A group does not survive fork(): create it in the process that
 * uses it.
 *
 * Trust. Ranks connect with ranks only: each shows the other a random token that the exchange has told that one (see
 * ringwise_exchange). So whoever can read the exchanged blobs can pose as a rank, and whoever can change them can send
 * ranks elsewhere. Data travels between hosts in the clear.
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
 * but bool, min and max for all. Floats of 16 and 8 bits are accumulated in float32, and what is
 * too large for one of 8 bits becomes its largest number; integers wrap; min and max give NaN
 * when either side is NaN. The result is bitwise equal on all ranks. */
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

/* What an all-reduce sends between hosts: the values; rounded to bfloat16, half of the bytes; or in blocks of 32 bytes
 * with a power of two as their scale, a quarter, where a block with a NaN or an infinity arrives as 32 NaN. Since 1.1.
 * */
enum ringwise_wire { RINGWISE_WIRE_FULL = 0, RINGWISE_WIRE_BFLOAT16 = 1, RINGWISE_WIRE_INT8 = 2 };

/* Receives from the rank that sends first. */
#define RINGWISE_ANY_RANK (-1)

/* One rank's end of a group. */
typedef struct ringwise_group ringwise_group;

/* An operation that was started and has not been reported by ringwise_test or ringwise_wait; never 0. */
typedef uint64_t ringwise_operation;

/* Carries blobs between the ranks while a group is created, as MPI_Allgather would: every rank contributes the same
 * number of bytes, and `all` gets those of all ranks in the order of the ranks, size × bytes. Called once on the thread
 * that creates the group, not at all for a group of one; it may block, and has to end by itself. Returns 0, or anything
 * else when it failed. Must not throw. The blobs hold the ranks' addresses and tokens: see Trust above. */
typedef int (*ringwise_exchange)(void* user, const void* mine, size_t bytes, void* all);

typedef struct ringwise_options {
  size_t struct_size; /* sizeof(ringwise_options) */
  int32_t rank;       /* 0 to size - 1 */
  int32_t size;       /* at least 1 */
  int64_t timeout_ms; /* of the creation, and of every operation from its call; 0: 300000 */
  /* Numeric IP address at which ranks of other hosts reach this one. NULL: 127.0.0.1, for ranks of one host. Ranks of
   * one host find each other whatever it says: they have the same kernel and the same network namespace. */
  const char* listen_host;
  ringwise_exchange exchange;
  void* user; /* passed to exchange */
} ringwise_options;

/* Creates this rank's end of a group; all ranks call it, and it blocks until all have met. On failure *group is set
 * all the same, if memory allows: ask it for the text, then destroy it; verbs refuse it. `options` need not outlive
 * the call. */
int ringwise_group_create(const ringwise_options* options, ringwise_group** group);

/* Waits until everything pending has ended, then says goodbye to the other ranks. Not collective: who still needs this
 * rank afterwards is told that it has closed the group. Later calls return RINGWISE_CLOSED. RINGWISE_MISMATCH where
 * ranks have disagreed, about a root for example, and no call of this rank has told so: a rank that only sends waits
 * for nobody. */
int ringwise_group_close(ringwise_group* group);

/* Fails everything pending and everything later, on all ranks, with RINGWISE_ABORTED and `reason` in the text. Does not
 * block; ringwise_group_destroy after it waits until the others are told. It ends a ringwise_wait of another thread; a
 * verb that blocks in another thread of this rank it cannot interrupt, and waits for it. */
int ringwise_group_abort(ringwise_group* group, const char* reason);

/* Frees the group; NULL is fine. To the other ranks this rank is lost, unless ringwise_group_close came first. What is
 * pending never ends; its memory is no longer used when this returns. */
void ringwise_group_destroy(ringwise_group* group);

/* Copies the sentence about the last call on the group that failed, on any thread, cut to `capacity` bytes with its
 * final 0. Returns its length in bytes without the 0, 0 if none has failed. UTF-8. */
size_t ringwise_error(const ringwise_group* group, char* text, size_t capacity);

/* Copies the ranks that the group's failure is about (lost, late, disagreeing, the one that aborted), at most
 * `capacity`. Returns how many there are, 0 while no call has returned a failure. */
size_t ringwise_failed_ranks(const ringwise_group* group, int32_t* ranks, size_t capacity);

/* Returns the status of the operation, or RINGWISE_PENDING while it has not ended. The status can be read once. Does
 * not block. */
int ringwise_test(ringwise_group* group, ringwise_operation operation);

/* Blocks until the operation has ended, and returns its status, which can be read once. */
int ringwise_wait(ringwise_group* group, ringwise_operation operation);

/* *memory = zeroed memory for buffers of this group, at a multiple of 4096 bytes. Where all ranks are on one host they
 * work on it in place, without copies; elsewhere it is like any other. It goes with the group at the latest. */
int ringwise_alloc(ringwise_group* group, size_t bytes, void** memory);

/* Frees memory of ringwise_alloc, which no operation may be using. NULL is allowed. */
int ringwise_free(ringwise_group* group, void* memory);

/* The verbs. `dtype` is a ringwise_dtype, `op` a ringwise_reduce_op, `factor` is used by RINGWISE_PREMUL_SUM only,
 * `root` is a rank. Counts are elements, not bytes. Two buffers of one call must not overlap. `counts`, where it is
 * not NULL, has `size` entries, equal on all ranks, and gives each rank a part of its own length; parts lie one behind
 * the other in the order of the ranks, and `count` must be counts[rank]. With NULL every part has `count` elements. */

/* buffer = the reduction of all ranks' buffers, on every rank. */
int ringwise_all_reduce(ringwise_group* group, void* buffer, size_t count, int dtype, int op, double factor,
                        ringwise_operation* operation);

/* The same for RINGWISE_SUM and RINGWISE_AVG, and, by another `wire` (a ringwise_wire) than the full one, for
 * RINGWISE_FLOAT32: every rank's values (inside a host, their sums) are rounded before they leave the host, and so is
 * the result; all ranks get the same bits. `residual`, for RINGWISE_WIRE_INT8 or NULL: `count` elements, zeros at
 * first, one array for each buffer that is reduced again and again. It is added to what is rounded, and then holds what
 * that has lost; it is used like the buffer. In a group of one host nothing is rounded and the residual stays as it is.
 * Since 1.1. */
int ringwise_all_reduce_wire(ringwise_group* group, void* buffer, size_t count, int dtype, int op, int wire,
                             float* residual, ringwise_operation* operation);

/* buffer = the reduction of all ranks' buffers, on `root` only; those of the others are read and stay as they are. */
int ringwise_reduce(ringwise_group* group, void* buffer, size_t count, int dtype, int op, double factor, int root,
                    ringwise_operation* operation);

/* buffer = root's buffer, on every rank. */
int ringwise_broadcast(ringwise_group* group, void* buffer, size_t count, int dtype, int root,
                       ringwise_operation* operation);

/* output = all ranks' inputs, on every rank. `count`: of this rank's input. */
int ringwise_all_gather(ringwise_group* group, const void* input, void* output, size_t count, const size_t* counts,
                        int dtype, ringwise_operation* operation);

/* The same on `root` only; `output` is not used elsewhere and may be NULL. */
int ringwise_gather(ringwise_group* group, const void* input, void* output, size_t count, const size_t* counts,
                    int dtype, int root, ringwise_operation* operation);

/* output = this rank's part of root's input. `count`: of this rank's output. `input` is used on the root only. */
int ringwise_scatter(ringwise_group* group, const void* input, void* output, size_t count, const size_t* counts,
                     int dtype, int root, ringwise_operation* operation);

/* output = this rank's part of the reduction of all ranks' inputs. `count`: of this rank's output. */
int ringwise_reduce_scatter(ringwise_group* group, const void* input, void* output, size_t count, const size_t* counts,
                            int dtype, int op, double factor, ringwise_operation* operation);

/* Part r of `input` becomes, on rank r, the part of `output` that belongs to this rank. Even: every part has `count`
 * elements, and both arrays are NULL. Uneven: this rank sends send_counts[r] elements to rank r and receives
 * recv_counts[r] from it, which must be what that rank sends; `count` is 0. */
int ringwise_all_to_all(ringwise_group* group, const void* input, void* output, size_t count, const size_t* send_counts,
                        const size_t* recv_counts, int dtype, ringwise_operation* operation);

/* Ends on each rank after all ranks have called it. */
int ringwise_barrier(ringwise_group* group, ringwise_operation* operation);

/* One message from this rank to `peer`, another rank. Messages with equal tags (0 to 2147483647) arrive in the order of
 * their sends; count and dtype must be the receiver's. Independent of the collectives. Ends when `data` may be changed,
 * which may be before it is received. */
int ringwise_send(ringwise_group* group, const void* data, size_t count, int dtype, int peer, int tag,
                  ringwise_operation* operation);

/* The next message with that tag from `peer`, or from the first that sends one: RINGWISE_ANY_RANK. `source`, if not
 * NULL, is set to the sender when the operation is reported to have ended well, and must live as long as `data`. */
int ringwise_recv(ringwise_group* group, void* data, size_t count, int dtype, int peer, int tag, int32_t* source,
                  ringwise_operation* operation);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
