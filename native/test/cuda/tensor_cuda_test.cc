// Compares CUDA kernels with those of the CPU, with random layouts, dtypes and sizes: elementwise operations,
// reductions, products, softmax and losses, sorting, lookups and optimisers. Also tests that kernels report wrong
// indices, and copies between host and device.
#include <array>
#include <limits>

#include "test/cuda/tensor_cuda_products.h"

using namespace ringwise;
using namespace ringwise::tensor;
using namespace ringwise::test;

namespace {

/// A view with a random layout, into memory that just holds it, on the host and on the device.
struct View {
  std::unique_ptr<Twin> twin;
  Operand on_host, on_device;
};
/// Returns a view of this shape. With `may_stretch`, some dimensions have stride 0.
View view_of(DType dtype, int rank, const size_t* shape, bool may_stretch) {
  View view;
  ptrdiff_t strides[kMaxRank];
  size_t order[kMaxRank], step = 1 + below(2), gap = below(3);
  for (int i = 0; i < rank; i++) order[i] = static_cast<size_t>(i);
  if (below(2)) std::shuffle(order, order + rank, random_bits);
  size_t last = gap;
  for (int i = rank - 1; i >= 0; i--) {
    const size_t dim = order[i];
    const bool is_stretched = may_stretch && below(4) == 0;
    strides[dim] = is_stretched ? 0 : static_cast<ptrdiff_t>(step);
    if (!is_stretched && shape[dim] > 0) {
      last += (shape[dim] - 1) * step;
      step *= shape[dim];
    }
  }
  view.twin = std::make_unique<Twin>(dtype, last + 1);
  const auto set_operand = [&](Operand& operand, char* data) {
    operand.dtype = dtype;
    operand.data = data + gap * byte_size(dtype);
    std::copy_n(strides, rank, operand.strides);
  };
  set_operand(view.on_host, view.twin->host<char>());
  set_operand(view.on_device, view.twin->device<char>());
  return view;
}

/// A walk over a random shape, on the host and on the device. The caller sets the operands.
struct Walks {
  Walk on_host, on_device;
  explicit Walks(int operands) {
    on_host.operands = on_device.operands = operands;
    on_host.rank = static_cast<int>(below(5));
    for (int dim = 0; dim < on_host.rank; dim++) on_host.shape[dim] = below(40) == 0 ? 0 : 1 + below(9);
    if (on_host.rank == 1) on_host.shape[0] *= 1 + below(300);
    on_device.rank = on_host.rank;
    std::copy_n(on_host.shape, on_host.rank, on_device.shape);
  }
  void set_operand(int i, const View& view) {
    on_host.operand[i] = view.on_host;
    on_device.operand[i] = view.on_device;
  }
};

/// Returns whether an operation is defined only for floating-point types.
bool needs_float(MapOp op) {
  using enum MapOp;
  for (const MapOp each :
       {Exp,   Log,   Sqrt,  Rsqrt, Sin,    Cos,   Tanh,        Sigmoid,  Erf,       Gelu,         GeluTanh,
        Silu,  Floor, Ceil,  Round, Trunc,  Div,   SigmoidGrad, TanhGrad, GeluGrad,  GeluTanhGrad, SiluGrad,
        Log1p, Expm1, Log2,  Log10, Exp2,   Tan,   Asin,        Acos,     Atan,      Sinh,         Cosh,
        Asinh, Acosh, Atanh, Erfc,  Erfinv, Atan2, Hypot,       Copysign, LogAddExp, Xlogy}) {
    if (op == each) return true;
  }
  return false;
}
/// Returns whether an operation is defined only for integers and bool.
bool needs_integer(MapOp op) { return op >= MapOp::BitAnd && op <= MapOp::Gcd; }
/// Returns the number of operands of an operation, with its output.
int operands_of(MapOp op) {
  if (op >= MapOp::Log1p) return op >= MapOp::Atan2 ? 3 : 2;
  return op >= MapOp::Where ? 4 : op >= MapOp::Add ? 3 : 2;
}
bool is_float(DType dtype) { return dtype == DType::Float32 || dtype == DType::Float64 || is_half(dtype); }

constexpr int kArgMin = 5, kArgMax = 6;
/// Compares a reduction over the dimensions that are not `kept`. op: a ReduceOp, kArgMin or kArgMax. The input is set
/// in both walks; the output is dense.
void check_reduction(int op, Walks& walks, DType from, const bool* kept) {
  const bool is_arg = op >= kArgMin;
  const auto reduce_op = static_cast<ReduceOp>(is_arg ? 0 : op);
  const bool is_sum = reduce_op == ReduceOp::Sum || reduce_op == ReduceOp::Mean;
  const DType to = is_arg || (reduce_op == ReduceOp::Sum && !is_float(from)) ? DType::Int64
                   : is_sum && !is_float(from)                               ? DType::Float32
                                                                             : from;
  ptrdiff_t strides[kMaxRank] = {};
  size_t count = 1;
  for (int dim = walks.on_host.rank - 1; dim >= 0; dim--) {
    if (!kept[dim]) continue;
    strides[dim] = static_cast<ptrdiff_t>(count);
    count *= walks.on_host.shape[dim];
  }
  Twin out(to, count);
  for (Walk* walk : {&walks.on_host, &walks.on_device}) {
    walk->operand[0].dtype = to;
    walk->operand[0].data = walk == &walks.on_host ? out.host<char>() : out.device<char>();
    std::copy_n(strides, kMaxRank, walk->operand[0].strides);
  }
  if (is_arg) {
    cpu.arg_reduce({op == kArgMax, walks.on_host});
    gpu::kernels().arg_reduce({op == kArgMax, walks.on_device});
  } else {
    cpu.reduce({reduce_op, walks.on_host});
    gpu::kernels().reduce({reduce_op, walks.on_device});
  }
  out.compare(30 * tolerance_of(to), "reduce " + std::to_string(op) + " of " + name_of(from));
}

}  // namespace

