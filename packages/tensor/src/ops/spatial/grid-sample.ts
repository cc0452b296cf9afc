// Reads of planes and volumes at positions that a tensor names, by interpolation between the elements around them.

import { checkFlag } from '../../checks/arguments.ts';
import { checkOptions, optionChecks } from '../../checks/options.ts';
import { flag, oneOf } from '../../checks/value-checks.ts';
import { noGrad, scope } from '../../core/context.ts';
import { linspace, ones, zeros } from '../../core/creation.ts';
import { checkedShape, countOf, type Shape, sameShape } from '../../core/shape.ts';
import type { Tensor } from '../../core/tensor.ts';
import { badOption, mixedDtypes } from '../../errors.ts';
import { recast } from '../elementwise/autocast.ts';
import { add, div, eq, ge, gt, le, logicalAnd, lt, mul, sub } from '../elementwise/binary.ts';
import { clamp } from '../elementwise/clamp.ts';
import { needsFloat32, requireFloat, requireOperand, to } from '../elementwise/convert.ts';
import { abs, floor, round } from '../elementwise/unary.ts';
import { gather } from '../indexing/lookup.ts';
import { where } from '../indexing/where.ts';
import { jointDevice } from '../joint-device.ts';
import { matmul } from '../matrix/matmul.ts';
import { stack } from '../shape/join.ts';
import { expand, reshape, select, transpose } from '../shape/views.ts';
import { badGrid, badTheta } from './errors.ts';

/** Options of gridSample(). */
export interface GridSampleOptions {
  /** Default 'bilinear', which for a volume is trilinear. 'bicubic' is for planes. */
  readonly mode?: 'bilinear' | 'nearest' | 'bicubic';
  /** Values outside of the plane or volume: zeros, its outermost elements, or its mirror image. Default 'zeros'. */
  readonly paddingMode?: 'zeros' | 'border' | 'reflection';
  /** Whether −1 and 1 are the centres of the outermost elements, or (false, the default) their outer edges. */
  readonly alignCorners?: boolean;
}

const gridSampleOptions = optionChecks<GridSampleOptions>({
  mode: oneOf('bilinear', 'nearest', 'bicubic'),
  paddingMode: oneOf('zeros', 'border', 'reflection'),
  alignCorners: flag,
});

/**
 * Reads x [batch, channels, height, width] at the positions of `grid` [batch, rows, columns, 2], whose last dimension
 * has column and row from −1 to 1. Returns [batch, channels, rows, columns]. A volume [batch, channels, depth, height,
 * width] takes a grid [batch, …, 3], which has column, row and slice. float16 and bfloat16 are computed in float32.
 */
export function gridSample(x: Tensor, grid: Tensor, options: GridSampleOptions = {}): Tensor {
  const raised = recast('widest', [x, grid], (wide, at) => gridSample(wide!, at!, options));
  if (raised) return raised;
  requireFloat('gridSample', x);
  requireOperand('gridSample', 'grid', grid);
  checkOptions('gridSample', options, gridSampleOptions);
  if (grid.dtype !== x.dtype) throw mixedDtypes('gridSample', x.dtype, grid.dtype);
  const { mode = 'bilinear', paddingMode = 'zeros', alignCorners = false } = options;
  const axes = x.rank - 2;
  const fits =
    (axes === 2 || axes === 3) &&
    grid.rank === x.rank &&
    grid.shape.at(-1) === axes &&
    grid.shape[0] === x.shape[0] &&
    !x.shape.slice(1).includes(0);
  if (!fits) throw badGrid(x.shape, grid.shape);
  if (mode === 'bicubic' && axes === 3)
    throw badOption('gridSample: mode of volumes', "'bilinear' or 'nearest'", "'bicubic'");
  jointDevice('gridSample', x, grid);
  return scope(() => {
    const isHalf = needsFloat32(x);
    const [wide, positions] = isHalf ? [to(x, 'float32'), to(grid, 'float32')] : [x, grid];
    const [batch, channels, ...space] = wide.shape as [number, number, ...number[]];
    const result = grid.shape.slice(1, -1);
    const line = [batch, 1, countOf(result)];
    const sizes = space.toReversed();
    const bring = (at: Tensor, axis: number): Tensor =>
      paddingMode === 'zeros' ? at : inside(at, sizes[axis]!, paddingMode, alignCorners);
    const at = sizes.map((size, axis) =>
      positionIn(reshape(select(positions, grid.rank - 1, axis), line), size, alignCorners),
    );
    const area: Area = { flat: reshape(wide, [batch, channels, countOf(space)]), sizes };
    const out =
      mode === 'bicubic'
        ? bicubic(area, at, bring)
        : (mode === 'nearest' ? nearest : linear)(area, at.map(bring));
    return to(reshape(out, [batch, channels, ...result]), x.dtype);
  });
}

/** Returns the index that a position from −1 to 1 is, with a fraction. */
const positionIn = (at: Tensor, size: number, alignCorners: boolean): Tensor =>
  alignCorners ? mul(div(add(at, 1), 2), size - 1) : div(sub(mul(add(at, 1), size), 1), 2);

/** Brings indices outside of the plane inside. */
function inside(at: Tensor, size: number, mode: 'border' | 'reflection', alignCorners: boolean): Tensor {
  const mirrored = mode === 'reflection' ? reflected(at, size, alignCorners) : at;
  // Positions on or behind the outermost elements get no gradient.
  const moves = logicalAnd(gt(mirrored, 0), lt(mirrored, size - 1));
  const bound = noGrad(() => clamp(mirrored, 0, size - 1));
  return where(moves, mirrored, bound);
}

