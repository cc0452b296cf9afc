#include "mpi/channel/communicator.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/time/clock.h"
#include "coll/failure/failure.h"
#include "mpi/library.h"

namespace ringwise::mpi {

using coll::Failure;
using coll::FailureCode;

namespace {

constexpr int64_t kLeaving = 1000 * kMillisecond;              // time for the other members after `stop` is set
constexpr auto kBetweenLooks = std::chrono::milliseconds(10);  // at `stop`

/// One call of MPI_Comm_create_group. Shared with the thread that makes the call, which may outlive its caller.
struct Call {
  std::mutex mutex;
  std::condition_variable ended;
  bool has_ended = false;  // mutex, like the members below
  MPI_Comm comm = MPI_COMM_NULL;
  std::optional<Failure> failure;
};

MPI_Comm create(const std::vector<int>& members, int tag) {
  MPI_Group all = MPI_GROUP_NULL;
  MPI_Group group = MPI_GROUP_NULL;
  MPI_Comm comm = MPI_COMM_NULL;
  check(MPI_Comm_group(MPI_COMM_WORLD, &all), "MPI_Comm_group");
  check(MPI_Group_incl(all, static_cast<int>(members.size()), members.data(), &group), "MPI_Group_incl");
  check(MPI_Comm_create_group(MPI_COMM_WORLD, group, tag, &comm), "MPI_Comm_create_group");
  MPI_Group_free(&group);
  MPI_Group_free(&all);
  return comm;
}

void run(Call& call, const std::vector<int>& members, int tag) {
  MPI_Comm comm = MPI_COMM_NULL;
  std::optional<Failure> failure;
  try {
    comm = create(members, tag);
  } catch (const Failure& of_mpi) {
    failure = of_mpi;
  }
  {
    const std::lock_guard lock(call.mutex);
    call.comm = comm;
    call.failure = std::move(failure);
    call.has_ended = true;
  }
  call.ended.notify_all();
}

Failure timeout(int rank, int size, int64_t timeout_ns) {
  std::vector<int> others;
  std::string names;
  for (int peer = 0; peer < size; ++peer) {
    if (peer == rank) continue;
    names += (others.empty() ? "" : ", ") + std::to_string(peer);
    others.push_back(peer);
  }
  const std::string who = others.size() == 1 ? "rank " + names + " does" : "one or more of ranks " + names + " do";
  return {FailureCode::Timeout, rank, std::move(others),
          "MPI has made no communicator within " + std::to_string(timeout_ns / kMillisecond) + " ms, because " + who +
              " not take part"};
}

}  // namespace

MPI_Comm make_communicator(std::vector<int> members, int tag, int rank, int64_t timeout_ns,
                           const std::atomic<bool>& stop) {
  const int size = static_cast<int>(members.size());
  int64_t deadline = now_ns() + timeout_ns;
  const auto call = std::make_shared<Call>();
  std::thread thread([call, members = std::move(members), tag] { run(*call, members, tag); });
  bool is_leaving = false;
  std::unique_lock lock(call->mutex);
  while (!call->has_ended && now_ns() < deadline) {
    call->ended.wait_for(lock, kBetweenLooks);
    if (stop && !std::exchange(is_leaving, true)) deadline = std::min(deadline, now_ns() + kLeaving);
  }
  const bool has_ended = call->has_ended;
  lock.unlock();
  if (!has_ended) {
    thread.detach();
    forbid_finalize();
    if (is_leaving) throw Failure(FailureCode::Closed, rank, {rank}, "the group was closed while it was connecting");
    throw timeout(rank, size, timeout_ns);
  }
  thread.join();
  if (call->failure) throw Failure(*call->failure);
  return call->comm;
}

}  // namespace ringwise::mpi
