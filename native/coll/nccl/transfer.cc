#include "coll/nccl/transfer.h"

#include <cstdint>
#include <cstring>

#include "base/float8.h"
#include "base/half.h"

namespace ringwise::nccl {

namespace {

using coll::Op;
using coll::Verb;

/// Returns the NCCL type for a reduction. NCCL has no 16-bit integers; the group refuses them earlier.
int type_of(DType dtype) {
  switch (dtype) {
    case DType::Float64: return kFloat64;
    case DType::Float16: return kFloat16;
    case DType::BFloat16: return kBfloat16;
    case DType::Int8: return kInt8;
    case DType::Int32: return kInt32;
    case DType::Int64: return kInt64;
    case DType::UInt8:
    case DType::Bool: return kUint8;
    case DType::UInt32: return kUint32;
    case DType::UInt64: return kUint64;
    case DType::Float8E4M3: return kFloat8e4m3;
    case DType::Float8E5M2: return kFloat8e5m2;
    default: return kFloat32;
  }
}

/// Returns the NCCL operation. The group accepts bitwise operations only for bools, 0 or 1, for which min and max are
/// the same.
int op_of(coll::ReduceOp reduce) {
  switch (reduce) {
    case coll::ReduceOp::Avg: return kAvg;
    case coll::ReduceOp::Prod: return kProd;
    case coll::ReduceOp::Band:
    case coll::ReduceOp::Min: return kMin;
    case coll::ReduceOp::Bor:
    case coll::ReduceOp::Max: return kMax;
    default: return kSum;
  }
}

/// Holds NCCL's number for a reduction. For premulSum, creates an operation with the factor and destroys it with this
/// object.
class Reduction {
 public:
  Reduction(const Op& op, Comm comm, int size) : comm_(comm), number_(op_of(op.reduce)) {
    // NCCL multiplies to average, and its kernel for a single rank has faults; see multiply_alone().
    if (size == 1 && op.reduce == coll::ReduceOp::Avg) number_ = kSum;
    if (op.reduce != coll::ReduceOp::PremulSum) return;
    const auto single = static_cast<float>(op.factor);
    const Half half = to_half(single);
    const BFloat bfloat = to_bfloat(single);
    const Float8E4M3 e4m3 = to_float8_e4m3(single);
    const Float8E5M2 e5m2 = to_float8_e5m2(single);
    const void* factor = &single;
    if (op.dtype == DType::Float64) factor = &op.factor;
    if (op.dtype == DType::Float16) factor = &half;
    if (op.dtype == DType::BFloat16) factor = &bfloat;
    if (op.dtype == DType::Float8E4M3) factor = &e4m3;
    if (op.dtype == DType::Float8E5M2) factor = &e5m2;
    std::memcpy(scalar_, factor, byte_size(op.dtype));
    status_ = library().ncclRedOpCreatePreMulSum(&number_, scalar_, type_of(op.dtype), kScalarOfHost, comm);
    is_own_ = status_ == kSuccess;
  }
  ~Reduction() {
    if (is_own_) library().ncclRedOpDestroy(number_, comm_);
  }
  Reduction(const Reduction&) = delete;

  int status() const { return status_; }
  int number() const { return number_; }

