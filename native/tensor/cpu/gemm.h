// Matrix product in the manner of BLIS (Van Zee and van de Geijn, "BLIS: A Framework for Rapidly Instantiating BLAS
// Functionality", 2015). k is cut into blocks; a block of B is packed into panels of kTileCols columns, a block of A
// into tiles of kTileRows rows, and every pair of a tile and a panel is one call of the tile kernel. A panel stays in
// the L1 cache while the tiles of a block, which stay in L2, pass by it. Included only by level.h.
//
// Packing reads and writes all of an operand, which only pays when it is used often. So:
//  - few rows times a transposed B (a layer's forward pass: weights are stored [out, in]): the transposed product is
//    computed, with the weights, read in place, in the role of A, and the tiles of C are turned on the way out;
//  - few columns and an A that is not transposed: A is read in place (a transposed one would touch a new page at
//    every step).
namespace ringwise::tensor::RINGWISE_LEVEL {

constexpr size_t kBlockK = 400;
constexpr size_t kBlockTiles = 16;        // tiles in a block of A
constexpr size_t kWidePanels = 64;        // panels in a block of B when several blocks of A pass by it
constexpr size_t kNarrowPanels = 4;       // when only one does: packed just before they are read
constexpr size_t kMostColsInPlace = 128;  // columns of B up to which A is read in place
constexpr size_t kMostRowsTurned = 128;   // rows of A up to which the transposed product is computed

struct Range {
  size_t begin, size;
};

// [0, total) in ceil(total / most) parts of nearly equal size.
struct Split {
  size_t total, parts, longest;
  Split(size_t total, size_t most)
      : total(total), parts((total + most - 1) / most), longest((total + parts - 1) / parts) {}
  Range operator[](size_t i) const {
    const size_t begin = i * total / parts;
    return {begin, (i + 1) * total / parts - begin};
  }
};

// Working space of one thread, grown to what its products need, freed when the thread ends.
template <class T = float>
class PackBuffer {
 public:
  T* reserve(size_t count) {
    count += kPackSlack;
    if (count > capacity_) {
      capacity_ = 0;
      data_.reset();
      data_.reset(static_cast<T*>(::operator new(count * sizeof(T), std::align_val_t{64})));
      capacity_ = count;
    }
    return data_.get();
  }

