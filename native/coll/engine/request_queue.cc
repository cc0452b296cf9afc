#include "coll/engine/request_queue.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace ringwise::coll {

uint64_t RequestQueue::reserve() {
  const std::lock_guard lock(mutex_);
  return next_id_++;
}

void RequestQueue::push(Op& op) {
  {
    const std::lock_guard lock(mutex_);
    op.id = next_id_++;
    (op.is_point_to_point() ? messages_ : collectives_).push_back(op);
    has_news_ = true;
  }
  news_.notify_one();
}

void RequestQueue::abort(Failure failure) {
  {
    const std::lock_guard lock(mutex_);
    abort_ = std::move(failure);
    has_news_ = true;
  }
  news_.notify_one();
}

uint64_t RequestQueue::close() {
  uint64_t id;
  {
    const std::lock_guard lock(mutex_);
    id = closing_id_ = next_id_++;
    has_news_ = true;
  }
  news_.notify_one();
  return id;
}

void RequestQueue::wait_for_news(std::chrono::microseconds limit) {
  std::unique_lock lock(mutex_);
  news_.wait_for(lock, limit, [this] { return has_news_ || is_woken_; });
  is_woken_ = false;
}

void RequestQueue::wake() {
  {
    const std::lock_guard lock(mutex_);
    is_woken_ = true;
  }
  news_.notify_one();
}

std::optional<Failure> RequestQueue::take_abort() {
  const std::lock_guard lock(mutex_);
  return std::exchange(abort_, std::nullopt);
}

std::optional<Op> RequestQueue::pop(bool collectives) {
  const std::lock_guard lock(mutex_);
  auto& queue = messages_.empty() ? collectives_ : messages_;
  if (queue.empty() || (messages_.empty() && !collectives)) return std::nullopt;
  const Op op = queue.front();
  queue.pop_front();
  return op;
}

std::deque<Op> RequestQueue::take_all() {
  const std::lock_guard lock(mutex_);
  std::deque<Op> all = std::exchange(messages_, {});
  all.insert(all.end(), collectives_.begin(), collectives_.end());
  collectives_.clear();
  return all;
}

int64_t RequestQueue::earliest_deadline() const {
  const std::lock_guard lock(mutex_);
  int64_t earliest = std::numeric_limits<int64_t>::max();
  for (const Op& op : collectives_) earliest = std::min(earliest, op.deadline_ns);
  return earliest;
}

bool RequestQueue::has_operations() const {
  const std::lock_guard lock(mutex_);
  return !collectives_.empty() || !messages_.empty();
}

bool RequestQueue::may_leave() const {
  const std::lock_guard lock(mutex_);
  return closing_id_ != 0 && collectives_.empty() && messages_.empty() && !abort_;
}

uint64_t RequestQueue::take_closing() {
  const std::lock_guard lock(mutex_);
  return std::exchange(closing_id_, 0);
}

void RequestQueue::end(Ended ended) {
  bool waiters;
  {
    const std::lock_guard lock(mutex_);
    ended_.push_back(std::move(ended));
    waiters = waiters_ > 0;
  }
  if (waiters) one_ended_.notify_all();
  notify_();
}

std::vector<Ended>::const_iterator RequestQueue::find(uint64_t id) const {
  return std::find_if(ended_.begin(), ended_.end(), [id](const Ended& one) { return one.id == id; });
}

bool RequestQueue::has_ended(uint64_t id) const {
  const std::lock_guard lock(mutex_);
  return find(id) != ended_.end();
}

void RequestQueue::wait_until_ended(uint64_t id) {
  std::unique_lock lock(mutex_);
  ++waiters_;
  one_ended_.wait(lock, [&] { return find(id) != ended_.end(); });
  --waiters_;
}

Ended RequestQueue::take(uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto found = find(id);
  Ended ended = *found;
  ended_.erase(found);
  return ended;
}

void RequestQueue::take_ended(std::vector<Ended>& ended) {
  ended.clear();
  const std::lock_guard lock(mutex_);
  ended.swap(ended_);
}

}  // namespace ringwise::coll
