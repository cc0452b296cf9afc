#include "base/os/poller.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <system_error>

namespace ringwise::os {

namespace {

constexpr int64_t kTimer = std::numeric_limits<int64_t>::min();  // the tag that is not reported

Fd checked(int descriptor, const char* what) {
  if (descriptor < 0) throw std::system_error(errno, std::generic_category(), what);
  return Fd(descriptor);
}

void add(const Fd& poller, int descriptor, uint32_t events, int64_t tag) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = static_cast<uint64_t>(tag);
  if (epoll_ctl(poller.get(), EPOLL_CTL_ADD, descriptor, &event) != 0)
    throw std::system_error(errno, std::generic_category(), "epoll_ctl");
}

}  // namespace

Poller::Poller()
    : some_(checked(epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
      all_(checked(epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
      timer_(checked(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK), "timerfd_create")) {
  add(some_, timer_.get(), EPOLLIN | EPOLLET, kTimer);  // edge-triggered, because no code reads the timer
  add(all_, some_.get(), EPOLLIN, 0);
}

void Poller::watch(int descriptor, int64_t tag) { add(some_, descriptor, EPOLLIN, tag); }

void Poller::watch_changes(int descriptor) { add(all_, descriptor, EPOLLIN | EPOLLOUT | EPOLLET, 0); }

void Poller::forget(int descriptor) noexcept { epoll_ctl(some_.get(), EPOLL_CTL_DEL, descriptor, nullptr); }

void Poller::set_timer(int64_t ns) noexcept {
  itimerspec time{};
  time.it_value.tv_nsec = ns;
  timerfd_settime(timer_.get(), 0, &time, nullptr);
}

size_t Poller::wait(std::span<int64_t> tags, int timeout_ms) noexcept {
  epoll_event ready[kMost];
  const int count = epoll_wait(some_.get(), ready, static_cast<int>(std::min(tags.size(), kMost)), timeout_ms);
  size_t reported = 0;
  for (int i = 0; i < count; ++i) {
    const auto tag = static_cast<int64_t>(ready[i].data.u64);
    if (tag != kTimer) tags[reported++] = tag;
  }
  return reported;
}

void Poller::wait_for_all(int timeout_ms) noexcept {
  epoll_event ready[8];
  epoll_wait(all_.get(), ready, 8, timeout_ms);
}

}  // namespace ringwise::os
