// Pseudo-inverses, least squares and ranks, from singular values. Names and semantics are torch.linalg's.
import { checkOptions, optionChecks } from '../checks/options.ts';
import { flag, nonNegative, oneOf } from '../checks/value-checks.ts';
import { zeros } from '../core/creation.ts';
import { sameShape } from '../core/shape.ts';
import type { Tensor } from '../core/tensor.ts';
import { requireOperand } from '../ops/elementwise/convert.ts';
import { matmul, square, squeeze, sub, sum, unsqueeze } from '../ops/index.ts';
import { batched } from './batch.ts';
import { notFinite, requireMatrices, requireSameDtype, shapesDoNotFit } from './checks.ts';
import { svdvals } from './decompositions.ts';
import { type Svd, svdOf } from './dense/jacobi.ts';
import { Matrix } from './dense/matrix.ts';

/** Options of pinv() and matrixRank(). */
export interface RankOptions {
  /** Singular values up to this count as 0. Default 0. */
  readonly atol?: number;
  /**
   * Singular values up to this share of the largest one count as 0. Default: the larger size of the matrix times the
   * smallest difference from 1 in the dtype, or 0 if there is an atol above 0.
   */
  readonly rtol?: number;
  /** Whether the matrices are symmetric; then only the lower triangle is read. Default false. */
  readonly hermitian?: boolean;
}
const rankOptions = optionChecks<RankOptions>({ atol: nonNegative, rtol: nonNegative, hermitian: flag });

const epsilonOf = ({ dtype }: Tensor): number => (dtype === 'float64' ? 2 ** -52 : 2 ** -23);

/** Returns the largest singular value that counts as 0. */
function toleranceOf(a: Tensor, s: Float64Array, { atol = 0, rtol }: RankOptions): number {
  const size = Math.max(a.shape.at(-1)!, a.shape.at(-2)!);
  const relative = rtol ?? (atol > 0 ? 0 : size * epsilonOf(a));
  return Math.max(atol, relative * (s[0] ?? 0));
}

const symmetric = (x: Matrix): Matrix => x.map((value, i, j) => (i >= j ? value : x.at(j, i)));

function decomposed(op: string, a: Tensor, x: Matrix, index: number): Svd {
  if (!x.isFinite) throw notFinite(op, a, index);
  return svdOf(x);
}

/** Returns V S⁻¹ Uᵀ without the singular values up to `tolerance`. */
function pseudoInverse({ u, s, vh }: Svd, tolerance: number): Matrix {
  return vh.t.map((value, _, j) => (s[j]! > tolerance ? value / s[j]! : 0)).times(u.t);
}

/** Returns the gradient of a matrix from that of its pseudo-inverse `p`. */
function pinvGradient(a: Matrix, p: Matrix, grad: Matrix): Matrix {
  const direct = p.t.times(grad).times(p.t);
  const outside = Matrix.identity(a.rows).plus(a.times(p), -1);
  const before = Matrix.identity(a.cols).plus(p.times(a), -1);
  const left = outside.times(grad.t).times(p).times(p.t);
  const right = p.t.times(p).times(grad.t).times(before);
  return left.plus(right).plus(direct, -1);
}

/** Returns the pseudo-inverses (Moore-Penrose) of matrices [..., m, n]: [..., n, m]. */
export function pinv(a: Tensor, options: RankOptions = {}): Tensor {
  const isSymmetric = options?.hermitian ?? false;
  requireMatrices('linalg.pinv', a, isSymmetric);
  checkOptions('linalg.pinv', options, rankOptions);
  const [m, n] = a.shape.slice(-2) as [number, number];
  return batched('linalg.pinv', [a], [[n, m]], ([given], index) => {
    const x = isSymmetric ? symmetric(given!) : given!;
    const parts = decomposed('linalg.pinv', a, x, index);
    const found = pseudoInverse(parts, toleranceOf(a, parts.s, options));
    // As in PyTorch, the gradient takes the matrix as given, also where only one triangle was read.
    return { outs: [found], backward: ([grad]) => [pinvGradient(given!, found, grad!)] };
  })[0]!;
}

