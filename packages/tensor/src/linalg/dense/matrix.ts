// A row-major matrix of float64 in a new array, on which decompositions are computed.

/** One matrix. Methods return new matrices; `data` may be written. */
export class Matrix {
  readonly rows: number;
  readonly cols: number;
  readonly data: Float64Array;

  constructor(rows: number, cols: number, data: Float64Array = new Float64Array(rows * cols)) {
    this.rows = rows;
    this.cols = cols;
    this.data = data;
  }

  /** Returns the matrix whose element at row i and column j is `value(i, j)`. */
  static from(rows: number, cols: number, value: (i: number, j: number) => number): Matrix {
    const out = new Matrix(rows, cols);
    for (let i = 0, at = 0; i < rows; i++) for (let j = 0; j < cols; j++) out.data[at++] = value(i, j);
    return out;
  }

  static identity(size: number): Matrix {
    return Matrix.from(size, size, (i, j) => (i === j ? 1 : 0));
  }

  static diagonal(values: ArrayLike<number>): Matrix {
    return Matrix.from(values.length, values.length, (i, j) => (i === j ? values[i]! : 0));
  }

  at(i: number, j: number): number {
    return this.data[i * this.cols + j]!;
  }

  set(i: number, j: number, value: number): void {
    this.data[i * this.cols + j] = value;
  }

  clone(): Matrix {
    return new Matrix(this.rows, this.cols, this.data.slice());
  }

  /** The transpose, a copy. */
  get t(): Matrix {
    return Matrix.from(this.cols, this.rows, (i, j) => this.at(j, i));
  }

  /** Returns the matrix of `value(element, row, column)`. */
  map(value: (x: number, i: number, j: number) => number): Matrix {
    return Matrix.from(this.rows, this.cols, (i, j) => value(this.at(i, j), i, j));
  }

  /** Returns this + factor × other. */
  plus(other: Matrix, factor = 1): Matrix {
    const out = this.clone();
    for (let i = 0; i < out.data.length; i++) out.data[i]! += factor * other.data[i]!;
    return out;
  }

  /** Returns the product of this and `other`. */
  times(other: Matrix): Matrix {
    const out = new Matrix(this.rows, other.cols);
    const [inner, width] = [this.cols, other.cols];
    for (let i = 0; i < this.rows; i++) {
      for (let k = 0; k < inner; k++) {
        const factor = this.data[i * inner + k]!;
        for (let j = 0; j < width; j++) out.data[i * width + j]! += factor * other.data[k * width + j]!;
      }
    }
    return out;
  }

  /** Returns the first `count` columns. */
  firstCols(count: number): Matrix {
    return Matrix.from(this.rows, count, (i, j) => this.at(i, j));
  }

  /** Whether no element is NaN or infinite. */
  get isFinite(): boolean {
    return this.data.every(Number.isFinite);
  }
}
