// Implements the verbs of ringwise.h: checks their arguments and turns them into operations.
#include "capi/arguments.h"
#include "capi/guarded.h"

using ringwise::byte_size;
using ringwise::DType;
using ringwise::coll::Op;
using ringwise::coll::ReduceOp;
using ringwise::coll::Verb;
using ringwise::coll::Wire;
using namespace ringwise::capi;

// The numbers of the ABI equal those of the native enums and never change; the wire format fixes them too.
#define SAME(c, cpp) static_assert(c == static_cast<int>(cpp))
SAME(RINGWISE_FLOAT32, DType::Float32);
SAME(RINGWISE_FLOAT64, DType::Float64);
SAME(RINGWISE_FLOAT16, DType::Float16);
SAME(RINGWISE_BFLOAT16, DType::BFloat16);
SAME(RINGWISE_INT8, DType::Int8);
SAME(RINGWISE_INT16, DType::Int16);
SAME(RINGWISE_INT32, DType::Int32);
SAME(RINGWISE_INT64, DType::Int64);
SAME(RINGWISE_UINT8, DType::UInt8);
SAME(RINGWISE_UINT16, DType::UInt16);
SAME(RINGWISE_UINT32, DType::UInt32);
SAME(RINGWISE_UINT64, DType::UInt64);
SAME(RINGWISE_BOOL, DType::Bool);
SAME(RINGWISE_FLOAT8_E4M3FN, DType::Float8E4M3);
SAME(RINGWISE_FLOAT8_E5M2, DType::Float8E5M2);
SAME(RINGWISE_FLOAT8_E5M2 + 1, ringwise::kDTypeCount);
SAME(RINGWISE_SUM, ReduceOp::Sum);
SAME(RINGWISE_AVG, ReduceOp::Avg);
SAME(RINGWISE_PROD, ReduceOp::Prod);
SAME(RINGWISE_MIN, ReduceOp::Min);
SAME(RINGWISE_MAX, ReduceOp::Max);
SAME(RINGWISE_BAND, ReduceOp::Band);
SAME(RINGWISE_BOR, ReduceOp::Bor);
SAME(RINGWISE_BXOR, ReduceOp::Bxor);
SAME(RINGWISE_PREMUL_SUM, ReduceOp::PremulSum);
SAME(RINGWISE_PREMUL_SUM + 1, ringwise::coll::kReduceOpCount);
SAME(RINGWISE_WIRE_FULL, Wire::Full);
SAME(RINGWISE_WIRE_BFLOAT16, Wire::BFloat16);
SAME(RINGWISE_WIRE_INT8, Wire::Int8);
SAME(RINGWISE_WIRE_INT8 + 1, ringwise::coll::kWireCount);

namespace {

/// Runs or starts the call that `make` returns.
template <class Make>
int verb(ringwise_group* group, const char* function, ringwise_operation* operation, Make make) noexcept {
  return guarded(group, function, [&] {
    Call call = make();
    call.function = function;
    return group->call(std::move(call), operation);
  });
}

Call call_of(Verb verb, DType dtype, size_t count) {
  Call call;
  call.op.verb = verb;
  call.op.dtype = dtype;
  call.op.count = count;
  return call;
}

/// Returns the call of a verb that works in place.
Call in_place(Verb verb, void* buffer, size_t count, int dtype_number) {
  const DType dtype = checked_dtype(dtype_number);
  total_of({}, count, 1, dtype);
  Call call = call_of(verb, dtype, count);
  call.op.output = checked_memory("buffer", buffer, count);
  call.op.input = call.op.output;
  return call;
}

void set_reduction(Op& op, int reduce, double factor) {
  op.reduce = checked_reduce_op(reduce, op.dtype);
  if (op.reduce == ReduceOp::PremulSum) op.factor = factor;
}

/// The call of a verb that has this rank's part on one side (`count` elements) and the parts of all ranks on the other
/// (`total` elements).
struct Parted {
  Call call;
  size_t total;

  Parted(Verb verb, const ringwise_group& group, size_t count, const size_t* counts, int dtype)
      : call(call_of(verb, checked_dtype(dtype), count)) {
    call.counts = copied_counts(counts, group.size());
    total = total_of(call.counts, count, group.size(), call.op.dtype);
    if (counts == nullptr) return;
    if (counts[group.rank()] != count) throw own_count(group.rank(), counts[group.rank()], count);
    call.op.counts = call.counts.data();
  }
};

void set_memory(Op& op, const void* input, size_t input_count, void* output, size_t output_count) {
  op.input = checked_memory("input", input, input_count);
  op.output = checked_memory("output", output, output_count);
  check_separate("input", input, input_count * byte_size(op.dtype), "output", output,
                 output_count * byte_size(op.dtype));
}

}  // namespace

