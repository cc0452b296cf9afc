#include "mpi/channel/control.h"

#include <algorithm>
#include <cstring>

namespace ringwise::mpi {

namespace {

struct Head {
  uint64_t number;
  uint64_t messages;
  Notice notice;
  coll::FailureCode code;
  uint16_t peers;  // number of int32 ranks that follow, before the text
  int32_t origin;
};

void append(std::string& bytes, const void* data, size_t size) { bytes.append(static_cast<const char*>(data), size); }

}  // namespace

Control::Control(MPI_Comm comm, int rank, int size, Outbox& outbox)
    : comm_(comm), rank_(rank), size_(size), outbox_(outbox) {
  listen();
}

void Control::listen() {
  check(MPI_Irecv(incoming_.data(), kMaxBytes, MPI_BYTE, MPI_ANY_SOURCE, kControlTag, comm_, receive_.slot()),
        "MPI_Irecv");
}

void Control::tell(int peer, Notice notice, uint64_t number, uint64_t messages, const coll::Failure* failure) {
  static const coll::Failure none;
  const coll::Failure& told = failure != nullptr ? *failure : none;
  const size_t peers = std::min<size_t>(told.peers.size(), 512);
  const Head head{number, messages, notice, told.code, static_cast<uint16_t>(peers), told.origin};
  std::string bytes;
  append(bytes, &head, sizeof head);
  for (size_t i = 0; i < peers; ++i) {
    const int32_t rank = told.peers[i];
    append(bytes, &rank, sizeof rank);
  }
  bytes.append(told.text, 0, kMaxBytes - bytes.size());
  outbox_.send(peer, kControlTag, std::move(bytes));
}

void Control::tell_others(Notice notice, uint64_t number, const coll::Failure* failure) {
  for (int peer = 0; peer < size_; ++peer) {
    if (peer != rank_) tell(peer, notice, number, failure);
  }
}

std::optional<Heard> Control::hear() {
  MPI_Status status;
  if (!receive_.test(&status)) return std::nullopt;
  int length = 0;
  check(MPI_Get_count(&status, MPI_BYTE, &length), "MPI_Get_count");
  // The sender is a rank of the same job and build, so the message is not validated.
  Head head;
  std::memcpy(&head, incoming_.data(), sizeof head);
  Heard heard{head.notice, status.MPI_SOURCE, head.number, head.messages, {}};
  const char* next = incoming_.data() + sizeof head;
  std::vector<int> peers;
  for (int i = 0; i < head.peers; ++i, next += sizeof(int32_t)) {
    int32_t rank;
    std::memcpy(&rank, next, sizeof rank);
    peers.push_back(rank);
  }
  heard.failure = coll::Failure(head.code, head.origin, std::move(peers),
                                std::string(next, static_cast<size_t>(incoming_.data() + length - next)));
  listen();
  return heard;
}

}  // namespace ringwise::mpi
