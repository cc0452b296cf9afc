// Tests the flight recorder: which operations it keeps, reads during writes, and the files to which it is written.
#include "coll/flight/flight_recorder.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <thread>

#include "coll/flight/flight_dump.h"
#include "test/check.h"
#include "test/coll/ranks.h"

using namespace ringwise;
using namespace ringwise::test;
using coll::FlightEntry;
using coll::FlightRecorder;
using coll::Verb;
using State = coll::FlightEntry::State;

namespace {

Op op_of(uint64_t seq) {
  Op op;
  op.verb = Verb::AllReduce;
  op.dtype = DType::Float64;
  op.seq = seq;
  op.count = 10 * seq;
  return op;
}

/// Makes a new folder. The destructor removes it, and the file `path` in it.
struct Folder {
  std::string name = "/tmp/ringwise-flight-XXXXXX";
  std::string path;
  Folder() {
    CHECK(mkdtemp(name.data()) != nullptr);
    path = name + "/record.json";
  }
  ~Folder() {
    std::remove(path.c_str());
    rmdir(name.c_str());
  }
};

/// Waits up to about 5 s until the file exists. Returns its text, or "" if it does not appear.
std::string await_file(const std::string& path) {
  for (int tries = 0; tries < 5000; ++tries) {
    std::ifstream file(path);
    if (file) return {std::istreambuf_iterator<char>(file), {}};
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return "";
}

std::atomic<int> seen{0};
void count_signal(int) { ++seen; }

}  // namespace

TEST("the last operations are kept, in the order of the calls") {
  FlightRecorder flight(2);
  const int64_t begin = now_ns();
  const uint64_t calls = 3 * FlightRecorder::kEntries + 7;
  for (uint64_t seq = 0; seq < calls; ++seq) {
    const uint32_t index = flight.enter(op_of(seq));
    flight.start(index, "ring");
    flight.end(index, seq % 2 == 0);
  }
  const auto entries = flight.entries();
  CHECK_EQ(entries.size(), size_t{FlightRecorder::kEntries});
  // The times may be off by the time that it took to read the clocks when the recorder's clock was calibrated.
  CHECK(entries.front().queued_ns > begin - 1'000'000 && entries.back().ended_ns < now_ns() + 1'000'000);
  for (size_t i = 0; i < entries.size(); ++i) {
    const uint64_t seq = calls - FlightRecorder::kEntries + i;
    CHECK_EQ(entries[i].number, seq);
    CHECK_EQ(entries[i].seq, seq);
    CHECK_EQ(entries[i].bytes(), 80 * seq);
    CHECK(entries[i].queued_ns <= entries[i].started_ns && entries[i].started_ns <= entries[i].ended_ns);
    CHECK(i == 0 || entries[i - 1].ended_ns <= entries[i].queued_ns);
    CHECK_EQ(std::string(entries[i].algorithm), "ring");
    CHECK(entries[i].state == (seq % 2 == 0 ? State::Done : State::Failed));
  }
}

TEST("pending operations are kept until they end, and the ring goes around them") {
  FlightRecorder flight(2);
  flight.locate(flight.enter(op_of(0)), "train.ts:1");
  for (uint64_t seq = 1; seq <= 2 * FlightRecorder::kEntries; ++seq) flight.end(flight.enter(op_of(seq)), true);
  const auto entries = flight.entries();
  CHECK_EQ(entries.size(), size_t{FlightRecorder::kEntries});
  CHECK(entries[0].number == 0 && entries[0].state == State::Queued && entries[0].site == "train.ts:1");
  CHECK_EQ(entries[1].number, uint64_t{FlightRecorder::kEntries} + 2);
}

TEST("a ring full of pending operations leaves out new ones, until one has ended") {
  FlightRecorder flight(2);
  const uint32_t first = flight.enter(op_of(0));
  for (uint64_t seq = 1; seq < FlightRecorder::kEntries; ++seq) CHECK(flight.enter(op_of(seq)) != 0);
  CHECK_EQ(flight.enter(op_of(5000)), 0u);
  flight.start(0, "ring");  // index 0 means that there is no entry, so nothing happens
  flight.end(0, true);
  flight.end(first, true);
  CHECK_EQ(flight.enter(op_of(5001)), first);
  const auto entries = flight.entries();
  CHECK_EQ(entries.back().seq, 5001u);
}

TEST("an entry that is read while others are written is consistent") {
  FlightRecorder flight(2);
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    while (!stop) {
      for (const FlightEntry& entry : flight.entries()) {
        CHECK_EQ(entry.seq, entry.number);
        CHECK_EQ(entry.count, 10 * entry.number);
      }
    }
  });
  for (uint64_t seq = 0; seq < 100'000; ++seq) {
    const uint32_t index = flight.enter(op_of(seq));
    if (seq % 3 == 0) flight.locate(index, "train.ts:" + std::to_string(seq % 7));
    flight.start(index, "ring");
    flight.end(index, true);
  }
  stop = true;
  reader.join();
}

