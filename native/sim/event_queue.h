// A queue of events by time; events of the same time keep their order. Ranks in lockstep share a few times for most of
// their events, so events of one time are in one bucket, and few operations have to search.
#pragma once

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "sim/network.h"

namespace ringwise::sim {

/// The arrival of a message at a port.
struct Event {
  Message message;
  Hop hop;
  bool is_newest;  // its sender announces its next message when this one has arrived here
};

class EventQueue {
 public:
  bool empty() const { return buckets_.empty(); }

  void add(Time at, const Event& event) {
    if (last_ == buckets_.end() || last_->first != at) last_ = bucket_at(at);
    last_->second.events.push_back(event);
  }

  /// Removes the first event and returns it with its time. The queue must not be empty.
  std::pair<Time, Event> take() {
    const auto first = buckets_.begin();
    Bucket& bucket = first->second;
    const std::pair<Time, Event> taken{first->first, bucket.events[bucket.taken]};
    if (++bucket.taken == bucket.events.size()) {
      if (last_ == first) last_ = buckets_.end();
      bucket.events.clear();
      bucket.taken = 0;
      spare_.push_back(buckets_.extract(first));
    }
    return taken;
  }

 private:
  struct Bucket {
    std::vector<Event> events;
    size_t taken = 0;
  };
  using Buckets = std::map<Time, Bucket>;

  Buckets::iterator bucket_at(Time at) {
    const auto found = buckets_.lower_bound(at);
    if (found != buckets_.end() && found->first == at) return found;
    if (spare_.empty()) return buckets_.try_emplace(found, at);
    Buckets::node_type node = std::move(spare_.back());
    spare_.pop_back();
    node.key() = at;
    return buckets_.insert(found, std::move(node));
  }

  Buckets buckets_;
  Buckets::iterator last_ = buckets_.end();  // the bucket of the last added event
  std::vector<Buckets::node_type> spare_;    // empty buckets for reuse
};

}  // namespace ringwise::sim