/** Returns the number of singular values of matrices [..., m, n] that do not count as 0: int64. */
export function matrixRank(a: Tensor, options: RankOptions = {}): Tensor {
  const isSymmetric = options?.hermitian ?? false;
  requireMatrices('linalg.matrixRank', a, isSymmetric);
  checkOptions('linalg.matrixRank', options, rankOptions);
  return batched('linalg.matrixRank', [a.detach()], [[]], ([given], index) => {
    const { s } = decomposed('linalg.matrixRank', a, isSymmetric ? symmetric(given!) : given!, index);
    const tolerance = toleranceOf(a, s, options);
    const rank = s.filter((value) => value > tolerance).length;
    return { outs: [new Matrix(1, 1, Float64Array.of(rank))], backward: () => [given!] };
  })[0]!.to('int64');
}

/** Options of lstsq(). */
export interface LstsqOptions {
  /** Singular values up to this share of the largest one count as 0. Default as for pinv(). */
  readonly rcond?: number;
  /**
   * LAPACK's driver, which determines the results: residuals and singularValues are empty for 'gelsy'. All are computed
   * alike, from singular values. Default 'gelsy'.
   */
  readonly driver?: 'gelsy' | 'gelsd' | 'gelss';
}
const lstsqOptions = optionChecks<LstsqOptions>({
  rcond: nonNegative,
  driver: oneOf('gelsy', 'gelsd', 'gelss'),
});

/** The least-squares solution. */
export interface LeastSquares {
  /** The x for which a x is nearest to b, and the shortest of these: [..., n, k]. */
  readonly solution: Tensor;
  /**
   * The sum of squares of each column of a x − b, [..., k]; [0] for the driver 'gelsy', and unless m > n and all ranks
   * are n.
   */
  readonly residuals: Tensor;
  /** The rank of each matrix: int64. */
  readonly rank: Tensor;
  /** [..., min(m, n)], falling; [0] for the driver 'gelsy'. */
  readonly singularValues: Tensor;
}

/** Returns the least-squares solutions of a x = b for matrices a [..., m, n], and b [..., m, k] or [..., m]. */
export function lstsq(a: Tensor, b: Tensor, options: LstsqOptions = {}): LeastSquares {
  requireMatrices('linalg.lstsq', a);
  requireOperand('linalg.lstsq', 'b', b);
  checkOptions('linalg.lstsq', options, lstsqOptions);
  const isVector = b.rank === a.rank - 1 && sameShape(b.shape, a.shape.slice(0, -1));
  const right = isVector ? unsqueeze(b, -1) : b;
  requireMatrices('linalg.lstsq', right);
  requireSameDtype('linalg.lstsq', a, b);
  const [m, n] = a.shape.slice(-2) as [number, number];
  if (right.shape.at(-2) !== m) throw shapesDoNotFit('linalg.lstsq', a.shape, b.shape);
  const width = right.shape.at(-1)!;
  const own: RankOptions = options.rcond === undefined ? {} : { rtol: options.rcond };
  const ranks: number[] = [];
  const [solution] = batched('linalg.lstsq', [a, right], [[n, width]], ([x, y], index) => {
    const parts = decomposed('linalg.lstsq', a, x!, index);
    const tolerance = toleranceOf(a, parts.s, own);
    ranks.push(parts.s.filter((value) => value > tolerance).length);
    const inverse = pseudoInverse(parts, tolerance);
    return {
      outs: [inverse.times(y!)],
      backward: ([grad]) => [pinvGradient(x!, inverse, grad!.times(y!.t)), inverse.t.times(grad!)],
    };
  });
  const rank = matrixRank(a, own);
  const isShort = (options.driver ?? 'gelsy') === 'gelsy';
  const hasResiduals = !isShort && m > n && ranks.every((value) => value === n);
  const none = (): Tensor => zeros([0], { dtype: a.dtype as 'float32' });
  const residuals = hasResiduals ? sum(square(sub(matmul(a, solution!), right)), -2) : none();
  const singularValues = isShort ? none() : svdvals(a.detach());
  return { solution: isVector ? squeeze(solution!, -1) : solution!, residuals, rank, singularValues };
}
