// Powers and exponentials of square matrices. Names and semantics are torch.linalg's.
import { checkValue, integer } from '../checks/value-checks.ts';
import { eye, zeros } from '../core/creation.ts';
import type { Tensor } from '../core/tensor.ts';
import { clone, matmul, where } from '../ops/index.ts';
import { batched } from './batch.ts';
import { requireMatrices, requireSquare } from './checks.ts';
import { luOf, luSolve } from './dense/factor.ts';
import { Matrix } from './dense/matrix.ts';
import { inv } from './systems.ts';

/**
 * Returns power n of square matrices [..., n, n]: the identity for 0, powers of the inverse for negative n, which
 * throws ERR_TENSOR_LINALG if a matrix is singular.
 */
export function matrixPower(a: Tensor, n: number): Tensor {
  requireSquare('linalg.matrixPower', a);
  checkValue('linalg.matrixPower: n', n, integer);
  if (n === 0) {
    const { dtype, device, shape } = a;
    const identity = eye(shape.at(-1)!, shape.at(-1)!, { dtype, device }).expand(shape);
    // The values of `a` are not used, but its gradient is zeros.
    return where(zeros(shape, { dtype: 'bool', device }), a, identity);
  }
  let base = n < 0 ? inv(a) : a;
  let out: Tensor | null = null;
  for (let rest = Math.abs(n); rest > 0; rest = Math.floor(rest / 2)) {
    if (rest % 2 === 1) out = out === null ? base : matmul(out, base);
    if (rest > 1) base = matmul(base, base);
  }
  return out === a ? clone(a) : out!;
}

/** The coefficients of the Padé approximant of degree 13. */
const pade = [
  ...[64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000],
  ...[10559470521600, 670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1],
];

/** Returns the exponential by scaling, a Padé approximant, and squaring (Higham, 2005). */
function exponential(a: Matrix): Matrix {
  const n = a.rows;
  let norm = 0;
  for (let j = 0; j < n; j++) {
    let sum = 0;
    for (let i = 0; i < n; i++) sum += Math.abs(a.at(i, j));
    norm = Math.max(norm, sum);
  }
  if (!Number.isFinite(norm) || !a.isFinite) return a.map(() => NaN);
  const halvings = Math.max(0, Math.ceil(Math.log2(norm / 5.37)));
  const x = a.map((value) => value / 2 ** halvings);
  const x2 = x.times(x);
  let even = Matrix.identity(n).map((value) => value * pade[12]!);
  let odd = Matrix.identity(n).map((value) => value * pade[13]!);
  for (let k = 10; k >= 0; k -= 2) {
    even = even.times(x2).plus(Matrix.identity(n), pade[k]!);
    odd = odd.times(x2).plus(Matrix.identity(n), pade[k + 1]!);
  }
  odd = x.times(odd);
  let out = luSolve(luOf(even.plus(odd, -1)), even.plus(odd));
  for (let i = 0; i < halvings; i++) out = out.times(out);
  return out;
}

/** Returns the exponentials of square matrices [..., n, n]. */
export function matrixExp(a: Tensor): Tensor {
  requireMatrices('linalg.matrixExp', a, true);
  const n = a.shape.at(-1)!;
  return batched('linalg.matrixExp', [a], [[n, n]], ([x]) => ({
    outs: [exponential(x!)],
    backward: ([grad]) => {
      // The upper right block of this exponential is the derivative at xᵀ along the gradient.
      const block = Matrix.from(2 * n, 2 * n, (i, j) => {
        if (i < n && j >= n) return grad!.at(i, j - n);
        return i < n === j < n ? x!.at(j % n, i % n) : 0;
      });
      const all = exponential(block);
      return [Matrix.from(n, n, (i, j) => all.at(i, n + j))];
    },
  }))[0]!;
}