TEST("the record has the outcome and the algorithm of calls of every kind") {
  for (const auto place : {one_host, own_host}) {
    with_ranks(2, place, [&](Rank& rank) {
      rank.group->locate_calls_by([] { return std::string("here:1"); });
      std::vector<float> data(4, 1.f);
      CHECK_EQ(rank.run(all_reduce(data, DType::Float32, 0)), "");
      CHECK(rank.finish(rank.group->start(all_reduce(data, DType::Float32, 1))) == nullptr);
      Op message;
      message.verb = rank.rank == 0 ? Verb::Send : Verb::Recv;
      message.dtype = DType::Float32;
      message.root = rank.rank == 0 ? 1 : -1;
      message.count = 4;
      message.input = message.output = reinterpret_cast<std::byte*>(data.data());
      message.timeout_ns = kTimeout;
      CHECK_EQ(rank.run(message), "");
      Op other = all_reduce(data, DType::Float32, 2);
      other.count = rank.rank == 0 ? 4 : 3;
      CHECK(rank.run(other) != "");
      const auto entries = rank.group->flight().entries();
      CHECK_EQ(entries.size(), 4u);
      for (size_t i = 0; i < 4; ++i) {
        const FlightEntry& entry = entries[i];
        CHECK(entry.state == (i < 3 ? State::Done : State::Failed));
        CHECK(entry.queued_ns > 0 && entry.queued_ns <= entry.started_ns && entry.started_ns <= entry.ended_ns);
        CHECK(entry.algorithm != nullptr);
      }
      CHECK_EQ(entries[0].site, "here:1");
      CHECK(entries[2].verb == message.verb && entries[2].root == 1 - rank.rank);
      CHECK_EQ(std::string(entries[2].algorithm), "message");
      CHECK_EQ(std::string(entries[0].algorithm), place == one_host ? "board one-shot" : "recursive-doubling");
    });
  }
}

TEST("the timeout of a blocking call names the call sites of both ranks") {
  std::atomic<bool> failed{false};
  with_ranks(2, one_host, [&](Rank& rank) {
    CHECK_EQ(rank.run(barrier(0)), "");
    rank.group->locate_calls_by([&] { return "train.ts:" + std::to_string(rank.rank); });
    if (rank.rank == 1) {
      Op receive;
      receive.verb = Verb::Recv;
      receive.timeout_ns = kTimeout;
      CHECK(rank.group->run(receive) != nullptr);
      failed = true;
      return;
    }
    Op op = barrier(1);
    op.timeout_ns = 2'000'000'000;
    CHECK_EQ(without_times(rank.run(op)),
             "rank 1 never entered barrier #1 (train.ts:0) within 2000 ms; it has been in recv #0 for T "
             "(0 × uint8 from rank 0, train.ts:1)");
    sleep_until([&] { return failed.load(); });
  });
}

TEST("a record is written at the signal, and the earlier handler is called and restored") {
  struct sigaction mine{}, now{};
  mine.sa_handler = count_signal;
  sigaction(SIGUSR2, &mine, nullptr);
  {
    FlightRecorder flight(2);
    flight.locate(flight.enter(op_of(3)), "a\"b\\c\n.ts:1");
    const Folder first, second;
    const coll::FlightDump one(flight, first.path, "{\"rank\":0}"), other(flight, second.path, "{\"rank\":1}");
    seen = 0;
    raise(SIGUSR2);
    CHECK_EQ(seen.load(), 1);  // the handler that was installed before ran too
    const std::string json = await_file(first.path);
    CHECK_EQ(json.find("{\"rank\":0,\"reason\":\"SIGUSR2\",\"nowMs\":"), 0u);
    CHECK(json.find("\"entries\":[\n{\"number\":0,\"verb\":\"allReduce\",\"seq\":3,\"dtype\":\"float64\",\"count\":30,"
                    "\"bytes\":240,"
                    "\"op\":\"sum\",\"root\":null,\"peer\":null,\"tag\":null,\"state\":\"queued\",\"queuedMs\":") !=
          std::string::npos);
    CHECK(json.find("\"startedMs\":null,\"endedMs\":null,\"algorithm\":null,\"callSite\":\"a\\\"b\\\\c .ts:1\"}\n]}") !=
          std::string::npos);
    CHECK_EQ(await_file(second.path).substr(0, 10), "{\"rank\":1,");
  }
  sigaction(SIGUSR2, nullptr, &now);
  CHECK(now.sa_handler == count_signal);
  signal(SIGUSR2, SIG_DFL);
}

TEST("a library that passes the signal on to us may stay installed when we come back") {
  static struct sigaction ours;
  seen = 0;
  FlightRecorder flight(2);
  const Folder folder;
  {
    const coll::FlightDump first(flight, folder.path, "{}");
    struct sigaction chains{};
    chains.sa_sigaction = [](int number, siginfo_t* info, void* context) {
      count_signal(number);
      ours.sa_sigaction(number, info, context);
    };
    chains.sa_flags = SA_SIGINFO;
    sigaction(SIGUSR2, &chains, &ours);
  }
  const coll::FlightDump second(flight, folder.path, "{}");
  raise(SIGUSR2);
  CHECK_EQ(seen.load(), 1);
  await_file(folder.path);
  signal(SIGUSR2, SIG_DFL);
}

TEST("a failure writes the record") {
  const Folder folders[2];
  std::vector<std::unique_ptr<HostGroup>> groups;
  for (int rank = 0; rank < 2; ++rank) {
    groups.push_back(std::make_unique<HostGroup>(rank, 2, "127.0.0.1", [] {}));
    groups[rank]->dump_flight_to(folders[rank].path, "{}");
  }
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      const auto& listener = groups[1 - rank]->listener();
      const coll::PeerAddress peer{1 - rank,
                                   true,
                                   listener.unix_name(),
                                   "127.0.0.1",
                                   listener.port(),
                                   proof(rank, 1 - rank),
                                   proof(1 - rank, rank)};
      groups[rank]->wait(groups[rank]->connect({peer}, kTimeout));
      std::vector<float> data(rank + 1);
      CHECK(groups[rank]->run(all_reduce(data, DType::Float32, 0)) != nullptr);
      const std::string json = await_file(folders[rank].path);
      CHECK(json.find("\"reason\":\"rank 0 called allReduce sum 1 × float32 (seq 0) but rank 1 called") !=
            std::string::npos);
      CHECK(json.find("\"state\":\"running\"") != std::string::npos);
    });
  }
  for (auto& thread : threads) thread.join();
}

int main() { return run_all(); }
