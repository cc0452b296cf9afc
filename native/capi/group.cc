#include "capi/group.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <system_error>

#include "base/time/clock.h"
#include "capi/card.h"
#include "capi/errors.h"

using ringwise::capi::Call;
using ringwise::coll::FailureCode;
using ringwise::coll::HostGroup;
using ringwise::coll::Op;
using ringwise::coll::Verb;

static_assert(RINGWISE_TIMEOUT == 1 + static_cast<int>(FailureCode::Timeout));
static_assert(RINGWISE_PEER_LOST == 1 + static_cast<int>(FailureCode::PeerLost));
static_assert(RINGWISE_MISMATCH == 1 + static_cast<int>(FailureCode::Mismatch));
static_assert(RINGWISE_ABORTED == 1 + static_cast<int>(FailureCode::Aborted));
static_assert(RINGWISE_CLOSED == 1 + static_cast<int>(FailureCode::Closed));
static_assert(RINGWISE_SYSTEM == 1 + static_cast<int>(FailureCode::System));

namespace {

std::byte* allocate(ringwise::coll::Arena& arena, size_t bytes) {
  try {
    return arena.allocate(bytes);
  } catch (const std::system_error&) {
    throw std::bad_alloc();
  }
}

}  // namespace

int ringwise_group::meet(const ringwise_options& options, const char* function) {
  std::lock_guard lock(calls_);
  timeout_ns_ = options.timeout_ms * ringwise::kMillisecond;
  sent_.resize(size_);
  received_.resize(size_ + 1);
  native_ = std::make_unique<HostGroup>(rank_, size_, options.listen_host, [] {});

  const auto mine = ringwise::capi::make_card(rank_, size_, options.listen_host, native_->listener());
  std::vector<ringwise::capi::Card> cards(size_, mine);
  if (size_ > 1) {
    const int returned = options.exchange(options.user, &mine, sizeof mine, cards.data());
    if (returned != 0) throw ringwise::capi::exchange_failed(returned);
  }
  auto peers = ringwise::capi::peers_of(rank_, cards);
  const auto connect = [&](const Op&) { return native_->connect(std::move(peers), timeout_ns_); };
  return finish(track({.function = function}, connect));
}

/// After an abort, first waits until the other ranks have been told the reason.
ringwise_group::~ringwise_group() {
  if (native_ == nullptr || !aborted_ || closed_) return;
  try {
    Call after_abort;
    after_abort.op.timeout_ns = timeout_ns_;
    // ends with the abort as its failure once all ranks are told
    finish(track(std::move(after_abort), [&](const Op& op) { return native_->start(op); }));
  } catch (...) {  // no memory: the other ranks see this rank as lost
  }
}

int ringwise_group::call(Call call, ringwise_operation* operation) {
  std::lock_guard lock(calls_);
  check_open();
  uint64_t& next = sequence_of(call.op);
  call.op.seq = next;
  call.op.timeout_ns = timeout_ns_;
  if (operation != nullptr) {
    const auto start = [&](const Op& op) { return native_->start(op, HostGroup::Progress::Later); };
    *operation = track(std::move(call), start)->first;
    ++next;  // only if the operation was started
    return RINGWISE_OK;
  }
  int sender = -1;
  const auto failure = native_->run(call.op, &sender);
  ++next;
  return report(call, failure, sender);
}

/// Returns the counter for the operation's `seq`, on which the ranks agree: of the collectives, or of the messages in
/// one direction of a pair.
uint64_t& ringwise_group::sequence_of(const Op& op) {
  if (op.verb == Verb::Send) return sent_[op.root];
  if (op.verb == Verb::Recv) return received_[op.root < 0 ? size_ : op.root];
  return collectives_;
}

void ringwise_group::check_open() const {
  if (native_ == nullptr) throw ringwise::capi::never_created();
  if (closed_) throw ringwise::capi::closed();
}

/// Starts an operation with `hand_over` and adds it to the table under the returned id. Allocates before the start, so
/// that an operation is never started and then lost.
ringwise_group::Table::iterator ringwise_group::track(Call call, const HandOver& hand_over) {
  Table one;
  one[0].call = std::move(call);
  auto node = one.extract(0);
  node.key() = hand_over(node.mapped().call.op);
  return started_.insert(std::move(node)).position;
}

