#include "sim/simulation.h"

#include <algorithm>
#include <future>
#include <list>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "sim/event_queue.h"

namespace ringwise::sim {

namespace {

/// Ranks per planning thread. Planning takes about as long as simulating, and plans are independent, so several threads
/// make them.
constexpr int kRanksPerPlanner = 256;

/// The times at which the entries of a list ended, as far back as they may still be needed.
class History {
 public:
  size_t count() const { return count_; }
  /// Adds the end of the next entry. `lowest` is the lowest count that when() will be asked for; 0 if it will not be
  /// asked.
  void add(Time time, size_t lowest) {
    times_.push_back(time);
    ++count_;
    const size_t kept = lowest == 0 || lowest > count_ ? 0 : count_ - lowest + 1;
    if (2 * kept <= times_.size()) times_.erase(times_.begin(), times_.end() - static_cast<ptrdiff_t>(kept));
  }
  /// Returns when the first `needs` entries had ended; 0 if that time has been dropped, because the caller has waited
  /// for later entries already.
  Time when(size_t needs) const {
    const size_t forgotten = count_ - times_.size();
    return needs <= forgotten ? 0 : times_[needs - forgotten - 1];
  }

 private:
  size_t count_ = 0;
  std::vector<Time> times_;  // ends of the newest entries
};

struct Rank {
  Rank(int ranks, bool owns) : sends(ranks), steps(ranks), owns_port(owns) {}
  Entries sends;
  Entries steps;
  History left;          // ends of sends
  History ended;         // ends of steps
  Time free = 0;         // end of its last send
  Time step_end = 0;     // end of its last step
  bool owns_port;        // no other rank uses its port to the network
  bool sending = false;  // its newest message has not reached the first shared port
  int early = 0;         // number of messages for it in Simulation::early_
};

/// A message whose receiver does not wait for it yet.
struct Early {
  Time there;  // when its end has arrived
  size_t bytes;
};

/// The run of an operation. Only shared ports must handle messages in the order of time; all other times are computed
/// at once, even if they are in the future. At most one message of each rank is pending before the first shared port on
/// its way, and the rank's next message is announced when this one arrives there. So few events are pending.
class Simulation {
 public:
  Simulation(const coll::Op& op, const coll::Algorithm& algorithm, const coll::Hosts& hosts, const NetworkCosts& costs,
             bool handshakes)
      : network_(hosts, costs) {
    ranks_.reserve(hosts.size());
    for (int rank = 0; rank < hosts.size(); ++rank) ranks_.emplace_back(hosts.size(), network_.owns_port(rank));
    const int planners =
        std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, hosts.size() / kRanksPerPlanner + 1);
    std::vector<std::future<void>> plans;
    for (int planner = 0; planner < planners; ++planner) {
      plans.push_back(std::async(std::launch::async, [&, planner] {
        coll::Schedule schedule;
        for (int rank = planner; rank < hosts.size(); rank += planners) {
          schedule.clear();
          algorithm.plan(op, {rank, &hosts}, schedule);
          Trace trace = trace_of(op, schedule, hosts.size(), handshakes);
          ranks_[rank].sends = std::move(trace.sends);
          ranks_[rank].steps = std::move(trace.steps);
        }
      }));
    }
    for (auto& plan : plans) plan.get();
  }

  Outcome run() {
    for (int rank = 0; rank < size(); ++rank) proceed(rank);
    while (!events_.empty()) {
      const auto [at, event] = events_.take();
      const auto& message = event.message;
      if (event.hop == Hop::Out) {
        leave(message, at);
      } else if (event.hop == Hop::In) {
        arrive(message, network_.pass(Hop::In, message, at).end);
      } else {
        const auto passage = network_.pass(event.hop, message, at);
        events_.add(passage.at, {message, passage.next, false});
      }
      if (event.is_newest) {
        ranks_[message.from].sending = false;
        proceed(message.from);
      }
    }
    Outcome outcome;
    for (int rank = 0; rank < size(); ++rank) {
      const Rank& r = ranks_[rank];
      if (!r.sends.done() || !r.steps.done())
        throw std::logic_error("rank " + std::to_string(rank) + " waits for ever");
      outcome.time = std::max({outcome.time, r.free, r.step_end});
    }
    if (!early_.empty()) throw std::logic_error("a message was never taken");
    outcome.messages = messages_;
    outcome.between_hosts = network_.between_hosts();
    outcome.inside_hosts = network_.inside_hosts();
    return outcome;
  }

