// The errors that the C ABI itself finds. They are thrown as a Refused inside the library; guarded() returns its
// status, which is negative except for closed().
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/dtype.h"
#include "coll/failure/failure.h"
#include "coll/op.h"

namespace ringwise::capi {

struct Refused {
  int status;        // a ringwise_status
  std::string text;  // the middle of the sentence, without function, rank and full stop
};

Refused bad_rank_or_size(int rank, int size);
Refused bad_options_size(size_t expected, size_t got);
Refused bad_timeout(int64_t got);
Refused bad_listen_host(const char* got);
Refused wildcard_listen_host(const char* got);
Refused no_exchange();
Refused exchange_failed(int returned);
Refused blob_unreadable(int rank);
Refused blob_of_other_rank(int index, int rank, int size, int expected_size);
Refused unreachable(int rank, const std::string& host);
Refused bad_dtype(int got);
Refused bad_reduce_op(int got);
Refused not_reducible(coll::ReduceOp op, DType dtype);
Refused bad_wire(int got);
Refused wire_unused(coll::Wire wire, coll::ReduceOp op, DType dtype);
Refused residual_unused(coll::Wire wire);
Refused bad_peer(const char* name, int got, int size);
Refused own_rank(int rank);
Refused bad_tag(int got);
Refused null_memory(const char* name);
Refused overlapping(const char* name, const char* other);
Refused too_large(size_t count);
Refused own_count(int rank, size_t expected, size_t got);
Refused count_beside_counts(size_t got);
Refused one_of_two_counts();
Refused unknown_operation(uint64_t operation);
Refused foreign_memory();
Refused never_created();
Refused null_pointer(const char* name);
Refused closed();

/// Returns the whole sentence: `function: what (rank r of n). Next step.`
std::string sentence(const char* function, const std::string& what, int rank, int size, int status);

}  // namespace ringwise::capi