TEST("map gives what the CPU gives, for every operation, any dtypes and layouts") {
  const Kernels& device = gpu::kernels();
  for (int round = 0; round < rounds(3000); round++) {
    const auto op = static_cast<MapOp>(round % static_cast<int>(MapOp::Count));
    const DType compute = kTypes[below(3) ? below(2) : below(8)];
    // Integer powers become larger than a double represents exactly.
    if (is_float(compute) ? needs_integer(op) : needs_float(op) || op == MapOp::Pow) continue;
    const int operands = operands_of(op);
    Walks walks(operands);
    const DType to = is_float(compute) ? compute : DType::Int64;
    View views[4];
    double number = 1.5;
    for (int i = 0; i < operands; i++) {
      if (i > 0 && below(5) == 0) {
        for (Walk* walk : {&walks.on_host, &walks.on_device}) {
          walk->operand[i].data = reinterpret_cast<char*>(&number);
          walk->operand[i].dtype = DType::Float64;
          walk->operand[i].is_number = true;
          std::fill_n(walk->operand[i].strides, kMaxRank, 0);
        }
        continue;
      }
      views[i] = view_of(i == 0     ? to
                         : below(3) ? compute
                                    : kTypes[below(8)],
                         walks.on_host.rank, walks.on_host.shape, i > 0);
      walks.set_operand(i, views[i]);
    }
    cpu.map({op, compute, walks.on_host});
    device.map({op, compute, walks.on_device});
    // The vector functions of the CPU and the functions of the device differ in the last digit.
    views[0].twin->compare(10 * tolerance_of(to),
                           "map " + std::to_string(static_cast<int>(op)) + " of " + name_of(compute));
  }
}

