#include "coll/flight/flight_recorder.h"

#include <algorithm>
#include <numeric>

#include "coll/handshake/labels.h"
#include "coll/handshake/signature.h"

namespace ringwise::coll {

namespace {

// Most source locations that are stored. A program has few lines that call collectives, but one that generates code
// must not fill the memory.
constexpr size_t kMaxSites = 4096;

uint64_t count_of(const Op& op, int ranks) {
  if (op.counts != nullptr) return std::accumulate(op.counts, op.counts + ranks, uint64_t{0});
  return op.verb == Verb::AllToAll ? op.count * static_cast<uint64_t>(ranks) : op.count;
}

}  // namespace

FlightRecorder::FlightRecorder(int ranks) : ranks_(ranks), slots_(std::make_unique<Slot[]>(kEntries)) {}

uint32_t FlightRecorder::enter(const Op& op, const char* algorithm) {
  ++number_;
  uint32_t tried = 0;
  while (!has_ended(slots_[next_])) {
    if (++tried == kEntries) return 0;
    next_ = next_ + 1 < kEntries ? next_ + 1 : 0;
  }
  Slot& slot = slots_[next_];
  next_ = next_ + 1 < kEntries ? next_ + 1 : 0;
  const auto put = [](auto& member, auto value) { member.store(value, std::memory_order_release); };
  slot.number.store(0, std::memory_order_relaxed);
  put(slot.seq, op.seq);
  put(slot.count, count_of(op, ranks_));
  put(slot.label, op.label);
  const int64_t now = clock_.now();
  put(slot.queued, now);
  put(slot.started, algorithm == nullptr ? 0 : now);
  put(slot.ended, int64_t{0});
  put(slot.algorithm, algorithm);
  put(slot.root, op.root);
  put(slot.tag, op.tag);
  put(slot.site, uint32_t{0});
  put(slot.verb, static_cast<uint8_t>(op.verb));
  put(slot.dtype, static_cast<uint8_t>(op.dtype));
  put(slot.reduce, static_cast<uint8_t>(op.reduce));
  put(slot.state,
      static_cast<uint8_t>(algorithm == nullptr ? FlightEntry::State::Queued : FlightEntry::State::Running));
  put(slot.number, number_);
  return static_cast<uint32_t>(&slot - slots_.get()) + 1;
}

void FlightRecorder::locate(uint32_t index, const std::string& site) {
  if (index == 0 || site.empty()) return;
  auto known = site_numbers_.find(site);
  if (known == site_numbers_.end()) {
    if (site_numbers_.size() == kMaxSites) return;
    std::lock_guard lock(sites_mutex_);
    sites_.push_back(site.substr(0, kMaxSiteBytes));
    known = site_numbers_.emplace(site, static_cast<uint32_t>(sites_.size())).first;
  }
  at(index).site.store(known->second, std::memory_order_release);
}

bool FlightRecorder::read(uint32_t index, FlightEntry& entry) const {
  return index != 0 && read(index, entry, clock_.scale());
}

bool FlightRecorder::read(uint32_t index, FlightEntry& entry, const TickClock::Scale& scale) const {
  const Slot& slot = at(index);
  const auto get = [](const auto& member) { return member.load(std::memory_order_acquire); };
  const auto ns_of = [&](int64_t ticks) { return ticks == 0 ? 0 : scale.ns_of(ticks); };
  const uint64_t number = get(slot.number);
  if (number == 0) return false;
  entry.number = number - 1;
  entry.seq = get(slot.seq);
  entry.count = get(slot.count);
  entry.label = get(slot.label);
  entry.queued_ns = ns_of(get(slot.queued));
  entry.started_ns = ns_of(get(slot.started));
  entry.ended_ns = ns_of(get(slot.ended));
  entry.algorithm = get(slot.algorithm);
  entry.root = get(slot.root);
  entry.tag = get(slot.tag);
  entry.verb = static_cast<Verb>(get(slot.verb));
  entry.dtype = static_cast<DType>(get(slot.dtype));
  entry.reduce = static_cast<ReduceOp>(get(slot.reduce));
  entry.state = static_cast<FlightEntry::State>(get(slot.state));
  const uint32_t site = get(slot.site);
  if (get(slot.number) != number) return false;
  entry.site.clear();
  if (site == 0) return true;
  std::lock_guard lock(sites_mutex_);
  entry.site = sites_[site - 1];
  return true;
}

std::vector<FlightEntry> FlightRecorder::entries() const {
  std::vector<FlightEntry> entries;
  entries.reserve(kEntries);
  FlightEntry entry;
  const TickClock::Scale scale = clock_.scale();
  for (uint32_t index = 1; index <= kEntries; ++index) {
    if (read(index, entry, scale)) entries.push_back(entry);
  }
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.number < b.number; });
  return entries;
}

bool FlightRecorder::last_called(Glance& last) const {
  const Slot* slot = nullptr;
  uint64_t number = 0;
  for (uint32_t index = 1; index <= kEntries; ++index) {
    const uint64_t found = at(index).number.load(std::memory_order_acquire);
    if (found > number) {
      number = found;
      slot = &at(index);
    }
  }
  if (slot == nullptr) return false;
  last.verb = static_cast<Verb>(slot->verb.load(std::memory_order_relaxed));
  last.seq = slot->seq.load(std::memory_order_relaxed);
  last.state = static_cast<FlightEntry::State>(slot->state.load(std::memory_order_relaxed));
  const uint32_t site = slot->site.load(std::memory_order_acquire);
  if (site == 0 || !sites_mutex_.try_lock()) return true;
  sites_[site - 1].copy(last.site, kMaxSiteBytes);
  sites_mutex_.unlock();
  return true;
}

std::string name_of(const FlightEntry& entry) {
  return std::string(name_of(entry.verb)) + " #" + std::to_string(entry.seq);
}

std::string details_of(const FlightEntry& entry) {
  std::string text;
  if (entry.verb != Verb::Barrier) {
    if (reduces(entry.verb) && entry.reduce != ReduceOp::Sum) text.append(name_of(entry.reduce)).append(" of ");
    text.append(std::to_string(entry.count)).append(" × ").append(name_of(entry.dtype));
    const bool from = entry.verb == Verb::Broadcast || entry.verb == Verb::Scatter || entry.verb == Verb::Recv;
    if (entry.verb == Verb::Recv && entry.root < 0) {
      text.append(" from any rank");
    } else if (has_root(entry.verb) || entry.verb == Verb::Send || entry.verb == Verb::Recv) {
      text.append(from ? " from rank " : " to rank ").append(std::to_string(entry.root));
    }
    if ((entry.verb == Verb::Send || entry.verb == Verb::Recv) && entry.tag != 0) {
      text.append(" with tag ").append(std::to_string(entry.tag));
    }
  }
  if (entry.label != 0) text.append(text.empty() ? "" : " ").append(describe_label(entry.label));
  if (!entry.site.empty()) text.append(text.empty() ? "" : ", ").append(entry.site);
  return text;
}

const char* name_of(FlightEntry::State state) {
  constexpr const char* kNames[] = {"queued", "running", "done", "failed"};
  return kNames[static_cast<int>(state)];
}

}  // namespace ringwise::coll
