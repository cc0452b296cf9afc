// Polling by kqueue: macOS has it, and libkqueue for Linux. The two queues are independent, because a kqueue that
// watches another one does not work on all systems.
#include "base/os/poller.h"

#include <sys/types.h>
// must follow sys/types.h
#include <sys/event.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <iterator>
#include <span>
#include <system_error>

namespace ringwise::os {

namespace {

using Event = struct kevent;

Fd make_queue() {
  Fd queue(kqueue());  // which children do not inherit
  if (!queue) throw std::system_error(errno, std::generic_category(), "kqueue");
  return queue;
}

Event change(int descriptor, int16_t filter, uint16_t flags, int64_t tag) {
  Event event{};
  EV_SET(&event, static_cast<uintptr_t>(descriptor), filter, flags, 0, 0,
         reinterpret_cast<void*>(static_cast<intptr_t>(tag)));
  return event;
}

bool apply(const Fd& queue, std::span<const Event> changes) noexcept {
  return kevent(queue.get(), changes.data(), static_cast<int>(changes.size()), nullptr, 0, nullptr) == 0;
}

void add(const Fd& queue, std::span<const Event> changes) {
  if (!apply(queue, changes)) throw std::system_error(errno, std::generic_category(), "kevent");
}

int take(const Fd& queue, std::span<Event> ready, int timeout_ms) noexcept {
  const timespec time{timeout_ms / 1000, timeout_ms % 1000 * 1'000'000};
  return kevent(queue.get(), nullptr, 0, ready.data(), static_cast<int>(ready.size()),
                timeout_ms < 0 ? nullptr : &time);
}

}  // namespace

Poller::Poller() : some_(make_queue()), all_(make_queue()) {}

void Poller::watch(int descriptor, int64_t tag) {
  const Event read = change(descriptor, EVFILT_READ, EV_ADD, tag);
  for (const Fd* queue : {&some_, &all_}) add(*queue, {&read, 1});
}

void Poller::watch_changes(int descriptor) {
  // EV_CLEAR: an event is reported once, until the state changes again.
  const Event both[] = {change(descriptor, EVFILT_READ, EV_ADD | EV_CLEAR, 0),
                        change(descriptor, EVFILT_WRITE, EV_ADD | EV_CLEAR, 0)};
  add(all_, both);
}

void Poller::forget(int descriptor) noexcept {
  const Event read = change(descriptor, EVFILT_READ, EV_DELETE, 0);
  for (const Fd* queue : {&some_, &all_}) apply(*queue, {&read, 1});
}

void Poller::set_timer(int64_t ns) noexcept {
  Event timer = change(0, EVFILT_TIMER, EV_ADD | EV_ONESHOT, 0);
  timer.fflags = NOTE_NSECONDS;
  timer.data = static_cast<decltype(timer.data)>(ns);
  for (const Fd* queue : {&some_, &all_}) apply(*queue, {&timer, 1});
}

size_t Poller::wait(std::span<int64_t> tags, int timeout_ms) noexcept {
  Event ready[kMost];
  const int count = take(some_, std::span(ready).first(std::min(tags.size(), kMost)), timeout_ms);
  size_t reported = 0;
  for (int i = 0; i < count; ++i) {
    if (ready[i].filter == EVFILT_TIMER) continue;
    tags[reported++] = static_cast<int64_t>(reinterpret_cast<intptr_t>(ready[i].udata));
  }
  return reported;
}

void Poller::wait_for_all(int timeout_ms) noexcept {
  Event ready[8];
  take(all_, ready, timeout_ms);
}

}  // namespace ringwise::os
