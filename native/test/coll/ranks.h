// Runs N ranks of a group as threads of one process, over the real transports.
#pragma once

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "coll/engine/host_group.h"

namespace ringwise::test {

using coll::HostGroup;
using coll::Op;

struct Rank {
  int rank;
  int size;
  std::unique_ptr<HostGroup> group;

  /// Runs an operation and blocks until it ends. Returns the text of its failure, or "" if it ended well.
  std::string run(const Op& op) {
    auto failure = group->run(op);
    return failure ? failure->text : "";
  }

  /// Waits until a started operation has ended. Returns its failure, or null if it ended well. Drops the outcomes of
  /// other operations that have ended.
  std::shared_ptr<const coll::Failure> finish(uint64_t id) {
    group->wait(id);
    std::vector<coll::Ended> ended;
    group->take_ended(ended);
    for (auto& e : ended) {
      if (e.id == id) return e.failure;
    }
    return nullptr;
  }
};

/// Replaces times such as "for 0.3 s" by "for T".
inline std::string without_times(std::string text) {
  for (size_t at = text.find(" s"); at != std::string::npos; at = text.find(" s", at + 1)) {
    if (at < 3 || text[at - 2] != '.') continue;
    const size_t begin = text.find_last_not_of("0123456789.", at - 1) + 1;
    text.erase(begin + 1, at + 1 - begin);
    text[begin] = 'T';
    at = begin;
  }
  return text;
}

/// Returns the proof by which rank `to` recognises a connection of rank `from`.
inline coll::Proof proof(int from, int to) {
  coll::Proof bytes{};
  bytes[0] = static_cast<uint8_t>(from + 1);
  bytes[1] = static_cast<uint8_t>(to + 1);
  return bytes;
}

/// Connects `size` ranks and calls `body` for each on a thread of its own. `host_of(rank)` places the ranks on
/// pretended hosts; ranks on different hosts communicate by TCP over loopback. If a rank cannot connect, the exception
/// ends the process.
inline void with_ranks(int size, const std::function<int(int)>& host_of, const std::function<void(Rank&)>& body) {
  std::vector<Rank> ranks(size);
  for (int r = 0; r < size; ++r) ranks[r] = {r, size, std::make_unique<HostGroup>(r, size, "127.0.0.1", [] {})};
  std::vector<std::thread> threads;
  for (int r = 0; r < size; ++r) {
    std::vector<coll::PeerAddress> peers;
    for (int p = 0; p < size; ++p) {
      if (p == r) continue;
      const auto& listener = ranks[p].group->listener();
      peers.push_back(
          {p, host_of(p) == host_of(r), listener.unix_name(), "127.0.0.1", listener.port(), proof(r, p), proof(p, r)});
    }
    threads.emplace_back([&rank = ranks[r], peers = std::move(peers), &body] {
      const auto failure = rank.finish(rank.group->connect(peers, 10'000'000'000));
      if (failure) throw std::runtime_error(failure->text);
      body(rank);
    });
  }
  for (auto& thread : threads) thread.join();
}

inline int one_host(int) { return 0; }
inline int own_host(int rank) { return rank; }
inline int two_per_host(int rank) { return rank / 2; }

inline constexpr int64_t kTimeout = 20'000'000'000;
/// A timeout for tests of the sentence that it makes: long enough for the other ranks to answer on a busy machine.
inline constexpr int64_t kAnsweredTimeout = 1'000'000'000;

/// Sleeps until `is_done()`. A thread that yielded instead would take the core from the ranks that it waits for.
template <class Predicate>
void sleep_until(const Predicate& is_done) {
  while (!is_done()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

template <class T>
Op all_reduce(std::vector<T>& data, DType dtype, uint64_t seq, coll::ReduceOp reduce = coll::ReduceOp::Sum) {
  Op op;
  op.verb = coll::Verb::AllReduce;
  op.dtype = dtype;
  op.reduce = reduce;
  op.seq = seq;
  op.count = data.size();
  op.input = op.output = reinterpret_cast<std::byte*>(data.data());
  op.timeout_ns = kTimeout;
  return op;
}

inline Op barrier(uint64_t seq) {
  Op op;
  op.verb = coll::Verb::Barrier;
  op.seq = seq;
  op.timeout_ns = kTimeout;
  return op;
}

}  // namespace ringwise::test