 private:
  Comm comm_;
  int number_;
  int status_ = kSuccess;
  bool is_own_ = false;
  alignas(8) char scalar_[8] = {};
};

/// Sizes and offsets of the parts, in bytes.
struct Parts {
  const Op& op;
  const size_t* counts;
  size_t bytes(int rank) const { return (counts != nullptr ? counts[rank] : op.count) * byte_size(op.dtype); }
  size_t offset(int rank) const {
    size_t sum = 0;
    for (int before = 0; before < rank; ++before) sum += bytes(before);
    return sum;
  }
};

/// Multiplies the elements of a single rank. NCCL's kernel (2.28) has up to 32 blocks, each of at least 16 KiB. It
/// leaves out the last elements if the blocks do not divide the array evenly. Each call here gets bytes that they do
/// divide: multiples of 32 blocks, then whole blocks, then less than a block.
int multiply_alone(const Op& op, Comm comm, int number, cuda::Stream stream) {
  constexpr size_t kBlockBytes = 16384, kMostBlocks = 32;
  const size_t block = kBlockBytes / byte_size(op.dtype), all = op.counts != nullptr ? op.counts[0] : op.count;
  const size_t ends[] = {0, all - all % (kMostBlocks * block), all - all % block, all};
  return grouped(3, [&](int i) {
    const size_t offset = ends[i] * byte_size(op.dtype), count = ends[i + 1] - ends[i];
    return library().ncclAllReduce(op.input + offset, op.output + offset, count, type_of(op.dtype), number, comm,
                                   stream);
  });
}

int reduce(const Op& op, Comm comm, int rank, int size, cuda::Stream stream) {
  const Library& n = library();
  const Reduction by(op, comm, size);
  if (by.status() != kSuccess) return by.status();
  if (size == 1 && op.reduce == coll::ReduceOp::PremulSum) return multiply_alone(op, comm, by.number(), stream);
  const int type = type_of(op.dtype);
  if (op.verb == Verb::AllReduce)
    return n.ncclAllReduce(op.input, op.output, op.count, type, by.number(), comm, stream);
  if (op.verb == Verb::Reduce)
    return n.ncclReduce(op.input, op.output, op.count, type, by.number(), op.root, comm, stream);
  if (op.counts == nullptr) return n.ncclReduceScatter(op.input, op.output, op.count, type, by.number(), comm, stream);
  const Parts parts{op, op.counts};
  return grouped(size, [&](int root) {
    return n.ncclReduce(op.input + parts.offset(root), root == rank ? op.output : nullptr, op.counts[root], type,
                        by.number(), root, comm, stream);
  });
}

int all_gather(const Op& op, Comm comm, int rank, int size, cuda::Stream stream) {
  const Library& n = library();
  const Parts parts{op, op.counts};
  if (op.counts == nullptr) return n.ncclAllGather(op.input, op.output, parts.bytes(rank), kInt8, comm, stream);
  return grouped(size, [&](int root) {
    std::byte* const part = op.output + parts.offset(root);
    return n.ncclBroadcast(root == rank ? op.input : part, part, parts.bytes(root), kInt8, root, comm, stream);
  });
}

/// Returns whether NCCL has a function for this gather, scatter or all-to-all: since 2.28, for even parts.
bool has_own(const Op& op) {
  const Library& n = library();
  switch (op.verb) {
    case Verb::Gather: return op.counts == nullptr && n.ncclGather != nullptr;
    case Verb::Scatter: return op.counts == nullptr && n.ncclScatter != nullptr;
    default: return op.counts == nullptr && op.recv_counts == nullptr && n.ncclAlltoAll != nullptr;
  }
}

int exchange_by_own(const Op& op, Comm comm, cuda::Stream stream) {
  const Library& n = library();
  const size_t bytes = op.count * byte_size(op.dtype);
  if (op.verb == Verb::Gather) return n.ncclGather(op.input, op.output, bytes, kInt8, op.root, comm, stream);
  if (op.verb == Verb::Scatter) return n.ncclScatter(op.input, op.output, bytes, kInt8, op.root, comm, stream);
  return n.ncclAlltoAll(op.input, op.output, bytes, kInt8, comm, stream);
}

/// Runs gather, scatter and all-to-all by sends and receives. Empty parts are not sent; both sides know their sizes.
int exchange(const Op& op, Comm comm, int rank, int size, cuda::Stream stream) {
  const Library& n = library();
  const bool gathers = op.verb == Verb::Gather, scatters = op.verb == Verb::Scatter;
  const Parts out{op, op.counts};
  const Parts in{op, op.verb == Verb::AllToAll ? op.recv_counts : op.counts};
  return grouped(size, [&](int peer) {
    int status = kSuccess;
    const bool sends = gathers ? peer == op.root : !scatters || rank == op.root;
    const bool receives = gathers ? rank == op.root : !scatters || peer == op.root;
    const size_t sent = out.bytes(gathers ? rank : peer), received = in.bytes(scatters ? rank : peer);
    if (sends && sent > 0)
      status = n.ncclSend(op.input + (gathers ? 0 : out.offset(peer)), sent, kInt8, peer, comm, stream);
    if (status != kSuccess && status != kInProgress) return status;
    if (receives && received > 0)
      status = n.ncclRecv(op.output + (scatters ? 0 : in.offset(peer)), received, kInt8, peer, comm, stream);
    return status;
  });
}

}  // namespace

int enqueue(const Op& op, Comm comm, int rank, int size, cuda::Stream stream) {
  switch (op.verb) {
    case Verb::AllReduce:
    case Verb::Reduce:
    case Verb::ReduceScatter: return reduce(op, comm, rank, size, stream);
    case Verb::AllGather: return all_gather(op, comm, rank, size, stream);
    case Verb::Broadcast:
      return library().ncclBroadcast(op.input, op.output, op.count * byte_size(op.dtype), kInt8, op.root, comm, stream);
    case Verb::Gather:
    case Verb::Scatter:
    case Verb::AllToAll:
      if (has_own(op)) return exchange_by_own(op, comm, stream);
      return exchange(op, comm, rank, size, stream);
    default: return kSuccess;
  }
}

}  // namespace ringwise::nccl