 private:
  struct Free {
    void operator()(T* p) const { ::operator delete(p, std::align_val_t{64}); }
  };
  std::unique_ptr<T, Free> data_;
  size_t capacity_ = 0;
};

// A or B: `outer` counts its rows or columns, `p` runs along k.
struct Matrix {
  const float* data;
  size_t step;      // from one stored row to the next
  bool k_is_inner;  // stored with k running fastest
  const float* at(size_t outer, size_t p) const { return data + (k_is_inner ? outer * step + p : p * step + outer); }
  void pack(float* out, size_t width, Range outer, Range k) const {
    const float* from = at(outer.begin, k.begin);
    if (k_is_inner) pack_columns(out, width, from, step, outer.size, k.size);
    else pack_rows(out, width, from, step, outer.size, k.size);
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
  size_t c_step = is_turned ? m : n;  // from one stored row of C to the next
};

inline size_t panel_width(size_t cols) { return cols <= kLanes ? kLanes : kTileCols; }

// Adds `tile`, rows of kTileCols floats, to c[row * step + col] or overwrites it.
inline void write_part(float* c, size_t step, const float* tile, size_t rows, size_t cols, bool accumulate) {
  for (size_t r = 0; r < rows; r++) {
    for (size_t j = 0; j < cols; j += kLanes) {
      float* to = c + r * step + j;
      const size_t count = std::min<size_t>(cols - j, kLanes);
      const Vec sum = load(tile + r * kTileCols + j);
      store_some(to, accumulate ? load_some(to, count) + sum : sum, count);
    }
  }
}

// The same to c[col * step + row].
inline void write_turned(float* c, size_t step, const float* tile, size_t rows, size_t cols, bool accumulate) {
  for (size_t r = 0; r < rows; r += kLanes) {
    const size_t high = std::min<size_t>(rows - r, kLanes);
    for (size_t j = 0; j < cols; j += kLanes) {
      Vec block[kLanes] = {};
      for (size_t i = 0; i < high; i++) block[i] = load(tile + (r + i) * kTileCols + j);
      transpose(block);
      const size_t wide = std::min<size_t>(cols - j, kLanes);
      for (size_t i = 0; i < wide; i++) {
        float* to = c + (j + i) * step + r;
        store_some(to, accumulate ? load_some(to, high) + block[i] : block[i], high);
      }
    }
  }
}

// Rows of C, with the same rows of A as the tile kernel reads them.
struct TileRows {
  size_t row, rows;
  const float* a;
  size_t a_row, a_step;
};

// The tiles of one block of A, rows `ms` and `ks` of k, packed one behind the other unless A is read in place.
template <class B>
inline size_t make_tiles(const Product<B>& x, Range ms, Range ks, float* pack, bool is_packed, TileRows* tiles) {
  const Split split(ms.size, kTileRows);
  for (size_t i = 0; i < split.parts; i++) {
    const Range rows{ms.begin + split[i].begin, split[i].size};
    if (x.a_in_place) {
      tiles[i] = {rows.begin, rows.size, x.a.at(rows.begin, ks.begin), x.a.k_is_inner ? x.a.step : 1,
                  x.a.k_is_inner ? 1 : x.a.step};
      continue;
    }
    if (!is_packed) x.a.pack(pack, rows.size, rows, ks);
    tiles[i] = {rows.begin, rows.size, pack, 1, rows.size};
    pack += rows.size * ks.size;
  }
  return split.parts;
}

// All tiles of a block against one panel: columns [col, col + cols), packed to whole vectors. Tiles that do not fit
// into C as they are, at its right edge or turned, go through a buffer.
template <class B>
inline void multiply_panel(const Product<B>& x, const TileRows* tiles, size_t tile_count, const float* panel, size_t col,
                           size_t cols, size_t k, bool accumulate) {
  alignas(64) float buffer[kTileRows * kTileCols];
  const size_t width = panel_width(cols);
  const bool is_direct = !x.is_turned && cols == width;
  Tile tile;
  tile.b = panel;
  tile.b_step = width;
  tile.c = buffer;
  tile.c_row = is_direct ? x.c_step : kTileCols;
  tile.k = k;
  tile.accumulate = accumulate && is_direct;
  for (size_t i = 0; i < tile_count; i++) {
    const TileRows& t = tiles[i];
    tile.a = t.a;
    tile.a_row = t.a_row;
    tile.a_step = t.a_step;
    if (is_direct) tile.c = x.c + t.row * x.c_step + col;
    kTileKernels[width / kLanes - 1][t.a_row == 1][t.rows - 1](tile);
    if (x.is_turned) write_turned(x.c + col * x.c_step + t.row, x.c_step, buffer, t.rows, cols, accumulate);
    else if (!is_direct) write_part(x.c + t.row * x.c_step + col, x.c_step, buffer, t.rows, cols, accumulate);
  }
}

template <class B>
inline void multiply(const Product<B>& x) {
  thread_local PackBuffer<> a_buffer, b_buffer;
  const Split k_blocks(x.k, kBlockK), m_blocks(x.m, kBlockTiles * kTileRows);
  const size_t n_most = (m_blocks.parts == 1 ? kNarrowPanels : kWidePanels) * kTileCols;
  float* a_pack = x.a_in_place ? nullptr : a_buffer.reserve(m_blocks.longest * k_blocks.longest);
  float* b_pack = b_buffer.reserve(std::min(x.n + kTileCols, n_most) * k_blocks.longest);
  TileRows tiles[kBlockTiles];

  for (size_t kb = 0; kb < k_blocks.parts; kb++) {
    const Range ks = k_blocks[kb];
    for (size_t n_begin = 0; n_begin < x.n; n_begin += n_most) {
      const size_t n_size = std::min(x.n - n_begin, n_most);
      for (size_t mb = 0; mb < m_blocks.parts; mb++) {
        const bool is_packed = m_blocks.parts == 1 && n_begin > 0;
        const size_t tile_count = make_tiles(x, m_blocks[mb], ks, a_pack, is_packed, tiles);
        for (size_t j = 0; j < n_size; j += kTileCols) {
          const size_t cols = std::min<size_t>(n_size - j, kTileCols);
          float* panel = b_pack + j * ks.size;
          if (mb == 0) x.b.pack(panel, panel_width(cols), {n_begin + j, cols}, ks);
          multiply_panel(x, tiles, tile_count, panel, n_begin + j, cols, ks.size, x.accumulate || kb > 0);
        }
      }
    }
  }
}

// Multiplications and additions that are worth another thread: about 20 µs.
constexpr size_t kGrainProducts = size_t{1} << 20;

// Units (tiles of rows, panels of columns) number i of `parts` nearly equal parts of [0, total).
inline Range units_of(size_t total, size_t unit, size_t parts, size_t i) {
  const size_t units = (total + unit - 1) / unit;
  const size_t begin = std::min(total, units * i / parts * unit), end = std::min(total, units * (i + 1) / parts * unit);
  return {begin, end - begin};
}

// These rows and columns of C.
inline Product<Matrix> part_of(Product<Matrix> x, Range rows, Range cols) {
  x.a.data = x.a.at(rows.begin, 0);
  x.b.data = x.b.at(cols.begin, 0);
  x.c += x.is_turned ? cols.begin * x.c_step + rows.begin : rows.begin * x.c_step + cols.begin;
  x.m = rows.size;
  x.n = cols.size;
  return x;
}

// Threads share C in a grid of blocks. Each packs what it needs, so the grid is the one with the least packing. Every
// element is summed up as it would be by one thread.
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

void matmul(float* c, const float* a_data, const float* b_data, const MatmulSizes& x) {
  const auto& [m, n, k, a_step, b_step, trans_a, trans_b, accumulate] = x;
  if (m == 0 || n == 0) return;
  if (k == 0) {
    if (!accumulate) std::memset(c, 0, m * n * sizeof(float));
    return;
  }
  const Matrix a{a_data, a_step, !trans_a}, b{b_data, b_step, trans_b};
  const bool are_rows = trans_b && !trans_a && a_step == k && b_step == k;
  if (are_rows && (m <= kThinRows || n <= kThinCols)) multiply_dots(c, a_data, b_data, m, n, k, accumulate);
  else if (trans_b && m <= kMostRowsTurned) multiply_shared({b, a, n, m, k, true, true, c, accumulate});
  else multiply_shared({a, b, m, n, k, !trans_a && n <= kMostColsInPlace, false, c, accumulate});
}

// Rows of B times elements of A, which the compiler turns into vectors.
void matmul_double_rows(double* c, const double* a, const double* b, const MatmulSizes& x, size_t first, size_t end) {
  c += first * x.n;
  if (!x.accumulate) std::fill_n(c, (end - first) * x.n, 0.0);
  for (size_t i = first; i < end; i++, c += x.n) {
    for (size_t p = 0; p < x.k; p++) {
      const double value = a[x.trans_a ? p * x.a_step + i : i * x.a_step + p];
      if (x.trans_b) for (size_t j = 0; j < x.n; j++) c[j] += value * b[j * x.b_step + p];
      else for (size_t j = 0; j < x.n; j++) c[j] += value * b[p * x.b_step + j];
    }
  }
}

void matmul_double(double* c, const double* a, const double* b, const MatmulSizes& x) {
  const size_t grain = kGrainProducts / 8 / std::max<size_t>(x.n * x.k, 1);
  parallel_for(x.m, grain, [&](size_t begin, size_t end) { matmul_double_rows(c, a, b, x, begin, end); });
}

}  // namespace ringwise::tensor::RINGWISE_LEVEL
