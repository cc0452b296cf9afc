#include "capi/card.h"

#include <algorithm>
#include <cstring>

#include "base/os/host_id.h"
#include "base/os/random.h"
#include "capi/errors.h"

namespace ringwise::capi {

namespace {

constexpr uint32_t kMagic = 0x43475752;  // "RWGC"
constexpr uint32_t kVersion = 1;

template <size_t n>
void copy(char (&target)[n], const std::string& text) {
  std::memcpy(target, text.c_str(), std::min(text.size(), n - 1));
}

bool is_loopback(const std::string& host) {
  return host == "::1" || host.starts_with("127.") || host.starts_with("::ffff:127.");
}

}  // namespace

Card make_card(int rank, int size, const std::string& host, const coll::Listener& listener) {
  Card card{};
  card.magic = kMagic;
  card.version = kVersion;
  card.rank = rank;
  card.size = size;
  card.port = listener.port();
  os::random_bytes(card.token.data(), card.token.size());
  copy(card.host_id, os::host_id());
  copy(card.unix_name, listener.unix_name());
  copy(card.host, host);
  return card;
}

std::vector<coll::PeerAddress> peers_of(int rank, std::vector<Card>& cards) {
  const int size = static_cast<int>(cards.size());
  for (int index = 0; index < size; ++index) {
    Card& card = cards[index];
    if (card.magic != kMagic || card.version != kVersion) throw blob_unreadable(index);
    if (card.rank != index || card.size != size) throw blob_of_other_rank(index, card.rank, card.size, size);
    for (char* end : {std::end(card.host_id), std::end(card.unix_name), std::end(card.host)}) end[-1] = 0;
  }
  const auto same_host = [](const Card& a, const Card& b) { return std::strcmp(a.host_id, b.host_id) == 0; };
  const auto on_first = [&](const Card& card) { return same_host(card, cards[0]); };
  const bool one_host = std::all_of(cards.begin(), cards.end(), on_first);
  std::vector<coll::PeerAddress> peers;
  for (const Card& card : cards) {
    // all ranks see the same cards and throw this, so none waits for the others
    if (!one_host && is_loopback(card.host)) throw unreachable(card.rank, card.host);
    if (card.rank == rank) continue;
    peers.push_back({.rank = card.rank,
                     .local = same_host(card, cards[rank]),
                     .unix_name = card.unix_name,
                     .host = card.host,
                     .port = static_cast<uint16_t>(card.port),
                     .mine = cards[rank].token,
                     .theirs = card.token});
  }
  return peers;
}

}  // namespace ringwise::capi
