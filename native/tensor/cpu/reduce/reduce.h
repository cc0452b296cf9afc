// Reductions over any dimensions of any strides. Included only by families/.
//
// The dimensions that are kept are those along which the output moves. Either the innermost reduced dimension is read
// in runs, each combined into one number, or the innermost kept dimension is read in rows, combined elementwise: the
// denser one of both in memory. Float sums and products are taken in float64 (sums of float32 in short blocks first),
// so that long ones keep their digits; the order depends on shape and strides alone.
namespace ringwise::tensor::RINGWISE_LEVEL {

// A simplified walk, taken apart: `kept` walks over output and input, `reduced` over the input alone.
struct ReduceWalks {
  Walk kept, reduced;
  size_t count = 1;  // elements of the input for each of the output
};

inline void append(Walk& walk, const Walk& from, int d, std::initializer_list<int> operands) {
  walk.shape[walk.rank] = from.shape[d];
  int to = 0;
  for (const int i : operands) walk.operand[to++].strides[walk.rank] = from.operand[i].strides[d];
  walk.rank++;
}

inline ReduceWalks split(const Walk& walk) {
  const Walk simple = simplified(walk);
  ReduceWalks result;
  result.kept.operands = 2;
  result.kept.operand[0] = simple.operand[0];
  result.kept.operand[1] = simple.operand[1];
  result.reduced.operands = 1;
  result.reduced.operand[0] = simple.operand[1];
  for (int d = 0; d < simple.rank; d++) {
    if (simple.operand[0].strides[d] != 0) {
      append(result.kept, simple, d, {0, 1});
    } else {
      append(result.reduced, simple, d, {1});
      result.count *= simple.shape[d];
    }
  }
  const auto never_empty = [](Walk& walk) {
    if (walk.rank > 0) return;
    walk.rank = 1;
    walk.shape[0] = 1;
    for (int i = 0; i < walk.operands; i++) walk.operand[i].strides[0] = 0;
  };
  never_empty(result.kept);
  never_empty(result.reduced);
  return result;
}

// Calls body(out, in) for every element that is kept.
template <class Body>
inline void for_each_kept(const Walk& kept, Body body) {
  const int inner = kept.rank - 1;
  for_each_row(kept, [&](char* const* at) {
    for (size_t i = 0; i < kept.shape[inner]; i++) {
      const auto step = static_cast<ptrdiff_t>(i);
      body(at[0] + step * kept.operand[0].strides[inner], at[1] + step * kept.operand[1].strides[inner]);
    }
  });
}

// Returns the result of a total over `count` elements.
template <class T, class Op>
inline T finished(typename Op::Total total, size_t count, bool is_mean) {
  return static_cast<T>(is_mean ? total / static_cast<typename Op::Total>(count) : total);
}

// Computes each output from runs of the innermost reduced dimension.
template <class T, class Op>
void reduce_runs(const ReduceWalks& walks, bool is_mean) {
  const int inner = walks.reduced.rank - 1;
  const size_t length = walks.reduced.shape[inner];
  RowReader<T> reader(walks.reduced.operand[0], walks.reduced.operand[0].strides[inner]);
  const WriteTile<T> write = writer<T>(walks.kept.operand[0].dtype);
  Walk reduced = walks.reduced;
  for_each_kept(walks.kept, [&](char* out, char* in) {
    auto total = Op::start();
    reduced.operand[0].data = in;
    for_each_row(reduced, [&](char* const* at) {
      for (size_t i = 0; i < length; i += kTile) {
        const size_t count = std::min(length - i, kTile);
        total = Op::run(total, reader.tile(at[0], i, count), count);
      }
    });
    const T result = finished<T, Op>(total, walks.count, is_mean);
    write(out, sizeof(T), &result, 1);
  });
}

// Computes rows of outputs from rows of the input, one after another. Adds up to kSumBlock rows of float32 in float32.
template <class T, class Op>
void reduce_rows(const ReduceWalks& walks, bool is_mean) {
  constexpr bool kInBlocks = std::is_same_v<Op, Sum<float>>;
  const int inner = walks.kept.rank - 1;
  const size_t length = walks.kept.shape[inner];
  RowReader<T> reader(walks.kept.operand[1], walks.kept.operand[1].strides[inner]);
  const WriteTile<T> write = writer<T>(walks.kept.operand[0].dtype);
  Walk reduced = walks.reduced;
  append(reduced, walks.kept, inner, {1});  // so that a row of this walk is a row of outputs
  alignas(64) typename Op::Total totals[kTile];
  alignas(64) T block[kTile];
  for_each_row(walks.kept, [&](char* const* kept) {
    for (size_t begin = 0; begin < length; begin += kTile) {
      const size_t count = std::min(length - begin, kTile);
      std::fill_n(totals, count, Op::start());
      size_t in_block = 0;
      const auto add_block = [&] {
        for (size_t i = 0; i < count; i++) totals[i] = Op::take(totals[i], block[i]);
        in_block = 0;
      };
      reduced.operand[0].data = kept[1];
      for_each_row(reduced, [&](char* const* at) {
        const T* row = reader.tile(at[0], begin, count);
        if constexpr (kInBlocks) {
          if (in_block == 0)
            std::copy_n(row, count, block);
          else
            for (size_t i = 0; i < count; i++) block[i] += row[i];
          if (++in_block == kSumBlock) add_block();
        } else {
          for (size_t i = 0; i < count; i++) totals[i] = Op::take(totals[i], row[i]);
        }
      });
      if (in_block > 0) add_block();
      for (size_t i = 0; i < count; i++) block[i] = finished<T, Op>(totals[i], walks.count, is_mean);
      write(kept[0] + static_cast<ptrdiff_t>(begin) * walks.kept.operand[0].strides[inner],
            walks.kept.operand[0].strides[inner], block, count);
    }
  });
}

template <class T, class Op>
void reduce_with(const Walk& walk, bool is_mean = false) {
  const ReduceWalks walks = split(walk);
  const int kept = walks.kept.rank - 1, reduced = walks.reduced.rank - 1;
  const bool is_row = walks.kept.shape[kept] > 1 && std::abs(walks.kept.operand[1].strides[kept]) <
                                                        std::abs(walks.reduced.operand[0].strides[reduced]);
  // Threads share the outputs. A single output is the work of one thread, so that no sum depends on their number.
  const size_t grain = std::max<size_t>(kGrain / std::max<size_t>(walks.count, 1), 1);
  for_each_part_of(walks.kept, grain, [&](const Walk& part) {
    const ReduceWalks mine{part, walks.reduced, walks.count};
    if (is_row)
      reduce_rows<T, Op>(mine, is_mean);
    else
      reduce_runs<T, Op>(mine, is_mean);
  });
}

// Sums, means and products are taken in the computing type of a conversion to the output: means of integers are floats.
void reduce(const Reduce& x) {
  const auto& [op, walk] = x;
  const DType in = walk.operand[1].dtype;
  const bool is_sum = op == ReduceOp::Sum || op == ReduceOp::Mean || op == ReduceOp::Prod;
  with_compute(is_sum ? converting_type(walk.operand[0].dtype, in) : in, [&](auto type) {
    using T = decltype(type);
    switch (op) {
      case ReduceOp::Sum: return reduce_with<T, Sum<T>>(walk);
      case ReduceOp::Mean: return reduce_with<T, Sum<T>>(walk, true);
      case ReduceOp::Prod: return reduce_with<T, Prod<T>>(walk);
      case ReduceOp::Max: return reduce_with<T, Extreme<T, true>>(walk);
      case ReduceOp::Min: return reduce_with<T, Extreme<T, false>>(walk);
      case ReduceOp::Count: break;
    }
  });
}

template <class T, bool kIsMax>
void find_extremes(const Walk& walk) {
  const ReduceWalks walks = split(walk);
  const int inner = walks.reduced.rank - 1;
  const size_t length = walks.reduced.shape[inner];
  RowReader<T> reader(walks.reduced.operand[0], walks.reduced.operand[0].strides[inner]);
  Walk reduced = walks.reduced;
  for_each_kept(walks.kept, [&](char* out, char* in) {
    T best{};
    int64_t found = -1, seen = 0;
    reduced.operand[0].data = in;
    for_each_row(reduced, [&](char* const* at) {
      for (size_t begin = 0; begin < length; begin += kTile) {
        const size_t count = std::min(length - begin, kTile);
        const T* tile = reader.tile(at[0], begin, count);
        for (size_t i = 0; i < count; i++, seen++) {
          const bool is_better = kIsMax ? tile[i] > best : tile[i] < best;
          if (found >= 0 && (best != best || (!is_better && tile[i] == tile[i]))) continue;
          best = tile[i];
          found = seen;
        }
      }
    });
    *reinterpret_cast<int64_t*>(out) = found;
  });
}

void arg_reduce(const ArgReduce& x) {
  const auto& [is_max, walk] = x;
  with_compute(walk.operand[1].dtype, [&](auto type) {
    using T = decltype(type);
    if (is_max)
      find_extremes<T, true>(walk);
    else
      find_extremes<T, false>(walk);
  });
}

}  // namespace ringwise::tensor::RINGWISE_LEVEL
