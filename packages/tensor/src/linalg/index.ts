// The exports of the namespace linalg.
export {
  type Eigen,
  type EighOptions,
  eigh,
  eigvalsh,
  type QAndR,
  type QrOptions,
  qr,
  type SingularValues,
  type SvdOptions,
  svd,
  svdvals,
} from './decompositions.ts';
export {
  type AnyNormOptions,
  cond,
  type MatrixNormOptions,
  type MatrixOrd,
  matrixNorm,
  norm,
  type VectorNormOptions,
  vectorNorm,
} from './norms.ts';
export { matrixExp, matrixPower } from './powers.ts';
export {
  type LeastSquares,
  type LstsqOptions,
  lstsq,
  matrixRank,
  pinv,
  type RankOptions,
} from './pseudo-inverse.ts';
export {
  type CholeskyOptions,
  cholesky,
  det,
  inv,
  type SignAndLog,
  type SolveOptions,
  type SolveTriangularOptions,
  slogdet,
  solve,
  solveTriangular,
} from './systems.ts';
