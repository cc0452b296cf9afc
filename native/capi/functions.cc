// Implements the functions of ringwise.h that are not verbs.
#include <netdb.h>
#include <netinet/in.h>

#include <cstring>
#include <new>

#include "capi/card.h"
#include "capi/guarded.h"

using namespace ringwise::capi;

namespace {

constexpr int64_t kDefaultTimeoutMs = 300'000;
constexpr int64_t kMaxTimeoutMs = 2'147'483'647;

/// Returns whether a socket that is bound to `address` listens on all addresses of its host.
bool is_wildcard(const sockaddr* address) {
  if (address->sa_family == AF_INET)
    return reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr == INADDR_ANY;
  const in6_addr& six = reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  const in6_addr mapped{{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0}}};  // ::ffff:0.0.0.0
  return IN6_IS_ADDR_UNSPECIFIED(&six) || std::memcmp(&six, &mapped, sizeof six) == 0;
}

void check_listen_host(const char* host) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST;
  addrinfo* found = nullptr;
  const bool fits = std::strlen(host) < sizeof Card::host;
  if (!fits || getaddrinfo(host, nullptr, &hints, &found) != 0) throw bad_listen_host(host);
  const bool is_wild = is_wildcard(found->ai_addr);
  freeaddrinfo(found);
  if (is_wild) throw wildcard_listen_host(host);
}

ringwise_options checked_options(const ringwise_options& given) {
  if (given.struct_size != sizeof given) throw bad_options_size(sizeof given, given.struct_size);
  ringwise_options options = given;
  if (options.rank < 0 || options.rank >= options.size) throw bad_rank_or_size(options.rank, options.size);
  if (options.timeout_ms < 0 || options.timeout_ms > kMaxTimeoutMs) throw bad_timeout(options.timeout_ms);
  if (options.timeout_ms == 0) options.timeout_ms = kDefaultTimeoutMs;
  if (options.size > 1 && options.exchange == nullptr) throw no_exchange();
  if (options.listen_host == nullptr) options.listen_host = "127.0.0.1";
  check_listen_host(options.listen_host);
  return options;
}

}  // namespace

extern "C" {

uint32_t ringwise_abi_version(void) { return RINGWISE_ABI_VERSION; }

int ringwise_abi_fits(uint32_t version) {
  return version >> 16 == RINGWISE_ABI_VERSION >> 16 && version <= RINGWISE_ABI_VERSION;
}

int ringwise_group_create(const ringwise_options* options, ringwise_group** group) {
  if (group == nullptr) return RINGWISE_INVALID;
  *group = nullptr;
  if (options == nullptr) return RINGWISE_INVALID;
  const bool sized = options->struct_size == sizeof(ringwise_options);  // otherwise its members may have other offsets
  *group = new (std::nothrow) ringwise_group(sized ? options->rank : 0, sized ? options->size : 0);
  if (*group == nullptr) return RINGWISE_NO_MEMORY;
  const char* const function = __func__;
  const int status = guarded(*group, function, [&] { return (*group)->meet(checked_options(*options), function); });
  if (status != RINGWISE_OK) (*group)->give_up();
  return status;
}

int ringwise_group_close(ringwise_group* group) {
  const char* const function = __func__;
  return guarded(group, function, [&] { return group->close(function); });
}

int ringwise_group_abort(ringwise_group* group, const char* reason) {
  return guarded(group, __func__, [&] {
    if (reason == nullptr) throw null_pointer("reason");
    return group->abort(reason);
  });
}

void ringwise_group_destroy(ringwise_group* group) { delete group; }

size_t ringwise_error(const ringwise_group* group, char* text, size_t capacity) {
  if (group == nullptr || text == nullptr) capacity = 0;
  return group == nullptr ? 0 : group->error(text, capacity);
}

size_t ringwise_failed_ranks(const ringwise_group* group, int32_t* ranks, size_t capacity) {
  return group == nullptr ? 0 : group->failed_ranks(ranks, ranks == nullptr ? 0 : capacity);
}

int ringwise_test(ringwise_group* group, ringwise_operation operation) {
  return guarded(group, __func__, [&] { return group->test(operation); });
}

int ringwise_wait(ringwise_group* group, ringwise_operation operation) {
  return guarded(group, __func__, [&] { return group->wait(operation); });
}

int ringwise_alloc(ringwise_group* group, size_t bytes, void** memory) {
  return guarded(group, __func__, [&] {
    if (memory == nullptr) throw null_pointer("memory");
    return group->alloc(bytes, memory);
  });
}

int ringwise_free(ringwise_group* group, void* memory) {
  return guarded(group, __func__, [&] { return group->free(memory); });
}

}  // extern "C"