function reflected(at: Tensor, size: number, alignCorners: boolean): Tensor {
  const [low, span] = alignCorners ? [0, size - 1] : [-0.5, size];
  if (span === 0) return mul(at, 0);
  const away = abs(sub(at, low));
  const flips = noGrad(() => floor(div(away, span)));
  const extra = sub(away, mul(flips, span));
  const isEven = noGrad(() => eq(mul(floor(div(flips, 2)), 2), flips));
  return where(isEven, add(extra, low), add(mul(extra, -1), span + low));
}

/** Planes or volumes. */
interface Area {
  /** [batch, channels, elements]. */
  readonly flat: Tensor;
  /** Width, height and, of volumes, depth. */
  readonly sizes: readonly number[];
}

/** Returns the elements at whole indices [batch, 1, count], 0 outside of the area: [batch, channels, count]. */
function elementsAt({ flat, sizes }: Area, at: readonly Tensor[]): Tensor {
  const [batch, channels] = flat.shape as [number, number, number];
  const [isThere, index] = noGrad(() => {
    const isIn = at.map((each, axis) => logicalAnd(ge(each, 0), le(each, sizes[axis]! - 1)));
    const all = isIn.reduce((a, b) => logicalAnd(a, b));
    const parts = at.map((each, axis) =>
      mul(to(where(all, each, 0), 'int64'), countOf(sizes.slice(0, axis))),
    );
    return [all, parts.reduce((a, b) => add(a, b))] as const;
  });
  const all = [batch, channels, index.shape[2]!];
  return where(expand(isThere, all), gather(flat, 2, expand(index, all)), 0);
}

function nearest(area: Area, at: readonly Tensor[]): Tensor {
  const out = elementsAt(
    area,
    at.map((each) => noGrad(() => round(each))),
  );
  if (!at[0]!.requiresGrad) return out;
  // The grid gets a gradient of zeros, as in PyTorch.
  const sum = at.reduce((a, b) => add(a, b));
  return add(out, where(zeros([1], { dtype: 'bool', device: sum.device }), sum, 0));
}

/** Sums the corners around each position, weighted by how near they are. */
function linear(area: Area, at: readonly Tensor[]): Tensor {
  const ends = at.map((each) => {
    const low = noGrad(() => floor(each));
    const high = noGrad(() => add(low, 1));
    return [
      { position: low, weight: sub(high, each) },
      { position: high, weight: sub(each, low) },
    ] as const;
  });
  const corners = Array.from({ length: 2 ** at.length }, (_, corner) => {
    const chosen = ends.map((both, axis) => both[(corner >> axis) & 1]!);
    const weight = chosen.map((end) => end.weight).reduce((a, b) => mul(a, b));
    const positions = chosen.map((end) => end.position);
    return mul(elementsAt(area, positions), weight);
  });
  return corners.reduce((a, b) => add(a, b));
}

const sharpness = -0.75;
/** Weight of an element at a distance of at most 1, then of more than 1. */
const inner = (d: Tensor): Tensor => add(mul(sub(mul(d, sharpness + 2), sharpness + 3), mul(d, d)), 1);
const outer = (d: Tensor): Tensor =>
  sub(mul(add(mul(sub(mul(d, sharpness), 5 * sharpness), d), 8 * sharpness), d), 4 * sharpness);

/** Sums the 16 elements around each position of a plane. `bring` moves a whole index inside. */
function bicubic(area: Area, at: readonly Tensor[], bring: (at: Tensor, axis: number) => Tensor): Tensor {
  const [columns, rows] = at.map((each, axis) => {
    const first = noGrad(() => floor(each));
    const share = sub(each, first);
    const rest = sub(1, share);
    const weights = [outer(add(share, 1)), inner(share), inner(rest), outer(add(rest, 1))];
    return weights.map((weight, i) => ({ weight, position: noGrad(() => bring(add(first, i - 1), axis)) }));
  }) as [Tap[], Tap[]];
  const ofRow = (row: Tap): Tensor =>
    columns
      .map(({ weight, position }) => mul(elementsAt(area, [position, row.position]), weight))
      .reduce((a, b) => add(a, b));
  return rows.map((row) => mul(ofRow(row), row.weight)).reduce((a, b) => add(a, b));
}

interface Tap {
  readonly weight: Tensor;
  readonly position: Tensor;
}

/**
 * Returns the grid for gridSample() that the matrices `theta` describe: they map [column, row, 1] of the result, from
 * −1 to 1, to positions in the input. `theta` is [batch, 2, 3] and `size` [batch, channels, height, width], which gives
 * [batch, height, width, 2]; or [batch, 3, 4] and [batch, channels, depth, height, width] for volumes.
 */
export function affineGrid(theta: Tensor, size: Shape, alignCorners = false): Tensor {
  requireFloat('affineGrid', theta);
  checkFlag('affineGrid', 'alignCorners', alignCorners);
  const own = checkedShape('affineGrid', size);
  const [batch = 0, , ...space] = own;
  const axes = space.length;
  const fits = (axes === 2 || axes === 3) && sameShape(theta.shape, [batch, axes, axes + 1]);
  if (!fits || own.includes(0)) throw badTheta(theta.shape, own);
  return scope(() => {
    const { dtype, device } = theta;
    const line = (count: number): Tensor => {
      const ends = alignCorners ? 1 : (count - 1) / count;
      return count === 1 ? zeros([1], { dtype, device }) : linspace(-ends, ends, count, { dtype, device });
    };
    const lines = space.map((count, dim) =>
      expand(
        reshape(
          line(count),
          space.map((_, d) => (d === dim ? count : 1)),
        ),
        space,
      ),
    );
    const parts = [...lines.toReversed(), ones(space, { dtype, device })];
    const base = reshape(stack(parts, axes), [1, countOf(space), axes + 1]);
    return reshape(matmul(base, transpose(theta, 1, 2)), [batch, ...space, axes]);
  });
}
