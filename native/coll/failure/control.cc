#include "coll/failure/control.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <optional>
#include <system_error>

#include "base/os/socket.h"
#include "base/time/clock.h"
#include "coll/handshake/labels.h"

namespace ringwise::coll {

namespace {

struct FrameHeader {
  uint16_t kind;
  uint16_t bytes;
};
constexpr size_t kMaxPayload = 32'768;
constexpr size_t kMaxFailureText = 2048;

constexpr int64_t kNoPeer = -1;  // the tag of `wake`; that of a connection is its rank

/// Encodes a failure as: code u8, origin i32, number of peers u16, peers i32…, text. All ranks need the same peers,
/// because shrink() continues without them, so a frame has room for those of 7,000 ranks.
std::string encode(const Failure& failure) {
  std::string bytes;
  const auto put = [&](auto value) { bytes.append(reinterpret_cast<const char*>(&value), sizeof value); };
  put(static_cast<uint8_t>(failure.code));
  put(static_cast<int32_t>(failure.origin));
  const size_t room = (kMaxPayload - kMaxFailureText - bytes.size() - sizeof(uint16_t)) / sizeof(int32_t);
  const auto count = static_cast<uint16_t>(std::min(failure.peers.size(), room));
  put(count);
  for (size_t i = 0; i < count; ++i) put(static_cast<int32_t>(failure.peers[i]));
  return bytes + failure.text.substr(0, kMaxFailureText);
}

std::optional<Failure> decode(const char* at, size_t bytes) {
  const char* end = at + bytes;
  const auto get = [&](auto& value) {
    if (static_cast<size_t>(end - at) < sizeof value) return false;
    std::memcpy(&value, at, sizeof value);
    at += sizeof value;
    return true;
  };
  uint8_t code;
  int32_t origin;
  uint16_t count;
  if (!get(code) || !get(origin) || !get(count) || code > static_cast<uint8_t>(FailureCode::System))
    return std::nullopt;
  std::vector<int> peers;
  for (int32_t peer; count > 0 && get(peer); --count) peers.push_back(peer);
  return Failure(static_cast<FailureCode>(code), origin, std::move(peers), std::string(at, end));
}

constexpr size_t kMaxText = 512;

/// The fixed-size head of an Activity frame; the name and the details follow.
struct ActivityFrame {
  int64_t for_ns;
  uint64_t begun;
  uint16_t name_bytes;
  uint8_t kind;
};

std::string encode(const Activity& activity) {
  const std::string name = activity.name.substr(0, kMaxText);
  ActivityFrame frame{};
  frame.for_ns = activity.for_ns;
  frame.begun = activity.begun;
  frame.name_bytes = static_cast<uint16_t>(name.size());
  frame.kind = static_cast<uint8_t>(activity.kind);
  return std::string(reinterpret_cast<const char*>(&frame), sizeof frame) + name + activity.details.substr(0, kMaxText);
}

std::optional<Activity> decode_activity(const char* at, size_t bytes) {
  ActivityFrame frame;
  if (bytes < sizeof frame) return std::nullopt;
  std::memcpy(&frame, at, sizeof frame);
  const std::string text(at + sizeof frame, bytes - sizeof frame);
  if (frame.kind > static_cast<uint8_t>(Activity::Kind::Idle) || frame.name_bytes > text.size()) return std::nullopt;
  return Activity{static_cast<Activity::Kind>(frame.kind), frame.for_ns, frame.begun, text.substr(0, frame.name_bytes),
                  text.substr(frame.name_bytes)};
}

}  // namespace

Control::Control(std::vector<Fd> connections, const std::vector<int>& data, int wake) {
  peers_.resize(connections.size());
  for (size_t rank = 0; rank < connections.size(); ++rank) {
    if (!connections[rank]) continue;
    poller_.watch(connections[rank].get(), static_cast<int64_t>(rank));
    peers_[rank].fd = std::move(connections[rank]);
  }
  poller_.watch(wake, kNoPeer);
  // Watch the data connections for changes only: the engine has tried every link before it sleeps.
  for (const int fd : data) poller_.watch_changes(fd);
}

/// Sends as much of `frame`, from `sent` on, as the peer's socket accepts. Returns true if nothing is left to send: the
/// frame is complete, or the connection is broken, which the reading side of the connection reports.
bool Control::push(int peer, std::span<const char> frame, size_t& sent) {
  while (sent < frame.size()) {
    const ssize_t taken =
        ::send(peers_[peer].fd.get(), frame.data() + sent, frame.size() - sent, os::kNoSignal | MSG_DONTWAIT);
    if (taken > 0)
      sent += static_cast<size_t>(taken);
    else if (errno == EAGAIN)
      return false;
    else if (errno != EINTR)
      return true;
  }
  return true;
}

void Control::send(std::span<const int> peers, Kind kind, const void* payload, size_t bytes) {
  const FrameHeader header{static_cast<uint16_t>(kind), static_cast<uint16_t>(bytes)};
  std::string frame(reinterpret_cast<const char*>(&header), sizeof header);
  if (bytes > 0) frame.append(static_cast<const char*>(payload), bytes);
  struct Unsent {
    int peer;
    size_t sent;
  };
  std::vector<Unsent> unsent;
  for (const int peer : peers) {
    size_t sent = 0;
    if (!peers_[peer].fd || push(peer, frame, sent)) continue;
    // Unread bytes wake the peer, so a doorbell is not needed.
    if (kind != Kind::Doorbell || sent > 0) unsent.push_back({peer, sent});
  }
  // Frames are rare and small compared with a socket's buffer. If some are full nevertheless, this rank waits for all
  // of them together, at most a second.
  std::vector<pollfd> fds;
  for (int tries = 0; !unsent.empty() && tries < 100; ++tries) {
    fds.clear();
    for (const Unsent& each : unsent) fds.push_back({peers_[each.peer].fd.get(), POLLOUT, 0});
    ::poll(fds.data(), fds.size(), 10);
    std::erase_if(unsent, [&](Unsent& each) { return push(each.peer, frame, each.sent); });
  }
  // These peers have not read for a second, and the frame is lost. After a partial frame no other frame can follow, so
  // the connection is closed: a peer that does not receive the root cause must at least notice that this rank is gone.
  for (const Unsent& each : unsent) {
    if (each.sent > 0 || kind == Kind::Poison) ::shutdown(peers_[each.peer].fd.get(), SHUT_RDWR);
  }
}

void Control::send_to_all(Kind kind, const void* payload, size_t bytes) {
  std::vector<int> all(peers_.size());
  std::iota(all.begin(), all.end(), 0);
  send(all, kind, payload, bytes);
}

void Control::ring(int peer) { send(peer, Kind::Doorbell, nullptr, 0); }

void Control::report(int peer, const Failure& failure) {
  const std::string payload = encode(failure);
  send(peer, Kind::Report, payload.data(), payload.size());
}

void Control::poison(const Failure& failure) {
  const std::string payload = encode(failure);
  send_to_all(Kind::Poison, payload.data(), payload.size());
}

void Control::ask(int peer, const Signature& signature) { send(peer, Kind::Question, &signature, sizeof signature); }

void Control::answer(int peer, const Activity& activity) {
  const std::string payload = encode(activity);
  send(peer, Kind::Activity, payload.data(), payload.size());
}

void Control::ask_label(int peer, uint64_t label) { send(peer, Kind::LabelQuestion, &label, sizeof label); }

void Control::answer_label(int peer, uint64_t label) {
  const std::string payload = std::string(reinterpret_cast<const char*>(&label), sizeof label) + text_of_label(label);
  send(peer, Kind::Label, payload.data(), payload.size());
}

void Control::say_goodbye() { send_to_all(Kind::Goodbye, nullptr, 0); }

void Control::drop(int peer) {
  if (!peers_[peer].fd) return;
  poller_.forget(peers_[peer].fd.get());
  peers_[peer].fd.reset();
}

void Control::reject(int peer, ControlEvents& events) {
  drop(peer);
  events.on_garbage(peer);
}

void Control::poll(ControlEvents& events) {
  int64_t ready[os::Poller::kMost];
  for (;;) {
    const size_t count = poller_.wait(ready, 0);
    bool any = false;
    for (size_t i = 0; i < count; ++i) {
      if (ready[i] == kNoPeer) continue;
      any = true;
      read(static_cast<int>(ready[i]), events);
    }
    if (!any) return;
  }
}

void Control::read(int peer, ControlEvents& events) {
  auto& inbox = peers_[peer].inbox;
  char bytes[4096];
  const ssize_t got = ::recv(peers_[peer].fd.get(), bytes, sizeof bytes, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    const char* reason = got == 0 ? "its connection closed" : std::strerror(errno);
    drop(peer);
    events.on_dead(peer, reason);
    return;
  }
  inbox.insert(inbox.end(), bytes, bytes + got);
  size_t used = 0;
  while (inbox.size() - used >= sizeof(FrameHeader)) {
    FrameHeader header;
    std::memcpy(&header, inbox.data() + used, sizeof header);
    if (header.bytes > kMaxPayload) return reject(peer, events);
    if (inbox.size() - used < sizeof header + header.bytes) break;
    dispatch(peer, static_cast<Kind>(header.kind), inbox.data() + used + sizeof header, header.bytes, events);
    if (!peers_[peer].fd) return;  // dispatch() has closed it because the frame was invalid
    used += sizeof header + header.bytes;
  }
  inbox.erase(inbox.begin(), inbox.begin() + static_cast<std::ptrdiff_t>(used));
}

void Control::dispatch(int peer, Kind kind, const char* payload, size_t bytes, ControlEvents& events) {
  switch (kind) {
    case Kind::Doorbell: return;  // its arrival was the message
    case Kind::Goodbye: return events.on_left(peer);
    case Kind::Report:
    case Kind::Poison: {
      auto failure = decode(payload, bytes);
      if (!failure) return reject(peer, events);
      return kind == Kind::Poison ? events.on_poison(peer, std::move(*failure))
                                  : events.on_report(peer, std::move(*failure));
    }
    case Kind::Question: {
      Signature signature;
      if (bytes != sizeof signature) return reject(peer, events);
      std::memcpy(&signature, payload, sizeof signature);
      return events.on_question(peer, signature);
    }
    case Kind::Activity: {
      const auto activity = decode_activity(payload, bytes);
      return activity ? events.on_activity(peer, *activity) : reject(peer, events);
    }
    case Kind::LabelQuestion:
    case Kind::Label: {
      uint64_t label;
      if (bytes < sizeof label) return reject(peer, events);
      std::memcpy(&label, payload, sizeof label);
      if (kind == Kind::LabelQuestion) return events.on_label_question(peer, label);
      return remember_label(label, std::string_view(payload + sizeof label, bytes - sizeof label));
    }
  }
  reject(peer, events);
}

void Control::wait(int64_t timeout_ns) {
  const auto timeout_ms =
      static_cast<int>(std::clamp<int64_t>((timeout_ns + kMillisecond - 1) / kMillisecond, 0, 1000));
  poller_.wait_for_all(timeout_ms);
}

void Control::wait_idle(int64_t timeout_ns) {
  int64_t ready[8];
  poller_.wait(ready, static_cast<int>((timeout_ns + kMillisecond - 1) / kMillisecond));
}

void Control::set_timer(int64_t ns) { poller_.set_timer(ns); }

}  // namespace ringwise::coll