TEST("map in packs: rows with gaps, rows and columns that are broadcast, and numbers, in the types of floats") {
  const Kernels& device = gpu::kernels();
  for (int round = 0; round < rounds(400); round++) {
    const DType dtype = std::array{DType::Float32, DType::Float16, DType::BFloat16, DType::Float64}[round % 4];
    const auto op = std::array{MapOp::Add, MapOp::GeluGrad, MapOp::MulAdd, MapOp::Neg, MapOp::Where}[round % 5];
    const int operands = operands_of(op);
    const size_t planes = 1 + below(3), rows = 1 + below(5), cols = 4 * (1 + below(20)), gap = 8 * below(2);
    Walks walks(operands);
    for (Walk* walk : {&walks.on_host, &walks.on_device}) {
      walk->rank = 3;
      walk->shape[0] = planes, walk->shape[1] = rows, walk->shape[2] = cols;
    }
    double number = 0.75;
    std::vector<std::unique_ptr<Twin>> twins;
    for (int i = 0; i < operands; i++) {
      twins.push_back(std::make_unique<Twin>(dtype, planes * rows * (cols + gap)));
      const auto step = static_cast<ptrdiff_t>(cols + gap);
      const size_t kind = i == 0 ? 0 : below(5);  // dense, the same row, the same column, one element, a number
      const ptrdiff_t strides[] = {kind == 0 || kind == 2 ? step * static_cast<ptrdiff_t>(rows) : 0,
                                   kind == 0 || kind == 2 ? step : 0, kind <= 1 ? 1 : 0};
      for (const bool is_host : {true, false}) {
        Operand& operand = (is_host ? walks.on_host : walks.on_device).operand[i];
        operand.dtype = kind == 4 ? DType::Float64 : dtype;
        operand.is_number = kind == 4;
        operand.data = kind == 4 ? reinterpret_cast<char*>(&number)
                       : is_host ? twins.back()->host<char>()
                                 : twins.back()->device<char>();
        for (int d = 0; d < 3; d++) operand.strides[d] = kind == 4 ? 0 : strides[d];
      }
    }
    const DType compute = is_half(dtype) ? DType::Float32 : dtype;
    cpu.map({op, compute, walks.on_host});
    device.map({op, compute, walks.on_device});
    twins[0]->compare(10 * tolerance_of(dtype), "map in packs of " + std::string(name_of(dtype)));
  }
}

TEST("copy converts between all dtypes and layouts as the CPU does") {
  const Kernels& device = gpu::kernels();
  for (int round = 0; round < rounds(1500); round++) {
    Walks walks(2);
    const View out = view_of(kTypes[round % 8], walks.on_host.rank, walks.on_host.shape, false);
    const View in = view_of(kTypes[round / 8 % 8], walks.on_host.rank, walks.on_host.shape, true);
    walks.set_operand(0, out);
    walks.set_operand(1, in);
    cpu.copy({walks.on_host});
    device.copy({walks.on_device});
    out.twin->compare(0, "copy");
  }
}

TEST("reductions over any dimensions, short and cut into chunks") {
  for (int round = 0; round < rounds(1500); round++) {
    Walks walks(2);
    Walk& shape = walks.on_host;
    const DType from = kTypes[below(8)];
    const int op = round % 7;
    bool is_empty = false, kept[kMaxRank];
    for (int dim = 0; dim < shape.rank; dim++) {
      is_empty |= shape.shape[dim] == 0;
      kept[dim] = below(2);
    }
    if (is_empty && op >= kArgMin) continue;
    if (shape.rank == 1 && below(2)) shape.shape[0] = walks.on_device.shape[0] = 5000 + below(20000);
    if (static_cast<ReduceOp>(op) == ReduceOp::Prod && (!is_float(from) || is_half(from))) continue;
    const View in = view_of(from, shape.rank, shape.shape, true);
    walks.set_operand(1, in);
    check_reduction(op, walks, from, kept);
  }
}

