// PowerSGD (Vogels, Karimireddy, Jaggi, 2019): a gradient that is a matrix M is sent as two thin matrices,
//
//   M += error;  P = mean(M·Q);  P orthonormal;  Q = mean(Mᵀ·P);  M̂ = P·Qᵀ;  error = M − M̂
//
// This is one step of a power iteration, which the next step's gradient continues (Q is kept). Vectors, and
// matrices that this would hardly shrink, are averaged uncompressed.
import { checkInteger, checkOptions, checkPositive, fromPyTorch, type OptionNames, shown } from '../check.ts';
import { invalidArgument } from '../errors.ts';
import { type CommHook, type GradBucket, plainHook, type SharedHookState } from '../reducer/hook.ts';
import { multiply, multiplyTransposed, orthonormalize, outer } from './low-rank.ts';

/** Options of powerSGDHook(). */
export interface PowerSGDOptions {
  /** Number of columns of the thin matrices. Default 1. */
  readonly rank?: number;
  /**
   * Number of backwards at the start without compression; at least 2, because buckets may be rebuilt. Default
   * 1000.
   */
  readonly startStep?: number;
  /** A matrix is compressed if that shrinks it by more than this factor. Default 2. */
  readonly minCompression?: number;
  /** Seed of the first Q; must be the same on all ranks. Default 0. */
  readonly seed?: number;
}

const names: OptionNames = {
  known: ['rank', 'startStep', 'minCompression', 'seed'],
  renamed: fromPyTorch({
    matrix_approximation_rank: 'rank',
    start_powerSGD_iter: 'startStep',
    min_compression_rate: 'minCompression',
    random_seed: 'seed',
  }),
};

interface Matrix {
  readonly gradient: Float32Array;
  readonly rows: number;
  readonly cols: number;
  readonly error: Float32Array;
  readonly p: Float32Array;
  readonly q: Float32Array;
}

/**
 * A bucket, split into matrices and other gradients. The P of all matrices are adjacent in memory (`allP`),
 * and so are their Q (`allQ`), so that each operation sends one buffer of them.
 */
interface Parts {
  readonly matrices: readonly Matrix[];
  readonly plain: readonly Float32Array[];
  readonly allP: Float32Array;
  readonly allQ: Float32Array;
}

/** State that is equal on all ranks: the number of backwards, and the Q of each bucket by the bucket's index. */
interface SharedState {
  readonly step: number;
  readonly q: Readonly<Record<string, Float32Array>>;
}

/**
 * Returns the hook. It compresses float32 matrices and averages other gradients uncompressed. Use it for one model
 * only, because it keeps the errors of the model's buckets. After DistributedDataParallel.rebind() it continues with
 * the present Q, and resets the errors to zero.
 */
export function powerSGDHook(options: PowerSGDOptions = {}): CommHook {
  checkOptions('powerSGDHook', options, names);
  const { startStep = 1000, rank = 1, minCompression = 2, seed = 0 } = options;
  const isStart = typeof startStep === 'number' && startStep >= 2;
  if (!isStart) throw invalidArgument('powerSGDHook: startStep', 'at least 2', shown(startStep));
  checkInteger('powerSGDHook: rank', rank, 1);
  checkInteger('powerSGDHook: seed', seed, 0);
  // The value 0 compresses every matrix.
  if (minCompression !== 0) checkPositive('powerSGDHook: minCompression', minCompression);
  const settings = { rank, minCompression, seed };
  const partsOf = new WeakMap<GradBucket, Parts>();
  /** The Q of each bucket by its index, for the new buckets after a rebuild or rebind(). */
  const latest = new Map<string, Float32Array>();
  let step = 0;
  const shared: SharedHookState = {
    save: (): SharedState => ({ step, q: Object.fromEntries(latest) }),
    load: (state: SharedState) => {
      step = state.step;
      latest.clear(); // of backwards after that state
      for (const [index, q] of Object.entries(state.q)) latest.set(index, q.slice());
    },
  };
  const powerSGD: CommHook = function* powerSGD(bucket, group) {
    const isPlain = step < startStep || bucket.dtype !== 'float32';
    if (bucket.isLast) step++;
    if (isPlain) return yield* plainHook(bucket, group);
    const parts = partsOf.get(bucket) ?? split(bucket, settings, latest.get(String(bucket.index)));
    partsOf.set(bucket, parts);
    latest.set(String(bucket.index), parts.allQ);
    const { label } = bucket;
    const { matrices, plain, allP, allQ } = parts;
    for (const { gradient, error, p, q, rows, cols } of matrices) {
      for (let i = 0; i < error.length; i++) gradient[i]! += error[i]!;
      multiply(gradient, q, p, rows, cols);
    }
    const first = matrices.length > 0 ? [allP, ...plain] : plain;
    if (first.length > 0) yield group.allReduce(first, { op: 'avg', label });
    if (matrices.length === 0) return;
    for (const { gradient, p, q, rows, cols } of matrices) {
      orthonormalize(p, rows);
      multiplyTransposed(gradient, p, q, rows, cols);
    }
    yield group.allReduce(allQ, { op: 'avg', label });
    for (const { gradient, error, p, q, rows, cols } of matrices) {
      error.set(gradient);
      outer(p, q, gradient, rows, cols);
      for (let i = 0; i < error.length; i++) error[i]! -= gradient[i]!;
      // After an overflow the error would stay NaN, and with it the gradients of all later steps.
      if (!error.every(Number.isFinite)) error.fill(0);
    }
  };
  return Object.assign(powerSGD, { shared });
}

/** `known` is the Q of an earlier bucket with this index. */
function split(
  bucket: GradBucket,
  { rank, minCompression, seed }: Required<Omit<PowerSGDOptions, 'startStep'>>,
  known: Float32Array | undefined,
): Parts {
  const sizes = bucket.gradients.map(({ shape, data }) => {
    const rows = shape.length < 2 ? 1 : shape[0]!;
    const cols = data.length / rows;
    const width = Math.min(rank, rows, cols);
    return { data: data as Float32Array, rows, cols, width };
  });
  const isThin = ({ rows, cols, width }: (typeof sizes)[0]) =>
    rows > 1 && (rows + cols) * width * minCompression < rows * cols;
  const thin = sizes.filter(isThin);
  const total = (side: 'rows' | 'cols') => thin.reduce((sum, size) => sum + size[side] * size.width, 0);
  const allP = new Float32Array(total('rows'));
  const allQ = new Float32Array(total('cols'));
  if (known?.length === allQ.length) allQ.set(known);
  else fillNormal(allQ, seed + bucket.index);
  let [atP, atQ] = [0, 0];
  const matrices = thin.map(({ data, rows, cols, width }) => {
    const p = allP.subarray(atP, atP + rows * width);
    const q = allQ.subarray(atQ, atQ + cols * width);
    atP += p.length;
    atQ += q.length;
    return { gradient: data, rows, cols, error: new Float32Array(data.length), p, q };
  });
  return { matrices, plain: sizes.filter((size) => !isThin(size)).map(({ data }) => data), allP, allQ };
}

/**
 * Fills `out` with normally distributed numbers: Box–Muller on a linear congruential generator (constants of
 * Numerical Recipes).
 */
function fillNormal(out: Float32Array, seed: number): void {
  let state = seed >>> 0;
  const uniform = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return (state + 1) / 2 ** 32;
  };
  uniform();
  for (let i = 0; i < out.length; i++) {
    out[i] = Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
  }
}
