// Cases of the namespace linalg. Matrices are random, so that eigenvalues and singular values are distinct: vectors are
// then unique up to their sign, which oracle_linalg.py sets as the package does.
import type { Arg, Ref } from '../../case.ts';
import { type Draft, nothing, whole } from '../../draft.ts';
import type { Makers } from '../index.ts';

/** Records a call of a function of the namespace. */
function call(d: Draft, op: string, ...args: readonly Arg[]): void {
  const last = args.findLastIndex((arg) => arg !== nothing);
  d.steps.push({ op: `linalg.${op}`, via: 'function', args: args.slice(0, last + 1) });
}

/** Draws a dtype that the functions take, or rarely integers, which they refuse. */
const dtypeOf = (d: Draft) => d.beside(d.draws.pick(['float32', 'float64'] as const), whole);

/** Matrices that show an element twice may be singular, or have equal singular values, within rounding. */
const random = { domain: 'real', repeats: false } as const;

const batchOf = (d: Draft): number[] => (d.draws.chance(0.5) ? [] : d.shape(1, 2));

/** Draws square matrices, and with the probability `wrong` others. */
function squares(d: Draft, wrong = 0.04): Ref {
  const dtype = dtypeOf(d);
  const batch = batchOf(d);
  const size = d.size();
  const cols = d.draws.chance(wrong) ? size + 1 : size;
  return d.tensor([...batch, size, cols], { dtype, ...random });
}

const rectangles = (d: Draft): Ref => {
  const dtype = dtypeOf(d);
  return d.tensor([...batchOf(d), d.size(), d.size()], { dtype, ...random });
};

const drawSquare =
  (op: string) =>
  (d: Draft): void =>
    call(d, op, squares(d));

function cholesky(d: Draft): void {
  const dtype = dtypeOf(d);
  const size = d.size();
  const x = d.tensor([...batchOf(d), size, size + 3], { dtype, ...random });
  d.steps.push({ op: 'transpose', via: 'method', args: [x, -1, -2] });
  d.steps.push({ op: 'matmul', via: 'function', args: [x, { $: 1 }] });
  call(d, 'cholesky', { $: 2 }, d.draws.chance(0.4) ? { upper: d.draws.chance(0.7) } : nothing);
}

function solve(d: Draft): void {
  const { draws } = d;
  const dtype = dtypeOf(d);
  const batch = batchOf(d);
  const size = d.size();
  const a = d.tensor([...d.narrower(batch), size, size], { dtype, ...random });
  if (draws.chance(0.2)) {
    call(d, 'solve', a, d.tensor([size], { dtype, ...random }));
    return;
  }
  const left = draws.chance(0.7);
  const wrong = draws.chance(0.04) ? 1 : 0;
  const sides = left ? [size + wrong, d.size()] : [d.size(), size + wrong];
  const b = d.tensor([...d.narrower(batch), ...sides], { dtype, ...random });
  call(d, 'solve', a, b, left && draws.chance(0.7) ? nothing : { left });
}

function solveTriangular(d: Draft): void {
  const { draws } = d;
  const dtype = dtypeOf(d);
  const batch = batchOf(d);
  const size = d.size();
  const left = draws.chance(0.6);
  const a = d.tensor([...d.narrower(batch), size, size], { dtype, ...random });
  const sides = left ? [size, d.size()] : [d.size(), size];
  const b = d.tensor([...d.narrower(batch), ...sides], { dtype, ...random });
  const own: Record<string, Arg> = { upper: draws.chance(0.5) };
  if (!left || draws.chance(0.2)) own.left = left;
  if (draws.chance(0.3)) own.unitriangular = draws.chance(0.8);
  call(d, 'solveTriangular', a, b, own);
}

function qr(d: Draft): void {
  const a = rectangles(d);
  // PyTorch refuses the gradient of these modes also if there are no elements, where it is not computed here.
  const isEmpty = d.inputs[0]!.shape.includes(0);
  const withoutGradient: Arg[] = isEmpty ? [] : [{ mode: 'complete' }, { mode: 'r' }];
  call(d, 'qr', a, d.draws.pick<Arg>([nothing, nothing, { mode: 'reduced' }, ...withoutGradient]));
}

const eigen =
  (op: string) =>
  (d: Draft): void =>
    call(d, op, squares(d), d.draws.pick<Arg>([nothing, { uplo: 'L' }, { uplo: 'U' }]));

/** Draws a decomposition. The vectors that make U and Vh square are not unique, so they are not compared. */
function svd(d: Draft): void {
  const isSquare = d.draws.chance(0.4);
  const a = isSquare ? squares(d, 0) : rectangles(d);
  call(d, 'svd', a, isSquare && d.draws.chance(0.5) ? nothing : { fullMatrices: false });
}