TEST("reductions of rows and columns in packs, with tails, gaps between rows and an unaligned begin") {
  // [outer, rows, cols] elements; `gap` elements lie between rows, and the first row begins at element `begin`.
  struct Shape {
    size_t outer, rows, cols, gap, begin;
  };
  constexpr Shape kShapes[] = {{1, 1, 30011, 0, 0},  {1, 1, 9999, 0, 1}, {1, 300, 64, 0, 0}, {1, 5, 8192, 0, 0},
                               {1, 7, 1001, 7, 0},   {1, 9, 770, 0, 0},  {1, 500, 48, 0, 0}, {1, 500, 48, 16, 16},
                               {1, 1500, 20, 12, 0}, {1, 800, 33, 0, 0}, {3, 40, 64, 0, 0},  {3, 40, 36, 28, 0},
                               {12, 4, 512, 0, 0},   {1, 6000, 8, 8, 0}, {1, 4, 6, 0, 0},    {1, 3, 4096, 0, 0}};
  for (const Shape& shape : kShapes) {
    const size_t pitch = shape.cols + shape.gap, sizes[] = {shape.outer, shape.rows, shape.cols},
                 steps[] = {shape.rows * pitch, pitch, 1};
    for (const DType from : kTypes) {
      Twin in(from, shape.begin + shape.outer * shape.rows * pitch);
      for (int round = 0; round < 8; round += shape.outer == 1 ? 2 : 1) {
        Walks walks(2);
        bool kept[3];
        for (int dim = 0; dim < 3; dim++) kept[dim] = round >> dim & 1;
        for (Walk* walk : {&walks.on_host, &walks.on_device}) {
          walk->rank = 3;
          std::copy_n(sizes, 3, walk->shape);
          std::copy_n(steps, 3, walk->operand[1].strides);
          walk->operand[1].dtype = from;
          walk->operand[1].data =
              (walk == &walks.on_host ? in.host<char>() : in.device<char>()) + shape.begin * byte_size(from);
        }
        for (int op = 0; op <= kArgMax; op++) {
          if (static_cast<ReduceOp>(op) != ReduceOp::Prod) check_reduction(op, walks, from, kept);
        }
      }
    }
  }
}

TEST("a reduction finds the first NaN, in whichever pack it lies") {
  for (const DType from : {DType::Float32, DType::Float64, DType::Float16, DType::BFloat16}) {
    for (const size_t at : {0, 3, 777, 4095, 4098}) {
      Twin in(from, 4099);
      set(from, in.host(), at, NAN);
      set(from, in.host(), 4097, NAN);
      in.upload();
      Walks walks(2);
      for (Walk* walk : {&walks.on_host, &walks.on_device}) {
        walk->rank = 1;
        walk->shape[0] = in.count();
        walk->operand[1].strides[0] = 1;
        walk->operand[1].dtype = from;
        walk->operand[1].data = walk == &walks.on_host ? in.host<char>() : in.device<char>();
      }
      const bool kept[] = {false};
      for (const int op : {static_cast<int>(ReduceOp::Max), static_cast<int>(ReduceOp::Min), kArgMin, kArgMax})
        check_reduction(op, walks, from, kept);
    }
  }
}

TEST("matrix products, transposed, strided and in batches, by the own kernel") {
  check_products(rounds(60), [](const Walk& walk, const MatmulSizes& sizes) {
    gpu::kernels().matmul({sizes, walk});
    return true;
  });
}

TEST("matrix products of halves in tiles of both sizes, at every alignment; an infinite factor makes no NaN") {
  const auto multiply = [](const Walk& walk, const MatmulSizes& sizes) {
    gpu::kernels().matmul({sizes, walk});
    return true;
  };
  // The software device has two multiprocessors: it takes wide tiles if there are two of them.
  const size_t shapes[][3] = {{64, 64, 64}, {40, 24, 31}, {130, 264, 96}, {300, 129, 33}, {16, 2200, 40}, {257, 6, 72}};
  for (int round = 0; round < rounds(48); round++) {
    const auto& [m, n, k] = shapes[round % 6];
    const bool trans_a = round / 6 % 2, trans_b = round / 12 % 2, accumulate = below(2), is_aligned = below(3) > 0;
    const auto step_of = [&](size_t cols) { return is_aligned ? (cols + 7) / 8 * 8 : cols + below(3); };
    const MatmulSizes sizes{m, n, k, step_of(trans_a ? m : k), step_of(trans_b ? k : n), trans_a, trans_b, accumulate};
    check_product(round / 24 ? DType::Float16 : DType::BFloat16, 1 + below(2), sizes, multiply, round % 5 == 0);
  }
}

