#include "coll/failure/last_calls.h"

#include <array>
#include <atomic>

#include "base/text_line.h"
#include "coll/handshake/signature.h"

namespace ringwise::coll {

namespace {

struct Watched {
  std::atomic<bool> is_taken{false};
  std::atomic<const FlightRecorder*> flight{nullptr};
  std::atomic<int> ranks{0};
};
std::array<Watched, 16> watched;

}  // namespace

LastCalls::LastCalls(const FlightRecorder& flight, int ranks) : index_(0) {
  while (index_ < watched.size() && watched[index_].is_taken.exchange(true)) ++index_;
  if (index_ == watched.size()) return;
  watched[index_].ranks = ranks;
  watched[index_].flight = &flight;
}

LastCalls::~LastCalls() {
  if (index_ == watched.size()) return;
  watched[index_].flight = nullptr;
  watched[index_].is_taken = false;
}

void write_last_calls(int fd) {
  for (const Watched& each : watched) {
    const FlightRecorder* flight = each.flight;
    FlightRecorder::Glance last;
    if (flight == nullptr || !flight->last_called(last)) continue;
    TextLine line;
    line << "last call in a group of " << static_cast<uint64_t>(each.ranks.load()) << " ranks: " << name_of(last.verb)
         << " #" << last.seq << ", " << name_of(last.state);
    if (last.site[0] != 0) line << ", " << last.site;
    line.write_to(fd);
  }
}

}  // namespace ringwise::coll