function rankOptions(d: Draft): Arg {
  return d.draws.pick<Arg>([nothing, nothing, { rtol: 1e-3 }, { atol: 0.05 }, { atol: 0.02, rtol: 0.1 }]);
}

function pinv(d: Draft): void {
  if (d.draws.chance(0.25)) call(d, 'pinv', squares(d), { hermitian: true });
  else call(d, 'pinv', rectangles(d), rankOptions(d));
}

function matrixRank(d: Draft): void {
  if (d.draws.chance(0.25)) call(d, 'matrixRank', squares(d), { hermitian: true });
  else call(d, 'matrixRank', rectangles(d), rankOptions(d));
}

function lstsq(d: Draft): void {
  const dtype = dtypeOf(d);
  const batch = batchOf(d);
  const rows = d.size();
  const a = d.tensor([...batch, rows, d.size()], { dtype, ...random });
  const isVector = d.draws.chance(0.2);
  const b = d.tensor([...batch, rows, ...(isVector ? [] : [Math.max(1, d.size())])], {
    dtype,
    domain: 'real',
  });
  call(
    d,
    'lstsq',
    a,
    b,
    d.draws.pick<Arg>([nothing, { rcond: 1e-4 }, { driver: 'gelsd' }, { driver: 'gelss' }]),
  );
}

const matrixPower = (d: Draft): void => call(d, 'matrixPower', squares(d), d.draws.int(-3, 5));

const orders: readonly Arg[] = ['fro', 'nuc', 1, -1, 2, -2, { $: 'inf' }, { $: '-inf' }];

function vectorNorm(d: Draft): void {
  const a = d.tensor(d.shape(1, 3), { dtype: d.floatType(), ...random });
  const own: Record<string, Arg> = {};
  if (d.draws.chance(0.7)) own.ord = d.draws.pick<Arg>([0, 1, 2, 3, 0.5, -1, { $: 'inf' }, { $: '-inf' }]);
  if (d.draws.chance(0.3)) own.keepDim = true;
  call(d, 'vectorNorm', a, d.draws.pick<Arg>([nothing, -1, 0]), Object.keys(own).length > 0 ? own : nothing);
}

function matrixNorm(d: Draft): void {
  const a = d.tensor(d.shape(1, 4), { dtype: d.floatType(), ...random });
  const own: Record<string, Arg> = {};
  if (d.draws.chance(0.8)) own.ord = d.draws.pick(orders);
  if (d.draws.chance(0.3)) own.keepDim = true;
  const dims = d.draws.pick<Arg>([nothing, nothing, [0, 1], [-1, -2], [0, -1]]);
  call(d, 'matrixNorm', a, dims, Object.keys(own).length > 0 ? own : nothing);
}

function norm(d: Draft): void {
  const a = d.tensor(d.shape(1, 3), { dtype: d.floatType(), ...random });
  const own: Record<string, Arg> = {};
  if (d.draws.chance(0.6)) own.ord = d.draws.pick([...orders, 3, 0.5]);
  if (d.draws.chance(0.3)) own.keepDim = true;
  const dims = d.draws.pick<Arg>([nothing, nothing, 0, -1, [0, 1], [-1, -2]]);
  call(d, 'norm', a, dims, Object.keys(own).length > 0 ? own : nothing);
}

const cond = (d: Draft): void => call(d, 'cond', squares(d), d.draws.pick<Arg>([nothing, null, ...orders]));

const unsteady = (draw: (d: Draft) => void, count = 20) => ({ draw, count, isUnsteady: true });

export const linalg: Makers = {
  'linalg.cholesky': unsteady(cholesky),
  'linalg.solve': unsteady(solve, 30),
  'linalg.solveTriangular': unsteady(solveTriangular, 24),
  'linalg.inv': unsteady(drawSquare('inv')),
  'linalg.det': unsteady(drawSquare('det')),
  'linalg.slogdet': unsteady(drawSquare('slogdet')),
  'linalg.qr': unsteady(qr, 24),
  'linalg.eigh': unsteady(eigen('eigh')),
  'linalg.eigvalsh': unsteady(eigen('eigvalsh')),
  'linalg.svd': unsteady(svd, 24),
  'linalg.svdvals': unsteady((d) => call(d, 'svdvals', rectangles(d))),
  'linalg.pinv': unsteady(pinv, 24),
  'linalg.lstsq': unsteady(lstsq, 24),
  'linalg.matrixRank': unsteady(matrixRank),
  'linalg.matrixPower': unsteady(matrixPower),
  'linalg.matrixExp': unsteady(drawSquare('matrixExp')),
  'linalg.vectorNorm': unsteady(vectorNorm),
  'linalg.matrixNorm': unsteady(matrixNorm, 30),
  'linalg.norm': unsteady(norm, 30),
  'linalg.cond': unsteady(cond, 24),
};
