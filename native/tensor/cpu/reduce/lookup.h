// Lookups by index, and sums into indexed elements. Included only by families/.
namespace ringwise::tensor::RINGWISE_LEVEL {

// Calls body(short, long, count) for every run of elements that one index names: its offsets into [outer, count, inner]
// and into [outer, size, inner], and its length.
template <class Body>
inline void for_each_lookup(const int64_t* index, const LookupSizes& sizes, Body body) {
  for (size_t o = 0; o < sizes.outer; o++) {
    for (size_t j = 0; j < sizes.count; j++) {
      const size_t to = (o * sizes.count + j) * sizes.inner, from = o * sizes.size;
      if (!sizes.per_element) {
        body(to, (from + static_cast<size_t>(index[j])) * sizes.inner, sizes.inner);
        continue;
      }
      for (size_t i = 0; i < sizes.inner; i++) {
        body(to + i, (from + static_cast<size_t>(index[to + i])) * sizes.inner + i, 1);
      }
    }
  }
}

template <class T>
void lookup_elements(T* out, const T* a, const int64_t* index, const LookupSizes& sizes) {
  for_each_lookup(index, sizes, [&](size_t to, size_t from, size_t count) {
    if (count == 1)
      out[to] = a[from];
    else
      std::copy_n(a + from, count, out + to);
  });
}

void lookup(const Lookup& x) {
  const auto as = [&](auto type) {
    using T = decltype(type);
    lookup_elements(static_cast<T*>(x.out), static_cast<const T*>(x.a), x.index, x);
  };
  switch (byte_size(x.dtype)) {
    case 1: return as(uint8_t{});
    case 2: return as(uint16_t{});
    case 4: return as(uint32_t{});
    default: return as(uint64_t{});
  }
}

// Calls body(combine), where combine(own, given) is what the operation makes of two numbers of a computing type.
template <class Body>
inline void with_scatter_op(ScatterOp op, Body body) {
  switch (op) {
    case ScatterOp::Add:
      return body([](auto own, auto given) { return unwrap<decltype(own)>(wrap(own) + wrap(given)); });
    case ScatterOp::Replace: return body([](auto, auto given) { return given; });
    case ScatterOp::Mul:
      return body([](auto own, auto given) { return unwrap<decltype(own)>(wrap(own) * wrap(given)); });
    case ScatterOp::Min: return body([](auto own, auto given) { return given < own || given != given ? given : own; });
    case ScatterOp::Max: return body([](auto own, auto given) { return given > own || given != given ? given : own; });
  }
}

void scatter(const Scatter& x) {
  with_scatter_op(x.op, [&](auto combine) {
    with_type(x.dtype, [&](auto type) {
      using T = decltype(type);
      T* to = static_cast<T*>(x.out);
      const T* from = static_cast<const T*>(x.a);
      with_compute(x.dtype, [&](auto compute) {
        using C = decltype(compute);
        for_each_lookup(x.index, x, [&](size_t at, size_t target, size_t count) {
          T* own = to + target;
          const T* given = from + at;
          for (size_t i = 0; i < count; i++) own[i] = write_as<T>(combine(read_as<C>(own[i]), read_as<C>(given[i])));
        });
      });
    });
  });
}

}  // namespace ringwise::tensor::RINGWISE_LEVEL
