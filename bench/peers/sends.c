// Measures ways to move bytes over TCP in both directions at once, as the ranks of a collective do.
//   gcc -O2 -o sends sends.c -luring
//   ./sends NAMESPACE NAMESPACE ADDRESS METHOD STREAMS PORTION BYTES SECONDS      needs root, to enter the namespaces
// One process runs in each network namespace; ADDRESS is that of the second one. In a round each process sends BYTES
// and receives BYTES, in equal pieces over STREAMS connections. METHOD is how:
//   copy      sendmsg() and recv(), as ringwise does: the kernel copies the bytes into its own memory
//   zerocopy  the same with MSG_ZEROCOPY: the kernel sends from the pages of the program and says when it is finished
//   uring     io_uring: sends and receives are queued, and one system call starts many of them and waits
//   uring-zc  the same with IORING_OP_SEND_ZC, which does not copy either
// PORTION is the most bytes of one send; 0 sends a piece at once. A round ends when all bytes have come and the sent
// memory may be changed again. Prints a JSON line: the median time of a round, the processor time of both processes per
// round, and the share of sends without a copy that the kernel copied after all. Fails if a byte came wrong.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <linux/errqueue.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef IORING_SEND_ZC_REPORT_USAGE
#define IORING_SEND_ZC_REPORT_USAGE (1U << 3)
#define IORING_NOTIF_USAGE_ZC_COPIED (1U << 31)
#endif

enum { STREAMS = 16, WARM_UP = 3, ROUNDS = 100000, PORT = 29771 };
enum method { COPY, ZEROCOPY, URING, URING_ZC };
static const char* const method_names[] = {"copy", "zerocopy", "uring", "uring-zc"};

static enum method method;
static int streams, sockets[STREAMS];
static size_t portion, piece;                  // bytes of one send; bytes of one stream in a round
static unsigned char *outgoing, *arrived;      // streams x piece bytes each
static uint64_t unfinished, finished, copied;  // sends without a copy: pending, finished, and copied after all
static struct io_uring ring;

static void fail(const char* what) {
  fprintf(stderr, "sends: %s: %s\n", what, strerror(errno));
  exit(1);
}
static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}
static size_t next_send(size_t done) { return piece - done < portion ? piece - done : portion; }

// Reads the messages by which the kernel says that sends with MSG_ZEROCOPY are finished.
static void read_finished(int socket) {
  for (;;) {
    char control[128];
    struct msghdr message = {.msg_control = control, .msg_controllen = sizeof control};
    if (recvmsg(socket, &message, MSG_ERRQUEUE) < 0) return;
    for (struct cmsghdr* c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
      struct sock_extended_err* e = (void*)CMSG_DATA(c);
      if (e->ee_origin != SO_EE_ORIGIN_ZEROCOPY) continue;
      uint64_t sends = e->ee_data - e->ee_info + 1;
      unfinished -= sends;
      finished += sends;
      if (e->ee_code & SO_EE_CODE_ZEROCOPY_COPIED) copied += sends;
    }
  }
}

static void round_by_calls(void) {
  size_t sent[STREAMS] = {0}, got[STREAMS] = {0};
  for (;;) {
    int moved = 0, left = 0;
    struct pollfd polled[STREAMS];
    for (int s = 0; s < streams; s++) {
      short events = 0;
      if (sent[s] < piece) {
        int flags = MSG_DONTWAIT | MSG_NOSIGNAL | (method == ZEROCOPY ? MSG_ZEROCOPY : 0);
        ssize_t n = send(sockets[s], outgoing + s * piece + sent[s], next_send(sent[s]), flags);
        if (n < 0 && errno != EAGAIN && errno != ENOBUFS) fail("send");
        if (n > 0) sent[s] += (size_t)n, moved = 1, unfinished += method == ZEROCOPY;
        events |= sent[s] < piece ? POLLOUT : 0;
      }
      if (got[s] < piece) {
        ssize_t n = recv(sockets[s], arrived + s * piece + got[s], piece - got[s], MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN)) fail("recv");
        if (n > 0) got[s] += (size_t)n, moved = 1;
        events |= got[s] < piece ? POLLIN : 0;
      }
      if (method == ZEROCOPY && unfinished > 0) read_finished(sockets[s]);
      left |= events;
      polled[s] = (struct pollfd){sockets[s], events, 0};
    }
    if (!left && unfinished == 0) return;
    if (!moved && poll(polled, (nfds_t)streams, 10000) == 0) fail("nothing came for 10 s");
  }
}