TEST("rows: softmax, its gradient, likelihoods, cross entropy, sorting, running sums, triangles") {
  const Kernels& device = gpu::kernels();
  for (const size_t cols : {1, 2, 31, 33, 256, 1000}) {
    for (const DType dtype : kFloats) {
      const DType wide = computing(dtype);
      const double digits = is_half(dtype) ? tolerance_of(dtype) : 0;
      const size_t rows = 1 + below(6), count = rows * cols;
      Wide a(dtype, count), grad(dtype, count), out(dtype, count), into(dtype, count);
      Twin labels(DType::Int64, rows), loss(wide, rows), row_grad(wide, rows);
      for (size_t r = 0; r < rows; r++) labels.host<int64_t>()[r] = static_cast<int64_t>(below(cols));
      labels.upload();
      cpu.log_softmax({wide, out.host(), a.host(), rows, cols});
      device.log_softmax({dtype, out.device(), a.device(), rows, cols});
      out.compare(4e-6 + digits, "log_softmax");
      cpu.log_softmax_grad({wide, into.host(), grad.host(), out.host(), rows, cols});
      device.log_softmax_grad({dtype, into.device(), grad.device(), out.device(), rows, cols});
      // The device's output may differ in its last digit, which the gradient multiplies by the sum of a row.
      into.compare(1e-4 + 4 * digits * static_cast<double>(1 + cols / 20), "log_softmax_grad");
      cpu.nll({wide, out.host(), loss.host(), DType::Int64, labels.host(), rows, cols});
      device.nll({dtype, out.device(), loss.device(), DType::Int64, labels.device(), rows, cols});
      loss.compare(4e-6 + digits, "nll");
      cpu.nll_grad({wide, into.host(), row_grad.host(), DType::Int64, labels.host(), rows, cols});
      device.nll_grad({dtype, into.device(), row_grad.device(), DType::Int64, labels.device(), rows, cols});
      into.compare(4e-6, "nll_grad");
      Twin kept(wide, 2 * rows), counts(wide, rows), weight(wide, cols);
      labels.host<int64_t>()[0] = -100;
      labels.upload();
      const double smoothing = cols % 2 ? 0.25 : 0;
      const LabelledScores on_host{a.host(), DType::Int64, labels.host(), weight.host(), kept.host(),
                                   rows,     cols,         -100,          smoothing};
      const LabelledScores on_device{a.device(), DType::Int64, labels.device(), weight.device(), kept.device(), rows,
                                     cols,       -100,         smoothing};
      cpu.cross_entropy({on_host, wide, loss.host(), counts.host()});
      device.cross_entropy({on_device, dtype, loss.device(), counts.device()});
      loss.compare(2e-5, "cross_entropy of " + std::string(name_of(dtype)));
      counts.compare(0, "cross_entropy's counts");
      device.cross_entropy_grad({on_device, dtype, into.device(), row_grad.device(), nullptr, 1, true});
      cpu.cross_entropy_grad({on_host, wide, into.host(), row_grad.host(), nullptr, 1, true});
      into.compare(2e-5 + digits, "cross_entropy_grad");
    }
    for (const DType dtype : kTypes) {
      const size_t rows = 1 + below(4), most = 1 + below(cols);
      const bool odd = cols % 2 != 0;  // the flag of each kernel: descending, reversed, upper
      Twin a(dtype, rows * cols), sorted(dtype, rows * most), places(DType::Int64, rows * most),
          sums(dtype, rows * cols);
      cpu.sort({dtype, sorted.host(), places.host<int64_t>(), a.host(), rows, most, cols, odd});
      device.sort({dtype, sorted.device(), places.device<int64_t>(), a.device(), rows, most, cols, odd});
      sorted.compare(0, "sort");
      places.compare(0, "sort's indices");
      cpu.cumsum({dtype, sums.host(), a.host(), 1, rows, cols, odd});
      device.cumsum({dtype, sums.device(), a.device(), 1, rows, cols, odd});
      sums.compare(0, "cumsum");
      cpu.triangle({dtype, sums.host(), a.host(), 1, rows, cols, 1, odd});
      device.triangle({dtype, sums.device(), a.device(), 1, rows, cols, 1, odd});
      sums.compare(0, "triangle");
    }
  }
}

