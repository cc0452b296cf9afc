// Lookups by index, and sums into indexed elements. Included only by families/.
namespace ringwise::tensor::RINGWISE_LEVEL {

// A part of a lookup: ranges of its dimensions outer, count and inner.
struct LookupPart {
  size_t outer[2], count[2], inner[2];
};

// Calls body(short, long, count) for every run of elements of a part that one index names: its offsets into
// [outer, count, inner] and into [outer, size, inner], and its length.
template <class Body>
inline void for_each_lookup(const int64_t* index, const LookupSizes& sizes, const LookupPart& part, Body body) {
  const auto [first, last] = part.inner;
  for (size_t o = part.outer[0]; o < part.outer[1]; o++) {
    for (size_t j = part.count[0]; j < part.count[1]; j++) {
      const size_t to = (o * sizes.count + j) * sizes.inner, from = o * sizes.size;
      if (!sizes.per_element) {
        body(to + first, (from + static_cast<size_t>(index[j])) * sizes.inner + first, last - first);
        continue;
      }
      for (size_t i = first; i < last; i++) {
        body(to + i, (from + static_cast<size_t>(index[to + i])) * sizes.inner + i, 1);
      }
    }
  }
}

// Calls body(part) on several threads for the parts of a lookup. They are ranges of `outer`, or of another dimension
// if that is too short.
template <class Body>
inline void for_each_lookup_part(const LookupSizes& x, size_t (LookupPart::*other)[2], size_t least, Body body) {
  const LookupPart whole{{0, x.outer}, {0, x.count}, {0, x.inner}};
  const size_t parts = parts_of(x.outer * x.count * x.inner, kGrain);
  const auto cut = x.outer >= parts ? &LookupPart::outer : other;
  const size_t length = (whole.*cut)[1];
  const size_t pieces = cut == other ? std::clamp(length / least, size_t{1}, parts) : parts;
  for_each_part(pieces, [&](size_t i) {
    LookupPart part = whole;
    (part.*cut)[0] = length * i / pieces;
    (part.*cut)[1] = length * (i + 1) / pieces;
    body(part);
  });
}

template <class T>
void lookup_elements(T* out, const T* a, const int64_t* index, const LookupSizes& sizes) {
  for_each_lookup_part(sizes, &LookupPart::count, 1, [&](const LookupPart& part) {
    for_each_lookup(index, sizes, part, [&](size_t to, size_t from, size_t count) {
      if (count == 1)
        out[to] = a[from];
      else
        std::copy_n(a + from, count, out + to);
    });
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

// Two indices may name one element, so `count` is never cut: each element takes its operands in the order of the
// indices, however many threads there are.
void scatter(const Scatter& x) {
  constexpr size_t kLine = 16;  // elements of a row that are worth a part, so that threads seldom share a cache line
  with_scatter_op(x.op, [&](auto combine) {
    with_type(x.dtype, [&](auto type) {
      using T = decltype(type);
      T* to = static_cast<T*>(x.out);
      const T* from = static_cast<const T*>(x.a);
      with_compute(x.dtype, [&](auto compute) {
        using C = decltype(compute);
        for_each_lookup_part(x, &LookupPart::inner, kLine, [&](const LookupPart& part) {
          for_each_lookup(x.index, x, part, [&](size_t at, size_t target, size_t count) {
            T* own = to + target;
            const T* given = from + at;
            for (size_t i = 0; i < count; i++) own[i] = write_as<T>(combine(read_as<C>(own[i]), read_as<C>(given[i])));
          });
        });
      });
    });
  });
}

}  // namespace ringwise::tensor::RINGWISE_LEVEL