static void queue_send(int s, size_t done) {
  struct io_uring_sqe* sqe = io_uring_get_sqe(&ring);
  const void* data = outgoing + s * piece + done;
  const int flags = MSG_NOSIGNAL | MSG_WAITALL;
  if (method == URING)
    io_uring_prep_send(sqe, sockets[s], data, next_send(done), flags);
  else
    io_uring_prep_send_zc(sqe, sockets[s], data, next_send(done), flags, IORING_SEND_ZC_REPORT_USAGE);
  io_uring_sqe_set_data64(sqe, (uint64_t)s);
}
static void queue_receive(int s, size_t done) {
  struct io_uring_sqe* sqe = io_uring_get_sqe(&ring);
  io_uring_prep_recv(sqe, sockets[s], arrived + s * piece + done, piece - done, MSG_WAITALL);
  io_uring_sqe_set_data64(sqe, (uint64_t)(STREAMS + s));
}

static void round_by_ring(void) {
  size_t sent[STREAMS] = {0}, got[STREAMS] = {0};
  int left = 2 * streams;
  for (int s = 0; s < streams; s++) queue_receive(s, 0), queue_send(s, 0);
  while (left > 0 || unfinished > 0) {
    io_uring_submit_and_wait(&ring, 1);
    struct io_uring_cqe* cqe;
    while (io_uring_peek_cqe(&ring, &cqe) == 0) {
      const int s = (int)(io_uring_cqe_get_data64(cqe) % STREAMS), receives = io_uring_cqe_get_data64(cqe) >= STREAMS;
      const int result = cqe->res;
      const unsigned flags = cqe->flags;
      io_uring_cqe_seen(&ring, cqe);
      if (flags & IORING_CQE_F_NOTIF) {
        unfinished--, finished++, copied += ((unsigned)result & IORING_NOTIF_USAGE_ZC_COPIED) != 0;
        continue;
      }
      if (result <= 0) errno = -result, fail(receives ? "ring recv" : "ring send");
      if (flags & IORING_CQE_F_MORE) unfinished++;
      size_t* done = receives ? &got[s] : &sent[s];
      *done += (size_t)result;
      if (*done == piece)
        left--;
      else if (receives)
        queue_receive(s, *done);
      else
        queue_send(s, *done);
    }
  }
}

static void enter(const char* name) {
  char path[256];
  snprintf(path, sizeof path, "/var/run/netns/%s", name);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0 || setns(fd, CLONE_NEWNET) != 0) fail(path);
  close(fd);
}

// Connects the streams; `together` is the connection by which the two processes meet before each round.
static void connect_streams(int rank, const char* address, int together) {
  struct sockaddr_in place = {.sin_family = AF_INET, .sin_port = htons(PORT)};
  inet_pton(AF_INET, address, &place.sin_addr);
  int one = 1, listener = -1;
  char ready = 1;
  if (rank == 1) {
    listener = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (void*)&place, sizeof place) != 0 || listen(listener, STREAMS) != 0) fail("listen");
    if (write(together, &ready, 1) != 1) fail("meeting");
  } else if (read(together, &ready, 1) != 1)
    fail("meeting");
  for (int s = 0; s < streams; s++) {
    if (rank == 1)
      sockets[s] = accept(listener, 0, 0);
    else if ((sockets[s] = socket(AF_INET, SOCK_STREAM, 0)) < 0 || connect(sockets[s], (void*)&place, sizeof place))
      fail("connect");
    if (sockets[s] < 0) fail("accept");
    setsockopt(sockets[s], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (method == ZEROCOPY && setsockopt(sockets[s], SOL_SOCKET, SO_ZEROCOPY, &one, sizeof one)) fail("SO_ZEROCOPY");
  }
}

static int ascending(const void* a, const void* b) {
  const uint64_t x = *(const uint64_t*)a, y = *(const uint64_t*)b;
  return (x > y) - (x < y);
}