TEST("lookups and sums into places") {
  const Kernels& device = gpu::kernels();
  for (int round = 0; round < rounds(200); round++) {
    const DType dtype = kTypes[round % 8];
    const LookupSizes x{1 + below(3), 1 + below(20), 1 + below(9), 1 + below(9), round % 3 == 0};
    const size_t shorter = x.outer * x.count * x.inner, longer = x.outer * x.size * x.inner;
    Twin few(dtype, shorter), many(dtype, longer), index(DType::Int64, x.per_element ? shorter : x.count);
    for (size_t i = 0; i < index.count(); i++) index.host<int64_t>()[i] = static_cast<int64_t>(below(x.size));
    index.upload();
    // The CPU rounds a half after each addition, the device at the end. Sums of small integers are exact.
    for (Twin* twin : {&few, &many}) {
      for (size_t i = 0; is_half(dtype) && i < twin->count(); i++)
        set(dtype, twin->host(), i, static_cast<double>(below(11)) - 5);
      twin->upload();
    }
    cpu.scatter({x, dtype, many.host(), few.host(), index.host<int64_t>(), ScatterOp::Add});
    device.scatter({x, dtype, many.device(), few.device(), index.device<int64_t>(), ScatterOp::Add});
    many.compare(0, "scatter");
    cpu.lookup({x, dtype, few.host(), many.host(), index.host<int64_t>()});
    device.lookup({x, dtype, few.device(), many.device(), index.device<int64_t>()});
    few.compare(0, "lookup");
  }
}

TEST("optimiser steps, norms and scaling of many tensors, at every alignment") {
  const Kernels& device = gpu::kernels();
  for (int round = 0; round < rounds(24); round++) {
    OptimizerRule rule;
    rule.kind = static_cast<OptimizerKind>(round % 4);
    rule.lr = 0.1;
    rule.weight_decay = round % 3 ? 0.01 : 0;
    rule.momentum = 0.9;
    rule.smoothing = rule.kind == OptimizerKind::Sgd ? 0.1 : 0.95;
    rule.epsilon = 1e-3;
    rule.maximize = below(2);
    rule.variant = below(2);
    // These are more tensors than one launch takes.
    std::vector<std::unique_ptr<Twin>> twins;
    std::vector<OptimizerTensor> on_host, on_device;
    Twin norm(DType::Float32, 1), odd(DType::Float32, 1);
    for (int i = 0; i < 50; i++) {
      const DType dtype = below(4) ? DType::Float32 : DType::Float64;
      const size_t count = i == 7 ? 9001 : i == 8 ? 0 : below(40), offset = below(3) ? 0 : below(4);
      OptimizerTensor host{dtype, count, 1.0 + round % 2, nullptr, nullptr, {}}, gpu = host;
      const auto set_operand = [&](auto& to_host, auto& to_gpu, bool is_square) {
        twins.push_back(std::make_unique<Twin>(dtype, count + offset));
        Twin& twin = *twins.back();
        for (size_t k = 0; is_square && k < twin.count(); k++)
          set(dtype, twin.host(), k, 30 + static_cast<double>(below(9)));
        twin.upload();
        to_host = twin.host<char>() + offset * byte_size(dtype);
        to_gpu = twin.device<char>() + offset * byte_size(dtype);
      };
      set_operand(host.param, gpu.param, false);
      set_operand(host.grad, gpu.grad, false);
      const bool is_optional[] = {rule.kind == OptimizerKind::Sgd, rule.kind != OptimizerKind::Adam, true};
      for (size_t k = 0; k < kOptimizerStates; k++) {
        const bool has_no_more = rule.kind == OptimizerKind::Lion && k > 0;
        const bool is_square =
            (rule.kind == OptimizerKind::Adam && k > 0) || (rule.kind == OptimizerKind::Rmsprop && k == 0);
        if (!has_no_more && (!is_optional[k] || below(2))) set_operand(host.state[k], gpu.state[k], is_square);
      }
      on_host.push_back(host);
      on_device.push_back(gpu);
    }
    cpu.optimize({rule, on_host.data(), on_host.size()});
    device.optimize({rule, on_device.data(), on_device.size()});
    for (const auto& twin : twins) twin->compare(4e-6, "optimize " + std::to_string(round % 4));
    cpu.total_norm({on_host.data(), on_host.size(), norm.host<float>()});
    device.total_norm({on_device.data(), on_device.size(), norm.device<float>()});
    norm.compare(4e-6, "total_norm");
    // Scaling multiplies by the norm, which is large, so both sides begin with the same elements.
    for (const auto& twin : twins) twin->upload();
    norm.upload();
    odd.host<float>()[0] = 0;
    odd.upload();
    const bool has_infinity = round % 5 == 4;
    if (has_infinity) {
      Twin infinite(DType::Float32, 5);
      infinite.host<float>()[3] = -INFINITY;
      infinite.upload();
      const OptimizerTensor alone{DType::Float32, 5, 1, infinite.device(), nullptr, {}};
      device.scale({&alone, 1, nullptr, 2, odd.device<float>()});
    } else {
      cpu.scale({on_host.data(), on_host.size(), norm.host<float>(), 0, odd.host<float>()});
      device.scale({on_device.data(), on_device.size(), norm.device<float>(), 0, odd.device<float>()});
      CHECK_EQ(odd.host<float>()[0], 0.0f);
      for (const auto& twin : twins) twin->compare(1e-6, "scale");
    }
    odd.host<float>()[0] = has_infinity ? 1 : 0;
    odd.compare(0, "what scale found");
  }
}

