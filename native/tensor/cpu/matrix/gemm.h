// Matrix product in the manner of BLIS (Van Zee and van de Geijn, "BLIS: A Framework for Rapidly Instantiating BLAS
// Functionality", 2015). k is cut into blocks; a block of B is packed into panels of kTileCols columns, a block of A
// into tiles of kTileRows rows, and every pair of a tile and a panel is one call of the tile kernel. A few panels at a
// time stay in the L2 cache while the tiles of a block pass by; a tile meets all of them, so C is written along its
// rows. Included only by families/.
//
// Packing reads and writes all of an operand, which only pays when it is used often. So:
//
// - Few rows times a transposed B (a layer's forward pass, whose weights are stored [out, in]): the transposed product
//   is computed. The weights, read in place, have the role of A, and the tiles of C are turned when they are written.
//
// - Few rows and a B that is not transposed: B is read in place, except for the columns at its right edge.
//
// - An A that is not transposed, unless there are many columns: A is read in place. A transposed one would touch a new
//   page at every step.
namespace ringwise::tensor::RINGWISE_LEVEL {

constexpr size_t kBlockK = 400;
constexpr size_t kBlockTiles = 16;         // tiles in a block of A
constexpr size_t kWidePanels = 64;         // panels in a block of B that several blocks of A pass by
constexpr size_t kPanelsAtOnce = 8;        // panels that are packed together
constexpr size_t kNarrowPanels = 8;        // panels in a block of B that one block of A passes by, packed just before
constexpr size_t kMostColsInPlace = 1024;  // most columns of B for which A is read in place, unless its step is …
constexpr size_t kSameSetStep = 1024;      // … a multiple of these 4 KiB: its rows would share one set of the L1 cache
constexpr size_t kFewColumns = 128;        // most columns of B for which A is read in place at any step
constexpr size_t kMostRowsInPlace = 64;    // most rows of A for which B is read in place
constexpr size_t kMostRowsTurned = 128;    // most rows of A for which the transposed product is computed

// Cuts [0, total) into ceil(total / most) parts of nearly equal size: into none if `total` is 0.
struct Split {
  size_t total, parts, longest;
  Split(size_t total, size_t most)
      : total(total), parts((total + most - 1) / most), longest(parts == 0 ? 0 : (total + parts - 1) / parts) {}
  Range operator[](size_t i) const {
    const size_t begin = i * total / parts;
    return {begin, (i + 1) * total / parts - begin};
  }
};

// A or B. `outer` is a row of A or a column of B; `p` runs along k.
struct Matrix {
  const float* data;
  size_t step;      // from one stored row to the next
  bool k_is_inner;  // stored with k running fastest
  const float* at(size_t outer, size_t p) const { return data + (k_is_inner ? outer * step + p : p * step + outer); }
  void pack(const Piece* pieces, size_t count, Range k) const {
    if (!k_is_inner) return pack_rows(pieces, count, at(0, k.begin), step, k.size);
    for (const Piece* piece = pieces; piece < pieces + count; piece++) {
      pack_columns(piece->out, piece->width, at(piece->range.begin, k.begin), step, piece->range.size, k.size);
    }
  }
};

// B is a Matrix, or anything else that can pack its columns.
template <class B>
struct Product {
  Matrix a;
  B b;
  size_t m, n, k;
  bool a_in_place;
  bool is_turned;  // C is stored [n, m]
  float* c;
  bool accumulate;
  Finish finish{};
  size_t c_step = is_turned ? m : n;  // from one stored row of C to the next
};

inline size_t panel_width(size_t cols) { return cols <= kLanes ? kLanes : kTileCols; }

// Rows of C, and the same rows of A for the tile kernel (a_row and a_step as in Tile).
struct TileRows {
  size_t row, rows;
  const float* a;
  size_t a_row, a_step;
};

// Makes the tiles of one block of A: its rows `ms`, and `ks` along k. Packs them one behind the other, unless A is read
// in place or the block is packed already.
template <class B>
inline size_t make_tiles(const Product<B>& x, Range ms, Range ks, float* pack, bool is_packed, TileRows* tiles) {
  const Split split(ms.size, kTileRows);
  Piece pieces[kBlockTiles];
  for (size_t i = 0; i < split.parts; i++) {
    const Range rows{ms.begin + split[i].begin, split[i].size};
    if (x.a_in_place) {
      tiles[i] = {rows.begin, rows.size, x.a.at(rows.begin, ks.begin), x.a.k_is_inner ? x.a.step : 1,
                  x.a.k_is_inner ? 1 : x.a.step};
      continue;
    }
    pieces[i] = {pack, rows.size, rows};
    tiles[i] = {rows.begin, rows.size, pack, 1, rows.size};
    pack += rows.size * ks.size + kPackSlack;
  }
  if (!x.a_in_place && !is_packed) x.a.pack(pieces, split.parts, ks);
  return split.parts;
}

// Columns of B for the tile kernel: whole vectors, with rows `step` apart.
struct Panel {
  const float* data;
  size_t step, col, cols;
};

// Makes the panels of `columns` of B, at most kPanelsAtOnce of them, and `ks` along k. Packs them one behind the other,
// unless they are packed already or B is read in place.
template <class B>
inline size_t make_panels(const Product<B>& x, Range columns, Range ks, float* pack, bool is_packed, Panel* panels) {
  Piece pieces[kPanelsAtOnce];
  size_t count = 0, packed = 0;
  for (size_t j = 0; j < columns.size; j += kTileCols) {
    const size_t col = columns.begin + j, cols = std::min<size_t>(columns.size - j, kTileCols),
                 width = panel_width(cols);
    if constexpr (std::is_same_v<B, Matrix>) {
      if (!x.b.k_is_inner && cols == width && x.m <= kMostRowsInPlace) {
        panels[count++] = {x.b.at(col, ks.begin), x.b.step, col, cols};
        continue;
      }
    }
    pieces[packed++] = {pack + j * ks.size, width, {col, cols}};
    panels[count++] = {pack + j * ks.size, width, col, cols};
  }
  if (!is_packed) x.b.pack(pieces, packed, ks);
  return count;
}

// Multiplies the rows of a tile by one panel. Results at the right edge of C, or for a turned C, pass through a buffer.
template <class B>
inline void multiply_tile(const Product<B>& x, const TileRows& t, const Panel& panel, size_t k, bool accumulate) {
  alignas(64) float buffer[kTileRows * kTileCols];
  const auto& [data, step, col, cols] = panel;
  const size_t width = panel_width(cols);
  const bool is_direct = !x.is_turned && cols == width;
  float* c = is_direct ? x.c + t.row * x.c_step + col : buffer;
  const Tile tile{t.a, t.a_row, t.a_step, data, step, c, is_direct ? x.c_step : kTileCols, k, accumulate && is_direct};
  kTileKernels[width / kLanes - 1][t.a_row == 1][t.rows - 1](tile);
  if (x.is_turned)
    write_turned(x.c + col * x.c_step + t.row, x.c_step, buffer, t.rows, cols, accumulate);
  else if (!is_direct)
    write_part(x.c + t.row * x.c_step + col, x.c_step, buffer, t.rows, cols, accumulate);
}

// Finishes a block of C, whose sums are complete.
template <class B>
inline void finish_block(const Product<B>& x, Range rows, Range cols) {
  const auto& [stored, dense] = x.is_turned ? std::pair(cols, rows) : std::pair(rows, cols);
  finish_rows(x.finish, x.c, stored.begin * x.c_step + dense.begin, x.c_step, dense.begin, stored.size, dense.size);
}

// Computes a product, none of whose sizes is 0, on the calling thread.
template <class B>
inline void multiply(const Product<B>& x) {
  thread_local PackBuffer<> a_buffer, b_buffer;
  const Split k_blocks(x.k, kBlockK), m_blocks(x.m, kBlockTiles * kTileRows);
  const size_t n_most = (m_blocks.parts == 1 ? kNarrowPanels : kWidePanels) * kTileCols;
  float* a_pack =
      x.a_in_place ? nullptr : a_buffer.reserve(m_blocks.longest * k_blocks.longest + kBlockTiles * kPackSlack);
  float* b_pack = b_buffer.reserve(std::min(x.n + kTileCols, n_most) * k_blocks.longest);
  TileRows tiles[kBlockTiles];
  Panel panels[kPanelsAtOnce];

  for (size_t kb = 0; kb < k_blocks.parts; kb++) {
    const Range ks = k_blocks[kb];
    for (size_t n_begin = 0; n_begin < x.n; n_begin += n_most) {
      const size_t n_size = std::min(x.n - n_begin, n_most);
      for (size_t mb = 0; mb < m_blocks.parts; mb++) {
        const bool is_packed = m_blocks.parts == 1 && n_begin > 0;
        const size_t tile_count = make_tiles(x, m_blocks[mb], ks, a_pack, is_packed, tiles);
        for (size_t j = 0; j < n_size; j += kPanelsAtOnce * kTileCols) {
          const Range columns{n_begin + j, std::min<size_t>(n_size - j, kPanelsAtOnce * kTileCols)};
          const size_t panel_count = make_panels(x, columns, ks, b_pack + j * ks.size, mb > 0, panels);
          for (size_t t = 0; t < tile_count; t++) {
            for (size_t i = 0; i < panel_count; i++)
              multiply_tile(x, tiles[t], panels[i], ks.size, x.accumulate || kb > 0);
          }
          if (kb + 1 == k_blocks.parts) finish_block(x, m_blocks[mb], columns);
        }
      }
    }
  }
}

// The number of multiplications, each with an addition, that is worth another thread: about 20 µs.
constexpr size_t kGrainProducts = size_t{1} << 20;

// Returns part i of `parts` nearly equal parts of [0, total), cut at multiples of `unit` (a tile or a panel).
inline Range units_of(size_t total, size_t unit, size_t parts, size_t i) {
  const size_t units = (total + unit - 1) / unit;
  const size_t begin = std::min(total, units * i / parts * unit), end = std::min(total, units * (i + 1) / parts * unit);
  return {begin, end - begin};
}

// Returns the part of a product that computes these rows and columns of C.
inline Product<Matrix> part_of(Product<Matrix> x, Range rows, Range cols) {
  x.a.data = x.a.at(rows.begin, 0);
  x.b.data = x.b.at(cols.begin, 0);
  const auto& [stored, dense] = x.is_turned ? std::pair(cols, rows) : std::pair(rows, cols);
  x.c += stored.begin * x.c_step + dense.begin;
  if (x.finish.out) x.finish.out += stored.begin * x.c_step + dense.begin;
  if (x.finish.bias) x.finish.bias += dense.begin;
  x.m = rows.size;
  x.n = cols.size;
  return x;
}

// Shares C among threads in a grid of blocks. Each thread packs its operands, so the grid with the least packing is
// used. Every element is summed as one thread would sum it.
inline void multiply_shared(const Product<Matrix>& x) {
  const size_t parts = parts_of(x.m * x.n * x.k, kGrainProducts);
  size_t grid_rows = 1;
  for (size_t rows = 1; rows <= parts; rows++) {
    const auto packed = [&](size_t r) { return r * x.n + parts / r * x.m; };
    if (parts % rows == 0 && packed(rows) < packed(grid_rows)) grid_rows = rows;
  }
  const size_t grid_cols = parts / grid_rows;
  if (parts == 1) return multiply(x);
  for_each_part(parts, [&](size_t i) {
    const Range rows = units_of(x.m, kTileRows, grid_rows, i / grid_cols);
    const Range cols = units_of(x.n, kTileCols, grid_cols, i % grid_cols);
    if (rows.size > 0 && cols.size > 0) multiply(part_of(x, rows, cols));
  });
}

// Computes C, whose rows are dense, and its last step.
inline void multiply_matrices(float* c, const float* a_data, const float* b_data, const MatmulSizes& x,
                              const Finish& finish) {
  const auto& [m, n, k, a_step, b_step, trans_a, trans_b, accumulate] = x;
  if (m == 0 || n == 0) return;
  const Matrix a{a_data, a_step, !trans_a}, b{b_data, b_step, trans_b};
  const bool are_rows = trans_b && !trans_a && a_step == k && b_step == k;
  if (k == 0 || (are_rows && (m <= kThinRows || n <= kThinCols))) {
    if (k > 0)
      multiply_dots(c, a_data, b_data, m, n, k, accumulate);
    else if (!accumulate)
      std::memset(c, 0, m * n * sizeof(float));
    return finish_rows(finish, c, 0, n, 0, m, n);
  }
  if (trans_b && m <= kMostRowsTurned) return multiply_shared({b, a, n, m, k, true, true, c, accumulate, finish});
  const bool a_in_place = !trans_a && n <= kMostColsInPlace && (n <= kFewColumns || a_step % kSameSetStep != 0);
  multiply_shared({a, b, m, n, k, a_in_place, false, c, accumulate, finish});
}

// Computes rows [first, end) of C by adding rows of B times elements of A. The compiler vectorises this.
inline void multiply_double_rows(double* c, const double* a, const double* b, const MatmulSizes& x, size_t first,
                                 size_t end) {
  c += first * x.n;
  if (!x.accumulate) std::fill_n(c, (end - first) * x.n, 0.0);
  for (size_t i = first; i < end; i++, c += x.n) {
    for (size_t p = 0; p < x.k; p++) {
      const double value = a[x.trans_a ? p * x.a_step + i : i * x.a_step + p];
      if (x.trans_b)
        for (size_t j = 0; j < x.n; j++) c[j] += value * b[j * x.b_step + p];
      else
        for (size_t j = 0; j < x.n; j++) c[j] += value * b[p * x.b_step + j];
    }
  }
}

inline void multiply_doubles(double* c, const double* a, const double* b, const MatmulSizes& x) {
  const size_t grain = kGrainProducts / 8 / std::max<size_t>(x.n * x.k, 1);
  parallel_for(x.m, grain, [&](size_t begin, size_t end) { multiply_double_rows(c, a, b, x, begin, end); });
}

}  // namespace ringwise::tensor::RINGWISE_LEVEL