// The first 8 bytes of each 4 KiB that `rank` sends in a round; `at` is their place.
static uint64_t mark_at(int rank, uint64_t round, size_t at) { return round << 32 | (uint64_t)rank << 28 | at / 4096; }
static void mark(int rank, uint64_t round) {
  for (size_t at = 0; at + 8 <= streams * piece; at += 4096) {
    const uint64_t value = mark_at(rank, round, at);
    memcpy(outgoing + at, &value, 8);
  }
}
static void check(int rank, uint64_t round) {
  for (size_t at = 0; at + 8 <= streams * piece; at += 4096) {
    const uint64_t value = mark_at(rank, round, at);
    if (memcmp(arrived + at, &value, 8) != 0) errno = EBADMSG, fail("wrong bytes came");
  }
}

static uint64_t processor_ns(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  return ((uint64_t)used.ru_utime.tv_sec + (uint64_t)used.ru_stime.tv_sec) * 1000000000 +
         ((uint64_t)used.ru_utime.tv_usec + (uint64_t)used.ru_stime.tv_usec) * 1000;
}

static void run(int rank, int together, double seconds, uint64_t* used_ns) {
  outgoing = aligned_alloc(4096, streams * piece);
  arrived = aligned_alloc(4096, streams * piece);
  memset(outgoing, rank + 1, streams * piece);
  memset(arrived, 0, streams * piece);
  static uint64_t times[ROUNDS];
  uint64_t count = 0, began = now_ns(), used = 0;
  for (;; count++) {
    char go = count < ROUNDS && (count < WARM_UP || (double)(now_ns() - began) < seconds * 1e9);
    mark(rank, count);
    // Rank 0 decides; both begin when both are ready.
    if (rank == 0 && (write(together, &go, 1) != 1 || read(together, &(char){0}, 1) != 1)) fail("meeting");
    if (rank == 1 && (read(together, &go, 1) != 1 || write(together, &go, 1) != 1)) fail("meeting");
    if (!go) break;
    if (count == WARM_UP) began = now_ns();
    const uint64_t start = now_ns(), used_before = processor_ns();
    if (method < URING)
      round_by_calls();
    else
      round_by_ring();
    if (count >= WARM_UP) times[count - WARM_UP] = now_ns() - start, used += processor_ns() - used_before;
    check(1 - rank, count);
  }
  const uint64_t rounds = count - WARM_UP;
  *used_ns = used / rounds;
  qsort(times, rounds, sizeof *times, ascending);
  if (rank == 1) {
    if (write(together, used_ns, sizeof *used_ns) != sizeof *used_ns) fail("meeting");
    return;
  }
  uint64_t other;
  if (read(together, &other, sizeof other) != sizeof other) fail("meeting");
  char share[32] = "null";
  if (finished > 0) snprintf(share, sizeof share, "%.2f", (double)copied / (double)finished);
  printf(
      "{\"method\":\"%s\",\"streams\":%d,\"portion\":%zu,\"bytes\":%zu,\"rounds\":%llu,\"median_us\":%.1f,"
      "\"processor_us\":%.1f,\"copied\":%s}\n",
      method_names[method], streams, portion, streams * piece, (unsigned long long)rounds,
      (double)times[rounds / 2] / 1e3, (double)(*used_ns + other) / 1e3, share);
}

int main(int argc, char** argv) {
  if (argc != 9) return fprintf(stderr, "sends NAMESPACE NAMESPACE ADDRESS METHOD STREAMS PORTION BYTES SECONDS\n"), 2;
  for (method = COPY; method <= URING_ZC && strcmp(argv[4], method_names[method]) != 0; method++) {
  }
  streams = atoi(argv[5]);
  if (method > URING_ZC || streams < 1 || streams > STREAMS)
    return fprintf(stderr, "sends: bad METHOD or STREAMS\n"), 2;
  piece = strtoull(argv[7], 0, 10) / (size_t)streams;
  portion = strtoull(argv[6], 0, 10);
  if (portion == 0) portion = piece;
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) fail("socketpair");
  const pid_t child = fork();
  const int rank = child == 0;
  if (rank == 1) prctl(PR_SET_PDEATHSIG, SIGKILL);
  close(pair[1 - rank]);
  enter(argv[1 + rank]);
  connect_streams(rank, argv[3], pair[rank]);
  if (method >= URING) {
    const int error = io_uring_queue_init(64, &ring, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN);
    if (error < 0) errno = -error, fail("io_uring");
  }
  uint64_t used_ns = 0;
  run(rank, pair[rank], atof(argv[8]), &used_ns);
  if (rank == 1) return 0;
  int status;
  waitpid(child, &status, 0);
  return status != 0;
}
