#include "mpi/library.h"

#include <list>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/time/clock.h"
#include "coll/failure/failure.h"

namespace ringwise::mpi {

namespace {

struct Message {
  MPI_Request request;
  std::string bytes;
};

std::mutex mutex;
std::optional<World> started;     // under mutex
bool is_finalize_allowed = true;  // under mutex
// Returns the messages of leave_to_mpi(). Access under `mutex`. Never destroyed, because MPI may use them until the
// process ends.
std::list<Message>& kept() {
  static auto* const messages = new std::list<Message>;
  return *messages;
}

std::string version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string whole(text, static_cast<size_t>(length));
  return whole.substr(0, whole.find('\n'));
}

/// Returns whether all requests of leave_to_mpi() end within 10 s. Even if its group has failed, a request still ends
/// if the other ranks have taken part in it.
bool kept_requests_end() {
  const int64_t deadline = now_ns() + 10'000 * kMillisecond;
  for (Message& message : kept()) {
    for (int done = 0; done == 0;) {
      if (now_ns() > deadline || MPI_Test(&message.request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
      if (done == 0) std::this_thread::yield();
    }
  }
  return true;
}

}  // namespace

void check(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw coll::Failure(coll::FailureCode::System, -1, {},
                      std::string(what) + " failed: " + std::string(text, static_cast<size_t>(length)));
}

const World& world() {
  const std::lock_guard lock(mutex);
  int has_ended = 0;
  MPI_Finalized(&has_ended);
  if (has_ended)
    throw coll::Failure(coll::FailureCode::System, -1, {},
                        "it has ended in this process, with the last thread that used it, and cannot be started again");
  if (started) return *started;
  int is_running = 0;
  int threads = MPI_THREAD_SINGLE;
  MPI_Initialized(&is_running);
  if (is_running) {
    check(MPI_Query_thread(&threads), "MPI_Query_thread");
  } else {
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &threads), "MPI_Init_thread");
  }
  if (threads < MPI_THREAD_MULTIPLE) {
    throw coll::Failure(coll::FailureCode::System, -1, {},
                        version() + " does not support several threads (MPI_THREAD_MULTIPLE) in this process");
  }
  World found{0, 1, version()};
  check(MPI_Comm_rank(MPI_COMM_WORLD, &found.rank), "MPI_Comm_rank");
  check(MPI_Comm_size(MPI_COMM_WORLD, &found.size), "MPI_Comm_size");
  started = std::move(found);
  return *started;
}

void leave_to_mpi(MPI_Request request, std::string bytes) {
  const std::lock_guard lock(mutex);
  kept().push_back({request, std::move(bytes)});
}

void forbid_finalize() {
  const std::lock_guard lock(mutex);
  is_finalize_allowed = false;
}

bool can_finalize() {
  const std::lock_guard lock(mutex);
  return started && is_finalize_allowed;
}

void finish() {
  const std::lock_guard lock(mutex);
  int has_ended = 0;
  MPI_Finalized(&has_ended);
  if (started && is_finalize_allowed && !has_ended && kept_requests_end()) MPI_Finalize();
}

}  // namespace ringwise::mpi
