#include "capi/errors.h"

#include "coll/include/ringwise.h"

namespace ringwise::capi {

namespace {

// Indexed by ringwise_reduce_op.
constexpr const char* kReduceOps[coll::kReduceOpCount] = {"RINGWISE_SUM", "RINGWISE_AVG",  "RINGWISE_PROD",
                                                          "RINGWISE_MIN", "RINGWISE_MAX",  "RINGWISE_BAND",
                                                          "RINGWISE_BOR", "RINGWISE_BXOR", "RINGWISE_PREMUL_SUM"};

// Indexed by ringwise_wire.
constexpr const char* kWires[coll::kWireCount] = {"RINGWISE_WIRE_FULL", "RINGWISE_WIRE_BFLOAT16", "RINGWISE_WIRE_INT8"};

Refused invalid(std::string text) { return {RINGWISE_INVALID, std::move(text)}; }
Refused exchange(std::string text) { return {RINGWISE_EXCHANGE, std::move(text)}; }
template <class T>
std::string str(T number) {
  return std::to_string(number);
}

}  // namespace

Refused bad_rank_or_size(int rank, int size) {
  return invalid("rank and size do not fit; expected 0 <= rank < size, got rank " + str(rank) + ", size " + str(size));
}
Refused bad_options_size(size_t expected, size_t got) {
  return invalid("struct_size is not that of this library's ringwise_options; expected " + str(expected) + ", got " +
                 str(got));
}
Refused bad_timeout(int64_t got) {
  return invalid("timeout_ms is not usable; expected 1 to 2147483647, or 0 for the default, got " + str(got));
}
Refused bad_listen_host(const char* got) {
  return invalid(std::string("listen_host is not a numeric IP address: \"") + got + "\"");
}
Refused wildcard_listen_host(const char* got) {
  return invalid(std::string("listen_host names no address at which other ranks reach this one: \"") + got +
                 "\"; expected an address of its network");
}
Refused no_exchange() { return invalid("there is no exchange callback; expected one where size is above 1"); }
Refused exchange_failed(int returned) {
  return exchange("the exchange callback failed; expected 0, got " + str(returned));
}
Refused blob_unreadable(int rank) {
  return exchange("the exchange callback delivered bytes for rank " + str(rank) +
                  " that are not a blob of this version of ringwise, or come from a machine with another byte order");
}
Refused blob_of_other_rank(int index, int rank, int size, int expected_size) {
  return exchange("the exchange callback delivered the blob of rank " + str(rank) + " of " + str(size) + " at index " +
                  str(index) + "; expected rank " + str(index) + " of " + str(expected_size));
}
Refused unreachable(int rank, const std::string& host) {
  return invalid(
      "rank " + str(rank) + " listens on " + host +
      ", which only its own host reaches, but the group has several hosts; expected listen_host to be an address of "
      "its network");
}
Refused bad_dtype(int got) {
  return invalid("dtype is not a ringwise_dtype; expected 0 to " + str(kDTypeCount - 1) + ", got " + str(got));
}
Refused bad_reduce_op(int got) {
  return invalid("op is not a ringwise_reduce_op; expected 0 to " + str(coll::kReduceOpCount - 1) + ", got " +
                 str(got));
}
Refused not_reducible(coll::ReduceOp op, DType dtype) {
  return invalid(std::string(kReduceOps[static_cast<int>(op)]) + " is not defined for " + name_of(dtype));
}
Refused bad_wire(int got) {
  return invalid("wire is not a ringwise_wire; expected 0 to " + str(coll::kWireCount - 1) + ", got " + str(got));
}
Refused wire_unused(coll::Wire wire, coll::ReduceOp op, DType dtype) {
  const char* types = wire == coll::Wire::Full ? "" : " of float32";
  return invalid(std::string(kWires[static_cast<int>(wire)]) + " is for RINGWISE_SUM and RINGWISE_AVG" + types +
                 "; got " + kReduceOps[static_cast<int>(op)] + " of " + name_of(dtype));
}
Refused residual_unused(coll::Wire wire) {
  return invalid(std::string("residual is for RINGWISE_WIRE_INT8; expected NULL for ") +
                 kWires[static_cast<int>(wire)]);
}
Refused bad_peer(const char* name, int got, int size) {
  return invalid(std::string(name) + " is not a rank of the group; expected 0 to " + str(size - 1) + ", got " +
                 str(got));
}
Refused own_rank(int rank) { return invalid("peer " + str(rank) + " is this rank itself; expected another one"); }
Refused bad_tag(int got) { return invalid("tag is not usable; expected 0 to 2147483647, got " + str(got)); }
Refused null_memory(const char* name) { return invalid(std::string(name) + " is NULL but has elements"); }
Refused overlapping(const char* name, const char* other) {
  return invalid(std::string(name) + " and " + other + " share memory; expected two separate buffers");
}
Refused too_large(size_t count) { return invalid("no memory holds that many elements: " + str(count)); }
Refused own_count(int rank, size_t expected, size_t got) {
  return invalid("count is not this rank's in counts; expected counts[" + str(rank) + "] = " + str(expected) +
                 ", got " + str(got));
}
Refused count_beside_counts(size_t got) {
  return invalid("count must be 0 beside send_counts and recv_counts; got " + str(got));
}
Refused one_of_two_counts() { return invalid("one of send_counts and recv_counts is NULL; expected both or neither"); }
Refused unknown_operation(uint64_t operation) {
  return invalid("there is no operation " + str(operation) + "; expected one that was started and not yet reported");
}
Refused foreign_memory() { return invalid("memory is not of ringwise_alloc, or was freed before"); }
Refused never_created() { return invalid("the group could not be created; expected one that was"); }
Refused null_pointer(const char* name) { return invalid(std::string(name) + " is NULL"); }
Refused closed() { return {RINGWISE_CLOSED, "this rank has closed the group"}; }

std::string sentence(const char* function, const std::string& what, int rank, int size, int status) {
  std::string text = std::string(function) + ": " + what + " (rank " + str(rank) + " of " + str(size) + ").";
  if (status == RINGWISE_TIMEOUT) text += " A rank may be stuck or may have skipped this call.";
  if (status == RINGWISE_PEER_LOST) {
    text += " See what that rank printed last; if it ended well, it made fewer calls than the others.";
  }
  if (status == RINGWISE_MISMATCH) text += " All ranks must make the same calls in the same order.";
  return text;
}

}  // namespace ringwise::capi
