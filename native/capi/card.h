// What the ranks tell each other about themselves through the exchange callback: where each listens, what host it is
// on, and the token that it shows when it connects.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "coll/transport/bootstrap.h"

namespace ringwise::capi {

/// The blob as it travels. Plain bytes in the machine's order, which the magic number tells.
struct Card {
  uint32_t magic;
  uint32_t version;
  int32_t rank;
  int32_t size;
  uint32_t port;
  coll::Proof token;  // random; shown to every peer, expected by every peer
  char host_id[68];   // these are 0-terminated
  char unix_name[64];
  char host[68];  // numeric IP address
};
static_assert(sizeof(Card) == 252);

/// `host` fits. Throws std::system_error without randomness.
Card make_card(int rank, int size, const std::string& host, const coll::Listener& listener);

/// The peers of `rank`, from all ranks' cards. Throws Refused when these are not the cards of `size` ranks in order.
std::vector<coll::PeerAddress> peers_of(int rank, std::vector<Card>& cards);

}  // namespace ringwise::capi