TEST("an index or label outside is reported at the next wait, once, and nothing is written outside") {
  gpu::Device& device = gpu::current_device();
  Twin out(DType::Float32, 4), a(DType::Float32, 4), index(DType::Int64, 4), loss(DType::Float32, 1);
  for (const int64_t bad : {int64_t{-1}, int64_t{4}, std::numeric_limits<int64_t>::max()}) {
    index.host<int64_t>()[0] = bad;
    for (int i = 1; i < 4; i++) index.host<int64_t>()[i] = i;
    index.upload();
    const LookupSizes x{1, 4, 4, 1, false};
    const auto message = [&] {
      try {
        device.synchronize();
      } catch (const std::out_of_range& error) {
        return std::string(error.what()).substr(0, 48);
      }
      return std::string();
    };
    gpu::kernels().lookup({x, DType::Float32, out.device(), a.device(), index.device<int64_t>()});
    CHECK_EQ(message(), "lookup: an index on cuda:0 was out of range in a");
    gpu::kernels().scatter({x, DType::Float32, out.device(), a.device(), index.device<int64_t>(), ScatterOp::Add});
    CHECK_EQ(message(), "lookup: an index on cuda:0 was out of range in a");
    gpu::kernels().nll({DType::Float32, a.device(), loss.device(), DType::Int64, index.device(), 1, 4});
    CHECK_EQ(message(), "loss: a label on cuda:0 was out of range in an e");
    CHECK_EQ(message(), "");
  }
}

TEST("copies larger than all pinned chunks arrive whole, in both directions") {
  gpu::Device& device = gpu::current_device();
  for (const size_t bytes : {size_t{1}, (size_t{1} << 20) - 1, (size_t{5} << 20) + 7}) {
    std::vector<unsigned char> from(bytes), to(bytes);
    for (size_t i = 0; i < bytes; i++) from[i] = static_cast<unsigned char>(i * 7 + i / 1000);
    void* data = device.allocate(bytes);
    device.upload(data, from.data(), bytes);
    device.download(to.data(), data, bytes);
    CHECK(from == to);
    device.free(data);
  }
}

int main() {
  // Turns cuBLASLt off, so that our own kernels run. tensor_cuda_library_test tests cuBLASLt.
  setenv("RINGWISE_LIBCUBLASLT", "none", 1);
  return test::run_on_device();
}
