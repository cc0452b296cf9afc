// The blob that ranks exchange through the callback of ringwise.h: the addresses at which a rank listens, the host that
// it is on, and the token by which it proves itself when it connects.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "coll/transport/bootstrap.h"

namespace ringwise::capi {

/// The format of the blob, in the machine's byte order, which the magic number reveals.
struct Card {
  uint32_t magic;
  uint32_t version;
  int32_t rank;
  int32_t size;
  uint32_t port;
  coll::Proof token;  // random; this rank sends it to every peer that it connects with
  char host_id[68];   // this and the next two are 0-terminated
  char unix_name[64];
  char host[68];  // numeric IP address at which the rank listens
};
static_assert(sizeof(Card) == 252);

/// Makes this rank's card. `host` must fit into it. Throws std::system_error if the system gives no random bytes.
Card make_card(int rank, int size, const std::string& host, const coll::Listener& listener);

/// Returns the peers of `rank` from the cards of all ranks. Throws Refused if these are not the cards of all ranks in
/// order.
std::vector<coll::PeerAddress> peers_of(int rank, std::vector<Card>& cards);

}  // namespace ringwise::capi
