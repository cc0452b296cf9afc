// Makes a link with a delay and a rate between two network namespaces, in user space, for kernels without netem.
//   gcc -O2 -pthread -o link link.c
//   ./link NAMESPACE ADDRESS NAMESPACE ADDRESS DELAY_US RATE_MBIT     runs until it is killed; needs root
// Each namespace gets an interface wan0 with its address. Prints "ready" as soon as the link passes packets.
//
// A packet leaves after the packets before it, when all its bits are on the wire, and arrives DELAY_US later. The queue
// in front of the wire is limited as in a router; packets that do not fit are dropped.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { MTU = 1500, WAITING_LIMIT = 1000, IN_FLIGHT = 1 << 14 };

struct packet {
  uint64_t arrives_ns;
  ssize_t length;
  unsigned char bytes[MTU];
};
struct direction {
  int from, to;
  struct packet* ring;  // IN_FLIGHT packets between `first` and `last`
  uint64_t first, last;
  uint64_t wire_free_ns;  // time at which the last packet has left
};
static uint64_t delay_ns;
static double ns_per_byte;

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

// Takes one packet from `from`, or drops it if the queue is full. Returns false if there is none.
static int take(struct direction* d) {
  struct packet* p = &d->ring[d->last % IN_FLIGHT];
  static __thread unsigned char dropped[MTU];
  uint64_t now = now_ns();
  int is_full = d->last - d->first == IN_FLIGHT;
  if (d->wire_free_ns > now + (uint64_t)(WAITING_LIMIT * MTU * ns_per_byte)) is_full = 1;
  if (is_full) return read(d->from, dropped, MTU) > 0;
  p->length = read(d->from, p->bytes, MTU);
  if (p->length <= 0) return 0;
  if (d->wire_free_ns < now) d->wire_free_ns = now;
  d->wire_free_ns += (uint64_t)((double)p->length * ns_per_byte);
  p->arrives_ns = d->wire_free_ns + delay_ns;
  d->last++;
  return 1;
}

static void* carry(void* argument) {
  struct direction* d = argument;
  prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
  for (;;) {
    while (take(d)) {
    }
    uint64_t now = now_ns();
    while (d->first != d->last && d->ring[d->first % IN_FLIGHT].arrives_ns <= now) {
      struct packet* p = &d->ring[d->first++ % IN_FLIGHT];
      if (write(d->to, p->bytes, (size_t)p->length) < 0) continue;  // the receiver's queue is full: the packet is lost
    }
    struct pollfd input = {d->from, POLLIN, 0};
    uint64_t wait_ns = d->first == d->last ? 1000000000 : d->ring[d->first % IN_FLIGHT].arrives_ns - now;
    struct timespec wait = {(time_t)(wait_ns / 1000000000), (long)(wait_ns % 1000000000)};
    ppoll(&input, 1, &wait, 0);
  }
  return 0;
}

static int open_tun(const char* name) {
  struct ifreq request;
  memset(&request, 0, sizeof request);
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  snprintf(request.ifr_name, IFNAMSIZ, "%s", name);
  int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
  if (fd < 0 || ioctl(fd, TUNSETIFF, &request) != 0) perror("link: /dev/net/tun"), exit(1);
  return fd;
}

static int place(const char* space, const char* address, const char* other, char side) {
  char name[IFNAMSIZ], command[512];
  snprintf(name, sizeof name, "rw%c%d", side, getpid());
  int fd = open_tun(name);
  snprintf(command, sizeof command,
           "ip link set %s netns %s && ip -n %s link set %s name wan0 && "
           "ip -n %s address add %s peer %s dev wan0 && ip -n %s link set wan0 mtu %d txqueuelen 1000 up",
           name, space, space, name, space, address, other, space, MTU);
  if (system(command) != 0) exit(1);
  return fd;
}

int main(int argc, char** argv) {
  if (argc != 7) return fprintf(stderr, "link NAMESPACE ADDRESS NAMESPACE ADDRESS DELAY_US RATE_MBIT\n"), 2;
  delay_ns = strtoull(argv[5], 0, 10) * 1000;
  ns_per_byte = 8000 / atof(argv[6]);
  int a = place(argv[1], argv[2], argv[4], 'a'), b = place(argv[3], argv[4], argv[2], 'b');
  static struct direction directions[2];
  directions[0] = (struct direction){.from = a, .to = b, .ring = calloc(IN_FLIGHT, sizeof(struct packet))};
  directions[1] = (struct direction){.from = b, .to = a, .ring = calloc(IN_FLIGHT, sizeof(struct packet))};
  pthread_t thread;
  pthread_create(&thread, 0, carry, &directions[0]);
  printf("ready\n");
  fflush(stdout);
  carry(&directions[1]);
}