ringwise_group::Table::iterator ringwise_group::find(ringwise_operation operation) {
  const auto at = started_.find(operation);
  if (at == started_.end()) throw ringwise::capi::unknown_operation(operation);
  return at;
}

int ringwise_group::test(ringwise_operation operation) {
  std::unique_lock lock(calls_, std::try_to_lock);
  if (!lock.owns_lock()) return RINGWISE_PENDING;  // another call runs; its end cannot be told without blocking
  const auto at = find(operation);
  if (!at->second.ended) collect();
  if (at->second.ended) return report(at);
  native_->request_progress();
  return RINGWISE_PENDING;
}

int ringwise_group::wait(ringwise_operation operation) {
  std::lock_guard lock(calls_);
  return finish(find(operation));
}

int ringwise_group::finish(Table::iterator at) {
  if (!at->second.ended) {
    native_->wait(at->first);
    collect();
  }
  return report(at);
}

void ringwise_group::collect() {
  native_->take_ended(collected_);
  for (auto& one : collected_) {
    Started& started = started_.at(one.id);
    started.ended = true;
    started.failure = std::move(one.failure);
    started.sender = one.source;
  }
}

int ringwise_group::report(Table::iterator at) {
  const auto started = started_.extract(at);
  return report(started.mapped().call, started.mapped().failure, started.mapped().sender);
}

int ringwise_group::report(const Call& call, const FailurePtr& failure, int sender) {
  if (failure) {
    {
      std::lock_guard lock(error_mutex_);
      failed_ranks_ = failure->peers;
    }
    return fail(1 + static_cast<int>(failure->code), call.function, failure->text);
  }
  if (call.source != nullptr) *call.source = sender;
  return RINGWISE_OK;
}

int ringwise_group::close(const char* function) {
  std::lock_guard lock(calls_);
  check_open();
  closed_ = true;
  return finish(track({.function = function}, [&](const Op&) { return native_->close(); }));
}

int ringwise_group::abort(const char* reason) {
  if (native_ == nullptr) throw ringwise::capi::never_created();
  aborted_ = true;
  const std::string text = "rank " + std::to_string(rank_) + " aborted the group: " + reason;
  native_->abort({ringwise::coll::FailureCode::Aborted, rank_, {rank_}, text});
  return RINGWISE_OK;
}

int ringwise_group::alloc(size_t bytes, void** memory) {
  std::lock_guard lock(calls_);
  check_open();
  constexpr size_t kPage = 4096;
  if (bytes > PTRDIFF_MAX - kPage) throw std::bad_alloc();
  const size_t rounded = std::max(bytes + kPage - 1, kPage) / kPage * kPage;
  std::shared_ptr<void> block;
  if (const auto arena = native_->arena()) {
    block = {allocate(*arena, rounded), [arena](void* begin) { arena->release(static_cast<std::byte*>(begin)); }};
  } else {
    block = {std::aligned_alloc(kPage, rounded), std::free};
    if (!block) throw std::bad_alloc();
    std::memset(block.get(), 0, rounded);
  }
  blocks_.emplace(block.get(), block);
  *memory = block.get();
  return RINGWISE_OK;
}

int ringwise_group::free(void* memory) {
  std::lock_guard lock(calls_);
  if (memory != nullptr && blocks_.erase(memory) == 0) throw ringwise::capi::foreign_memory();
  return RINGWISE_OK;
}

int ringwise_group::fail(int status, const char* function, const std::string& what) noexcept {
  try {
    std::string text = ringwise::capi::sentence(function, what, rank_, size_, status);
    std::lock_guard lock(error_mutex_);
    error_ = std::move(text);
  } catch (...) {  // no memory for the text: the status alone must do
  }
  return status;
}

size_t ringwise_group::error(char* text, size_t capacity) const {
  std::lock_guard lock(error_mutex_);
  if (capacity > 0) {
    const size_t bytes = std::min(error_.size(), capacity - 1);
    std::memcpy(text, error_.data(), bytes);
    text[bytes] = 0;
  }
  return error_.size();
}

size_t ringwise_group::failed_ranks(int32_t* ranks, size_t capacity) const {
  std::lock_guard lock(error_mutex_);
  std::copy_n(failed_ranks_.begin(), std::min(failed_ranks_.size(), capacity), ranks);
  return failed_ranks_.size();
}
