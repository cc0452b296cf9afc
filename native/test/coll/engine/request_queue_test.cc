// Tests the queue through which the threads of a program hand operations to the engine of their group, and get back how
// they ended.
#include "coll/engine/request_queue.h"

#include <atomic>
#include <thread>
#include <vector>

#include "test/check.h"

using namespace ringwise;
using namespace ringwise::test;
using namespace ringwise::coll;

namespace {

Op op_of(Verb verb, int64_t deadline_ns = 0) {
  Op op{};
  op.verb = verb;
  op.deadline_ns = deadline_ns;
  return op;
}

/// Takes an operation out of the queue and returns its id; 0 if there is none.
uint64_t popped(RequestQueue& queue, bool collectives) {
  const auto op = queue.pop(collectives);
  return op ? op->id : 0;
}

}  // namespace

TEST("requests have ascending ids, and messages overtake collectives") {
  RequestQueue queue([] {});
  Op first = op_of(Verb::Barrier), second = op_of(Verb::Send), third = op_of(Verb::Barrier);
  for (Op* op : {&first, &second, &third}) queue.push(*op);
  CHECK(first.id < second.id && second.id < third.id);
  CHECK(queue.has_news());
  queue.see();
  CHECK(!queue.has_news());
  CHECK_EQ(popped(queue, false), second.id);
  CHECK(!queue.pop(false));
  CHECK_EQ(popped(queue, true), first.id);
  CHECK_EQ(popped(queue, true), third.id);
  CHECK(!queue.pop(true));
}

TEST("the earliest deadline is that of a queued collective") {
  RequestQueue queue([] {});
  Op late = op_of(Verb::Barrier, 20), early = op_of(Verb::Barrier, 10), message = op_of(Verb::Send, 5);
  for (Op* op : {&late, &early, &message}) queue.push(*op);
  CHECK_EQ(queue.earliest_deadline(), 10);
  CHECK_EQ(queue.take_all().size(), 3u);
  CHECK_EQ(queue.earliest_deadline(), std::numeric_limits<int64_t>::max());
}

TEST("a group leaves when it is closed and nothing else is requested") {
  RequestQueue queue([] {});
  CHECK(!queue.may_leave());
  Op op = op_of(Verb::Barrier);
  queue.push(op);
  const uint64_t id = queue.close();
  CHECK(!queue.may_leave());
  queue.abort({FailureCode::Aborted, 0, {0}, "because"});
  queue.pop(true);
  CHECK(!queue.may_leave());
  CHECK(queue.take_abort()->text == "because");
  CHECK(!queue.take_abort());
  CHECK(queue.may_leave());
  CHECK_EQ(queue.take_closing(), id);
  CHECK(!queue.may_leave());
}

TEST("ended operations are returned once, in order of ending, and one can be taken out") {
  std::atomic<int> told{0};
  RequestQueue queue([&] { ++told; });
  queue.end({3, nullptr});
  queue.end({1, nullptr, 7});
  queue.end({2, nullptr});
  CHECK_EQ(told.load(), 3);
  CHECK(queue.has_ended(1));
  CHECK_EQ(queue.take(1).source, 7);
  CHECK(!queue.has_ended(1));
  std::vector<Ended> ended;
  queue.take_ended(ended);
  CHECK_EQ(ended.size(), 2u);
  CHECK_EQ(ended[0].id, 3u);
  CHECK_EQ(ended[1].id, 2u);
  queue.take_ended(ended);
  CHECK(ended.empty());
}

TEST("a thread waits for an end, another for news") {
  RequestQueue queue([] {});
  std::thread waiter([&] { queue.wait_until_ended(9); });
  queue.end({8, nullptr});
  queue.end({9, nullptr});
  waiter.join();
  std::thread lane([&] { queue.wait_for_news(std::chrono::minutes(1)); });
  Op op = op_of(Verb::Barrier);
  queue.push(op);
  lane.join();
  queue.see();
  std::thread stopped([&] { queue.wait_for_news(std::chrono::minutes(1)); });
  queue.wake();
  stopped.join();
}

int main() { return run_all(); }