extern "C" {

int ringwise_all_reduce(ringwise_group* group, void* buffer, size_t count, int dtype, int op, double factor,
                        ringwise_operation* operation) {
  return verb(group, __func__, operation, [&] {
    Call call = in_place(Verb::AllReduce, buffer, count, dtype);
    set_reduction(call.op, op, factor);
    return call;
  });
}

int ringwise_all_reduce_wire(ringwise_group* group, void* buffer, size_t count, int dtype, int op, int wire,
                             float* residual, ringwise_operation* operation) {
  return verb(group, __func__, operation, [&] {
    Call call = in_place(Verb::AllReduce, buffer, count, dtype);
    set_reduction(call.op, op, 1);
    call.op.wire = checked_wire(wire, call.op.reduce, call.op.dtype);
    if (residual == nullptr) return call;
    if (call.op.wire != Wire::Int8) throw residual_unused(call.op.wire);
    check_separate("buffer", buffer, count * sizeof(float), "residual", residual, count * sizeof(float));
    call.op.residual = residual;
    return call;
  });
}

int ringwise_reduce(ringwise_group* group, void* buffer, size_t count, int dtype, int op, double factor, int root,
                    ringwise_operation* operation) {
  return verb(group, __func__, operation, [&] {
    Call call = in_place(Verb::Reduce, buffer, count, dtype);
    set_reduction(call.op, op, factor);
    check_root(root, group->size());
    call.op.root = root;
    if (group->rank() != root) call.op.output = nullptr;
    return call;
  });
}

int ringwise_broadcast(ringwise_group* group, void* buffer, size_t count, int dtype, int root,
                       ringwise_operation* operation) {
  return verb(group, __func__, operation, [&] {
    Call call = in_place(Verb::Broadcast, buffer, count, dtype);
    check_root(root, group->size());
    call.op.root = root;
    return call;
  });
}

int ringwise_all_gather(ringwise_group* group, const void* input, void* output, size_t count, const size_t* counts,
                        int dtype, ringwise_operation* operation) {
  return verb(group, __func__, operation, [&] {
    Parted parted(Verb::AllGather, *group, count, counts, dtype);
    set_memory(parted.call.op, input, count, output, parted.total);
    return std::move(parted.call);
  });
}

int ringwise_gather(ringwise_group* group, const void* input, void* output, size_t count, const size_t* counts,
                    int dtype, int root, ringwise_operation* operation) {
  return verb(group, __func__, operation, [&] {
    Parted parted(Verb::Gather, *group, count, counts, dtype);
    check_root(root, group->size());
    parted.call.op.root = root;
    const bool is_root = group->rank() == root;
    set_memory(parted.call.op, input, count, is_root ? output : nullptr, is_root ? parted.total : 0);
    return std::move(parted.call);
  });
}

int ringwise_scatter(ringwise_group* group, const void* input, void* output, size_t count, const size_t* counts,
                     int dtype, int root, ringwise_operation* operation) {
  return verb(group, __func__, operation, [&] {
    Parted parted(Verb::Scatter, *group, count, counts, dtype);
    check_root(root, group->size());
    parted.call.op.root = root;
    const bool is_root = group->rank() == root;
    set_memory(parted.call.op, is_root ? input : nullptr, is_root ? parted.total : 0, output, count);
    return std::move(parted.call);
  });
}

int ringwise_reduce_scatter(ringwise_group* group, const void* input, void* output, size_t count, const size_t* counts,
                            int dtype, int op, double factor, ringwise_operation* operation) {
  return verb(group, __func__, operation, [&] {
    Parted parted(Verb::ReduceScatter, *group, count, counts, dtype);
    set_reduction(parted.call.op, op, factor);
    set_memory(parted.call.op, input, parted.total, output, count);
    return std::move(parted.call);
  });
}

int ringwise_all_to_all(ringwise_group* group, const void* input, void* output, size_t count, const size_t* send_counts,
                        const size_t* recv_counts, int dtype, ringwise_operation* operation) {
  return verb(group, __func__, operation, [&] {
    if ((send_counts == nullptr) != (recv_counts == nullptr)) throw one_of_two_counts();
    if (send_counts != nullptr && count != 0) throw count_beside_counts(count);
    Call call = call_of(Verb::AllToAll, checked_dtype(dtype), count);
    call.counts = copied_counts(send_counts, group->size());
    call.recv_counts = copied_counts(recv_counts, group->size());
    if (send_counts != nullptr) call.op.counts = call.counts.data();
    if (recv_counts != nullptr) call.op.recv_counts = call.recv_counts.data();
    set_memory(call.op, input, total_of(call.counts, count, group->size(), call.op.dtype), output,
               total_of(call.recv_counts, count, group->size(), call.op.dtype));
    return call;
  });
}

int ringwise_barrier(ringwise_group* group, ringwise_operation* operation) {
  return verb(group, __func__, operation, [] { return call_of(Verb::Barrier, DType::UInt8, 0); });
}

int ringwise_send(ringwise_group* group, const void* data, size_t count, int dtype, int peer, int tag,
                  ringwise_operation* operation) {
  return verb(group, __func__, operation, [&] {
    Call call = in_place(Verb::Send, const_cast<void*>(data), count, dtype);  // a send only reads
    check_peer(peer, group->rank(), group->size());
    check_tag(tag);
    call.op.root = peer;
    call.op.tag = tag;
    return call;
  });
}

int ringwise_recv(ringwise_group* group, void* data, size_t count, int dtype, int peer, int tag, int32_t* source,
                  ringwise_operation* operation) {
  return verb(group, __func__, operation, [&] {
    Call call = in_place(Verb::Recv, data, count, dtype);
    if (peer != RINGWISE_ANY_RANK) check_peer(peer, group->rank(), group->size());
    check_tag(tag);
    call.op.root = peer;
    call.op.tag = tag;
    call.source = source;
    return call;
  });
}

}  // extern "C"