 private:
  int size() const { return static_cast<int>(ranks_.size()); }
  static uint64_t pair(int from, int to) { return static_cast<uint64_t>(to) << 32 | static_cast<uint32_t>(from); }

  /// Ends the steps whose messages have arrived, and announces the next send as soon as its time is known.
  void proceed(int rank) {
    Rank& r = ranks_[rank];
    while (may_begin(r)) {
      const Entry step = r.steps.front();
      if (step.peer < 0) {
        end_step(r, step, 0);
        continue;
      }
      if (r.early == 0) break;
      const auto found = early_.find(pair(step.peer, rank));
      if (found == early_.end()) break;
      take(rank, step, found->second.front());
      found->second.pop_front();
      --r.early;
      if (found->second.empty()) early_.erase(found);
    }
    announce(rank);
  }

  static bool may_begin(const Rank& r) { return !r.steps.done() && r.left.count() >= r.steps.front().needs; }

  void take(int rank, const Entry& step, const Early& message) {
    if (message.bytes != step.bytes)
      throw std::logic_error("rank " + std::to_string(rank) + " got a message of another length");
    end_step(ranks_[rank], step, message.there);
  }

  static void end_step(Rank& r, const Entry& step, Time there) {
    r.step_end = std::max({r.step_end, r.left.when(step.needs), there});
    r.steps.pop();
    r.ended.add(r.step_end, r.sends.lowest_need());
  }

  void announce(int rank) {
    Rank& r = ranks_[rank];
    if (r.sending || r.sends.done()) return;
    const Entry& send = r.sends.front();
    if (r.ended.count() < send.needs) return;
    r.sending = true;
    const Message message{rank, send.peer, send.bytes};
    const Time at = std::max(r.free, r.ended.when(send.needs));
    if (r.owns_port) {
      leave(message, at);
      proceed(rank);
    } else {
      events_.add(at, {message, Hop::Out, true});
    }
  }

  void leave(const Message& message, Time at) {
    Rank& r = ranks_[message.from];
    const auto passage = network_.pass(Hop::Out, message, at);
    ++messages_;
    events_.add(passage.at, {message, passage.next, r.owns_port});
    r.free = passage.end;
    r.sends.pop();
    r.left.add(passage.end, r.steps.lowest_need());
  }

  void arrive(const Message& message, Time there) {
    Rank& r = ranks_[message.to];
    const Early arrived{there, message.bytes};
    if (r.early == 0 && may_begin(r) && r.steps.front().peer == message.from) {
      take(message.to, Entry(r.steps.front()), arrived);
    } else {
      early_[pair(message.from, message.to)].push_back(arrived);
      ++r.early;
    }
    proceed(message.to);
  }

  Network network_;
  std::vector<Rank> ranks_;
  EventQueue events_;
  std::unordered_map<uint64_t, std::list<Early>> early_;  // by pair
  uint64_t messages_ = 0;
};

}  // namespace

Outcome simulate(const coll::Op& op, const coll::Algorithm& algorithm, const coll::Hosts& hosts,
                 const NetworkCosts& costs, bool handshakes) {
  return Simulation(op, algorithm, hosts, costs, handshakes).run();
}

Traffic expected_traffic(const coll::Op& op, const coll::Algorithm& algorithm, const coll::Hosts& hosts,
                         bool handshakes) {
  const coll::Topology middle{hosts.size() / 2, &hosts};
  coll::Schedule schedule;
  algorithm.plan(op, middle, schedule);
  std::set<int> peers;
  for (const coll::Send& send : schedule.sends) peers.insert(send.to);
  const size_t messages = schedule.sends.size() + (handshakes ? schedule.handshake_targets.size() : 0);
  return {static_cast<double>(messages) * hosts.size(), static_cast<double>(peers.size()) * hosts.size()};
}

}  // namespace ringwise::sim
