#include "tensor/cuda/libraries/cublas_lt.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "tensor/cuda/device/device.h"

namespace ringwise::tensor::cuda {

namespace {

std::atomic<bool> is_tf32_allowed = false;

const char* bind(CublasLt& lt) {
#define RINGWISE_BIND(name, arguments) \
  if (!lt.library.bind(#name, lt.name)) return #name;
  RINGWISE_CUBLASLT_FUNCTIONS(RINGWISE_BIND)
#undef RINGWISE_BIND
  return lt.library.bind("cublasLtGetVersion", lt.cublasLtGetVersion) ? nullptr : "cublasLtGetVersion";
}

CublasLt load() {
  CublasLt lt;
  lt.library =
      SharedLibrary({"RINGWISE_LIBCUBLASLT", {"libcublasLt.so.13", "libcublasLt.so.12"}, {"cu13/lib", "cublas/lib"}});
  if (!lt.library.is_open()) {
    lt.reason = "not found: " + lt.library.failures();
  } else if (const char* missing = bind(lt)) {
    lt.reason = lt.library.path() + " has no " + missing + "; version 12 or newer is needed";
  }
  return lt;
}

/// The parameters on which a plan depends, as indices of a Key.
enum Field {
  kCompute,
  kStored,
  kM,
  kN,
  kK,
  kStepA,
  kStepB,
  kTransA,
  kTransB,
  kBatch,
  kStrideA,
  kStrideB,
  kStrideC,
  kAlignA,
  kAlignB,
  kAlignC,
  kEpilogue,
  kFields
};
using Key = std::array<int64_t, kFields>;

/// The library's plan for products of one kind. The library stores matrices by columns, so it computes Cᵀ = Bᵀ · Aᵀ.
struct Plan {
  LtProduct product = nullptr;
  LtLayout first = nullptr, second = nullptr, result = nullptr;
  LtChoice choice{};
  bool is_usable = false;
  mutable std::mutex mutex;  // guards `product` if it has an epilogue, whose addresses it contains

  Plan() = default;
  Plan(const Plan&) = delete;
  ~Plan() {
    const CublasLt& lt = cublas_lt();
    if (product) lt.cublasLtMatmulDescDestroy(product);
    for (LtLayout layout : {first, second, result}) {
      if (layout) lt.cublasLtMatrixLayoutDestroy(layout);
    }
  }
};

/// Alignment in bytes of all memory that an epilogue accesses. The choice of an algorithm may rely on it.
constexpr uintptr_t kEpilogueAlignment = 16;

/// Sets the addresses of the bias and of the memory for the activation's input. Returns whether the library accepts
/// them.
bool set_epilogue(const Plan& plan, const Key& key, const void* bias, const void* before) {
  const CublasLt& lt = cublas_lt();
  const auto set = [&](int attribute, const auto& value) {
    return lt.cublasLtMatmulDescSetAttribute(plan.product, attribute, &value, sizeof value) == 0;
  };
  if ((key[kEpilogue] & kLtAddsBias) && !set(kLtBias, bias)) return false;
  return !(key[kEpilogue] & kLtKeepsInput) || (set(kLtAux, before) && set(kLtAuxStep, key[kN]));
}

class Plans {
 public:
  /// Returns the plans of `device`, which must be the current one.
  static Plans& of(Device& device) {
    static std::mutex mutex;
    static auto& all = *new std::map<int, Plans>;  // never destroyed, like devices
    const std::lock_guard lock(mutex);
    return all.try_emplace(device.index()).first->second;
  }

  /// Returns the plan, and makes it at first use. Null if the library supports no such product.
  std::shared_ptr<const Plan> plan(const Key& key) {
    const std::lock_guard lock(mutex_);
    if (!is_open_) {
      is_open_ = true;
      if (cublas_lt().reason.empty() && cublas_lt().cublasLtCreate(&handle_) != 0) handle_ = nullptr;
    }
    if (!handle_) return nullptr;
    if (plans_.size() >= kMostPlans && !plans_.contains(key)) plans_.clear();
    std::shared_ptr<const Plan>& found = plans_[key];
    if (!found) {
      auto made = std::make_shared<Plan>();
      made->is_usable = make(*made, key);
      found = std::move(made);
    }
    return found->is_usable ? found : nullptr;
  }
  LtHandle handle() const { return handle_; }

 private:
  static constexpr size_t kMostPlans = 4096, kMostWorkspace = size_t{32} << 20;

  bool make(Plan& plan, const Key& key) {
    const CublasLt& lt = cublas_lt();
    const auto type = static_cast<int>(key[kStored]), scale = type == kLtReal64 ? kLtReal64 : kLtReal32;
    bool is_good = lt.cublasLtMatmulDescCreate(&plan.product, static_cast<int>(key[kCompute]), scale) == 0;
    const auto describe = [&](int attribute, int32_t value) {
      is_good = is_good && lt.cublasLtMatmulDescSetAttribute(plan.product, attribute, &value, sizeof value) == 0;
    };
    describe(kLtTransposeA, static_cast<int32_t>(key[kTransB]));
    describe(kLtTransposeB, static_cast<int32_t>(key[kTransA]));
    if (key[kEpilogue] != 0) {
      describe(kLtEpilogue, static_cast<int32_t>(key[kEpilogue]));
      const auto aligned = reinterpret_cast<const void*>(kEpilogueAlignment);
      is_good = is_good && set_epilogue(plan, key, aligned, aligned);
    }
    const auto lay = [&](LtLayout& layout, int64_t rows, int64_t cols, int64_t step, int64_t stride) {
      const auto count = static_cast<int32_t>(key[kBatch]);
      is_good = is_good &&
                lt.cublasLtMatrixLayoutCreate(&layout, type, static_cast<uint64_t>(rows), static_cast<uint64_t>(cols),
                                              step) == 0 &&
                lt.cublasLtMatrixLayoutSetAttribute(layout, kLtBatchCount, &count, sizeof count) == 0 &&
                lt.cublasLtMatrixLayoutSetAttribute(layout, kLtBatchStride, &stride, sizeof stride) == 0;
    };
    const int64_t m = key[kM], n = key[kN], k = key[kK];
    lay(plan.first, key[kTransB] ? k : n, key[kTransB] ? n : k, key[kStepB], key[kStrideB]);
    lay(plan.second, key[kTransA] ? m : k, key[kTransA] ? k : m, key[kStepA], key[kStrideA]);
    lay(plan.result, n, m, n, key[kStrideC]);
    LtPreference preference = nullptr;
    is_good = is_good && lt.cublasLtMatmulPreferenceCreate(&preference) == 0;
    if (!is_good) return false;
    const size_t most = kMostWorkspace;
    lt.cublasLtMatmulPreferenceSetAttribute(preference, kLtMostWorkspace, &most, sizeof most);
    // Partial sums are added in float32 even if the result has 16 bits.
    lt.cublasLtMatmulPreferenceSetAttribute(preference, kLtReductions, &kLtReduceInComputeType,
                                            sizeof kLtReduceInComputeType);
    const int64_t alignments[] = {key[kAlignB], key[kAlignA], key[kAlignC], key[kAlignC]};
    for (int i = 0; i < 4; i++) {
      const auto bytes = static_cast<uint32_t>(alignments[i]);
      lt.cublasLtMatmulPreferenceSetAttribute(preference, kLtAlignmentA + i, &bytes, sizeof bytes);
    }
    int found = 0;
    const int status = lt.cublasLtMatmulAlgoGetHeuristic(handle_, plan.product, plan.first, plan.second, plan.result,
                                                         plan.result, preference, 1, &plan.choice, &found);
    lt.cublasLtMatmulPreferenceDestroy(preference);
    return status == 0 && found > 0 && plan.choice.status == 0;
  }

  std::mutex mutex_;
  bool is_open_ = false;
  LtHandle handle_ = nullptr;
  std::map<Key, std::shared_ptr<const Plan>> plans_;
};

int stored_type(DType dtype) {
  switch (dtype) {
    case DType::Float64: return kLtReal64;
    case DType::Float16: return kLtReal16;
    case DType::BFloat16: return kLtBfloat16;
    default: return kLtReal32;
  }
}

/// Returns the largest power of two up to 256 that divides the addresses of all matrices of an operand.
int64_t alignment(const Operand& operand, int rank) {
  uint64_t bits = reinterpret_cast<uintptr_t>(operand.data) | 256;
  for (int d = 0; d < rank; d++) bits |= static_cast<uint64_t>(operand.strides[d]);
  return int64_t{1} << std::countr_zero(bits);
}

/// Returns the key of a product. `walk` iterates over the products; those along its innermost dimension are one batch.
Key key_of(const Walk& walk, const MatmulSizes& x) {
  const DType dtype = walk.operand[0].dtype;
  const auto bytes = static_cast<ptrdiff_t>(byte_size(dtype));
  const int last = walk.rank - 1;
  const auto stride = [&](int i) {
    return walk.rank == 0 ? int64_t{0} : int64_t{walk.operand[i].strides[last] / bytes};
  };
  Key key{};
  key[kCompute] = dtype == DType::Float64                      ? kLtCompute64
                  : dtype == DType::Float32 && is_tf32_allowed ? kLtComputeTf32
                                                               : kLtCompute32;
  key[kStored] = stored_type(dtype);
  key[kM] = static_cast<int64_t>(x.m);
  key[kN] = static_cast<int64_t>(x.n);
  key[kK] = static_cast<int64_t>(x.k);
  key[kStepA] = static_cast<int64_t>(x.a_step);
  key[kStepB] = static_cast<int64_t>(x.b_step);
  key[kTransA] = x.trans_a;
  key[kTransB] = x.trans_b;
  key[kBatch] = walk.rank == 0 ? 1 : static_cast<int64_t>(walk.shape[last]);
  key[kStrideC] = stride(0);
  key[kStrideA] = stride(1);
  key[kStrideB] = stride(2);
  key[kAlignC] = alignment(walk.operand[0], walk.rank);
  key[kAlignA] = alignment(walk.operand[1], walk.rank);
  key[kAlignB] = alignment(walk.operand[2], walk.rank);
  return key;
}

/// Returns the library's epilogue for a linear layer; 0 if the library has none, or if none is needed.
int32_t epilogue_of(const Linear& x) {
  const int32_t bias = x.bias ? kLtAddsBias : 0;
  switch (x.activation) {
    case Activation::None: return x.before ? 0 : bias;
    case Activation::Relu: return x.before ? 0 : kLtRelu | bias;
    case Activation::GeluTanh: return kLtGelu | bias | (x.before ? kLtKeepsInput : 0);
    default: return 0;
  }
}

bool is_aligned(const void* data) { return reinterpret_cast<uintptr_t>(data) % kEpilogueAlignment == 0; }

/// Returns the largest power of two up to 256 that divides an address.
int64_t alignment(const void* data) { return int64_t{1} << std::countr_zero(reinterpret_cast<uintptr_t>(data) | 256); }

}  // namespace

const CublasLt& cublas_lt() {
  static const CublasLt loaded = load();
  return loaded;
}

void allow_tf32(bool allowed) { is_tf32_allowed = allowed; }
bool allows_tf32() { return is_tf32_allowed; }

bool multiply_by_library(const Walk& walk, const MatmulSizes& sizes) {
  if (!cublas_lt().reason.empty() || (walk.rank > 0 && walk.shape[walk.rank - 1] > INT32_MAX)) return false;
  Device& device = current_device();
  Plans& plans = Plans::of(device);
  const Key key = key_of(walk, sizes);
  const auto plan = plans.plan(key);
  if (!plan) return false;
  size_t outer = 1;
  for (int d = 0; d + 1 < walk.rank; d++) outer *= walk.shape[d];
  const double factors[] = {1, sizes.accumulate ? 1.0 : 0.0};
  const float narrow[] = {1, static_cast<float>(factors[1])};
  const bool is_double = walk.operand[0].dtype == DType::Float64;
  const void* one = is_double ? static_cast<const void*>(factors) : narrow;
  const void* old = is_double ? static_cast<const void*>(factors + 1) : narrow + 1;
  const size_t bytes = plan->choice.workspace_bytes;
  // Freed right after the launch: the next owner on this stream runs after the product.
  void* workspace = bytes > 0 ? device.allocate(bytes) : nullptr;
  int status = 0;
  for (size_t i = 0; i < outer && status == 0; i++) {
    ptrdiff_t at[3] = {};
    size_t rest = i;
    for (int d = walk.rank - 2; d >= 0; rest /= walk.shape[d--]) {
      for (int o = 0; o < 3; o++) at[o] += static_cast<ptrdiff_t>(rest % walk.shape[d]) * walk.operand[o].strides[d];
    }
    char* c = walk.operand[0].data + at[0];
    status = cublas_lt().cublasLtMatmul(plans.handle(), plan->product, one, walk.operand[2].data + at[2], plan->first,
                                        walk.operand[1].data + at[1], plan->second, old, c, plan->result, c,
                                        plan->result, &plan->choice.algorithm, workspace, bytes, device.stream());
  }
  if (workspace) device.free(workspace);
  if (status != 0)
    throw std::runtime_error("matmul: cublasLt reported status " + std::to_string(status) + " (" +
                             cublas_lt().library.path() + ").");
  return true;
}

bool linear_by_library(const Linear& x) {
  const DType dtype = x.dtype;
  const int32_t epilogue = epilogue_of(x);
  // The library stores the input of gelu only in rows whose length is a multiple of 8.
  if (epilogue == 0 || x.rows == 0 || x.outs == 0 || x.ins == 0 || (x.before && x.outs % 8 != 0)) return false;
  if (dtype == DType::Float64 || !is_aligned(x.bias) || !is_aligned(x.before) || !cublas_lt().reason.empty())
    return false;
  Device& device = current_device();
  Plans& plans = Plans::of(device);
  Key key{};
  key[kCompute] = dtype == DType::Float32 && is_tf32_allowed ? kLtComputeTf32 : kLtCompute32;
  key[kStored] = stored_type(dtype);
  key[kM] = static_cast<int64_t>(x.rows);
  key[kN] = static_cast<int64_t>(x.outs);
  key[kK] = key[kStepA] = key[kStepB] = static_cast<int64_t>(x.ins);
  key[kTransB] = 1;
  key[kBatch] = 1;
  key[kAlignC] = alignment(x.out);
  key[kAlignA] = alignment(x.x);
  key[kAlignB] = alignment(x.w);
  key[kEpilogue] = epilogue;
  const auto plan = plans.plan(key);
  if (!plan) return false;
  const float one = 1, none = 0;
  const size_t bytes = plan->choice.workspace_bytes;
  void* workspace = bytes > 0 ? device.allocate(bytes) : nullptr;
  int status = -1;
  {
    const std::lock_guard lock(plan->mutex);
    if (set_epilogue(*plan, key, x.bias, x.before)) {
      status = cublas_lt().cublasLtMatmul(plans.handle(), plan->product, &one, x.w, plan->first, x.x, plan->second,
                                          &none, x.out, plan->result, x.out, plan->result, &plan->choice.algorithm,
                                          workspace, bytes, device.stream());
    }
  }
  if (workspace) device.free(workspace);
  if (status != 0)
    throw std::runtime_error("linear: cublasLt reported status " + std::to_string(status) + " (" +
                             cublas_lt().library.path() + ").");
  return true;
}

}  // namespace ringwise::tensor::cuda
