#include "coll/flight/flight_dump.h"

#include <fcntl.h>
#include <signal.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <memory>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include "base/fd.h"
#include "base/os/thread.h"
#include "base/os/wakeup.h"
#include "base/time/clock.h"
#include "coll/handshake/labels.h"
#include "coll/handshake/signature.h"

namespace ringwise::coll {

namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= 0x20)
      out += c;
    else
      out += ' ';
  }
  return out + '"';
}

std::string milliseconds(int64_t ns) {
  char text[40];
  std::snprintf(text, sizeof text, "%lld.%06lld", static_cast<long long>(ns / kMillisecond),
                static_cast<long long>(ns % kMillisecond));
  return text;
}

std::string to_json(const FlightEntry& entry) {
  const bool message = entry.verb == Verb::Send || entry.verb == Verb::Recv;
  std::string json;
  const auto put = [&](const char* key, const std::string& value) {
    json.append(json.empty() ? "{\"" : ",\"").append(key).append("\":").append(value);
  };
  const auto put_if = [&](const char* key, bool has, const auto& value) { put(key, has ? value() : "null"); };
  put("number", std::to_string(entry.number));
  put("verb", quoted(name_of(entry.verb)));
  put("seq", std::to_string(entry.seq));
  put_if("dtype", entry.verb != Verb::Barrier, [&] { return quoted(name_of(entry.dtype)); });
  put("count", std::to_string(entry.count));
  put("bytes", std::to_string(entry.bytes()));
  put_if("op", reduces(entry.verb), [&] { return quoted(name_of(entry.reduce)); });
  put_if("root", has_root(entry.verb), [&] { return std::to_string(entry.root); });
  put_if("peer", message, [&] { return std::to_string(entry.root); });
  put_if("tag", message, [&] { return std::to_string(entry.tag); });
  put("state", quoted(name_of(entry.state)));
  put("queuedMs", milliseconds(entry.queued_ns));
  const std::string label = text_of_label(entry.label);
  put_if("label", !label.empty(), [&] { return quoted(label); });
  put_if("startedMs", entry.started_ns != 0, [&] { return milliseconds(entry.started_ns); });
  put_if("endedMs", entry.ended_ns != 0, [&] { return milliseconds(entry.ended_ns); });
  put_if("algorithm", entry.algorithm != nullptr, [&] { return quoted(entry.algorithm); });
  put_if("callSite", !entry.site.empty(), [&] { return quoted(entry.site); });
  return json + '}';
}

/// The wake-up that the signal handler rings; null while there is no Writer.
std::atomic<os::Wakeup*> signalled{nullptr};
struct sigaction before;
/// Set while a thread calls the handler that was installed before ours. It may call ours again: a handler of a library
/// that chains to ours stays installed when ours is removed, and is the earlier one when ours is installed again.
std::atomic_flag is_passing_on;

void on_signal(int number, siginfo_t* info, void* context) {
  const int error = errno;
  if (os::Wakeup* const wakeup = signalled) wakeup->ring();
  errno = error;
  if (is_passing_on.test_and_set()) return;
  if ((before.sa_flags & SA_SIGINFO) != 0)
    before.sa_sigaction(number, info, context);
  else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
    before.sa_handler(number);
  is_passing_on.clear();
}

/// Writes all FlightDumps of this process when it gets SIGUSR2. Exists while there are any.
class Writer {
 public:
  Writer() {
    thread_ = std::thread([this] { run(); });
    struct sigaction mine{};
    mine.sa_sigaction = on_signal;
    mine.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    signalled = &wakeup_;
    sigaction(SIGUSR2, &mine, &before);
  }
  ~Writer() {
    struct sigaction current{};
    sigaction(SIGUSR2, nullptr, &current);
    // Restore the earlier handler only if no other code has installed its own since.
    if ((current.sa_flags & SA_SIGINFO) != 0 && current.sa_sigaction == on_signal) sigaction(SIGUSR2, &before, nullptr);
    signalled = nullptr;
    stop_ = true;
    wakeup_.ring();
    thread_.join();
  }

  void add(const FlightDump* dump) {
    std::lock_guard lock(mutex_);
    dumps_.insert(dump);
  }
  /// Removes `dump`, which is not written after this. Returns true if it was the last one.
  bool remove(const FlightDump* dump) {
    std::lock_guard lock(mutex_);
    dumps_.erase(dump);
    return dumps_.empty();
  }

 private:
  void run() {
    os::name_this_thread("ringwise-flight");
    for (wakeup_.wait(); !stop_; wakeup_.wait()) {
      std::lock_guard lock(mutex_);
      for (const FlightDump* dump : dumps_) dump->write("SIGUSR2");
    }
  }

  os::Wakeup wakeup_;
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::set<const FlightDump*> dumps_;  // mutex_
  std::thread thread_;
};

std::mutex writer_mutex;
std::unique_ptr<Writer> writer;  // writer_mutex; null while there are no dumps

std::mutex file_mutex;  // held while a file is written, so that one is written at a time

}  // namespace

std::string to_json(const std::vector<FlightEntry>& entries) {
  std::string json = "[";
  for (const FlightEntry& entry : entries) json.append(json.size() > 1 ? ",\n" : "\n").append(to_json(entry));
  return json + "\n]";
}

FlightDump::FlightDump(const FlightRecorder& flight, std::string path, std::string head)
    : flight_(flight), path_(std::move(path)), head_(head.substr(0, head.rfind('}'))) {
  std::lock_guard lock(writer_mutex);
  if (!writer) writer = std::make_unique<Writer>();
  writer->add(this);
}

FlightDump::~FlightDump() {
  std::lock_guard lock(writer_mutex);
  if (writer->remove(this)) writer.reset();
}

void FlightDump::write(const std::string& reason) const {
  using namespace std::chrono;
  const auto unix_ns = duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count();
  const std::string json = head_ + ",\"reason\":" + quoted(reason) + ",\"nowMs\":" + milliseconds(now_ns()) +
                           ",\"unixMs\":" + milliseconds(unix_ns) + ",\"entries\":" + to_json(flight_.entries()) +
                           "}\n";
  const std::string draft = path_ + ".part";  // renamed when complete, so that readers never see half a file
  std::lock_guard lock(file_mutex);
  const Fd file(::open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  size_t written = 0;
  while (file && written < json.size()) {
    const ssize_t bytes = ::write(file.get(), json.data() + written, json.size() - written);
    if (bytes <= 0 && errno != EINTR) break;
    written += bytes > 0 ? static_cast<size_t>(bytes) : 0;
  }
  if (written < json.size() || std::rename(draft.c_str(), path_.c_str()) != 0) std::remove(draft.c_str());
}

}  // namespace ringwise::coll
