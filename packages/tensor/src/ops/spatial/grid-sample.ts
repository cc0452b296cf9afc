// Reads of planes at positions that a tensor names, by interpolation between the elements around them.

import { checkFlag } from '../../checks/arguments.ts';
import { checkOptions, optionChecks } from '../../checks/options.ts';
import { flag, oneOf } from '../../checks/value-checks.ts';
import { noGrad, scope } from '../../core/context.ts';
import { linspace, ones, zeros } from '../../core/creation.ts';
import { checkedShape, type Shape } from '../../core/shape.ts';
import type { Tensor } from '../../core/tensor.ts';
import { mixedDtypes } from '../../errors.ts';
import { add, div, eq, ge, gt, le, logicalAnd, lt, mul, sub } from '../elementwise/binary.ts';
import { clamp } from '../elementwise/clamp.ts';
import { needsFloat32, requireFloat, requireOperand, to } from '../elementwise/convert.ts';
import { abs, floor, round } from '../elementwise/unary.ts';
import { gather } from '../indexing/lookup.ts';
import { where } from '../indexing/where.ts';
import { jointDevice } from '../joint-device.ts';
import { matmul } from '../matrix/matmul.ts';
import { stack } from '../shape/join.ts';
import { expand, reshape, select, transpose, unsqueeze } from '../shape/views.ts';
import { badGrid, badTheta } from './errors.ts';

/** Options of gridSample(). */
export interface GridSampleOptions {
  /** Default 'bilinear'. */
  readonly mode?: 'bilinear' | 'nearest';
  /** What lies outside of the plane: zeros, its outermost elements, or its mirror image. Default 'zeros'. */
  readonly paddingMode?: 'zeros' | 'border' | 'reflection';
  /** Whether −1 and 1 are the centres of the outermost elements, or (false, the default) their outer edges. */
  readonly alignCorners?: boolean;
}

const gridSampleOptions = optionChecks<GridSampleOptions>({
  mode: oneOf('bilinear', 'nearest'),
  paddingMode: oneOf('zeros', 'border', 'reflection'),
  alignCorners: flag,
});

/**
 * Reads x [batch, channels, height, width] at the positions of `grid` [batch, rows, columns, 2], whose last dimension
 * has column and row from −1 to 1. Returns [batch, channels, rows, columns]. float16 and bfloat16 are computed in
 * float32.
 */
export function gridSample(x: Tensor, grid: Tensor, options: GridSampleOptions = {}): Tensor {
  requireFloat('gridSample', x);
  requireOperand('gridSample', 'grid', grid);
  checkOptions('gridSample', options, gridSampleOptions);
  if (grid.dtype !== x.dtype) throw mixedDtypes('gridSample', x.dtype, grid.dtype);
  const fits =
    x.rank === 4 &&
    grid.rank === 4 &&
    grid.shape[3] === 2 &&
    grid.shape[0] === x.shape[0] &&
    !x.shape.slice(1).includes(0);
  if (!fits) throw badGrid(x.shape, grid.shape);
  jointDevice('gridSample', x, grid);
  const { mode = 'bilinear', paddingMode = 'zeros', alignCorners = false } = options;
  return scope(() => {
    const isHalf = needsFloat32(x);
    const [wide, places] = isHalf ? [to(x, 'float32'), to(grid, 'float32')] : [x, grid];
    const [batch, channels, height, width] = wide.shape as [number, number, number, number];
    const [, rows, columns] = grid.shape as [number, number, number, number];
    const line = [batch, 1, rows * columns];
    const at = ([width, height] as const).map((size, i) => {
      const position = positionIn(reshape(select(places, 3, i), line), size, alignCorners);
      return paddingMode === 'zeros' ? position : inside(position, size, paddingMode, alignCorners);
    });
    const plane: Plane = { flat: reshape(wide, [batch, channels, height * width]), height, width };
    const out = mode === 'nearest' ? nearest(plane, at[0]!, at[1]!) : bilinear(plane, at[0]!, at[1]!);
    return to(reshape(out, [batch, channels, rows, columns]), x.dtype);
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

/** Planes as [batch, channels, height · width]. */
interface Plane {
  readonly flat: Tensor;
  readonly height: number;
  readonly width: number;
}

/** Returns the elements at whole indices [batch, 1, count], 0 outside of the plane: [batch, channels, count]. */
function elementsAt({ flat, height, width }: Plane, column: Tensor, row: Tensor): Tensor {
  const [batch, channels] = flat.shape as [number, number, number];
  const [isThere, index] = noGrad(() => {
    const isIn = (at: Tensor, size: number): Tensor => logicalAnd(ge(at, 0), le(at, size - 1));
    const both = logicalAnd(isIn(column, width), isIn(row, height));
    const whole = (at: Tensor): Tensor => to(where(both, at, 0), 'int64');
    return [both, add(mul(whole(row), width), whole(column))] as const;
  });
  const all = [batch, channels, index.shape[2]!];
  return where(expand(isThere, all), gather(flat, 2, expand(index, all)), 0);
}

function nearest(plane: Plane, column: Tensor, row: Tensor): Tensor {
  const [wholeColumn, wholeRow] = noGrad(() => [round(column), round(row)] as const);
  const out = elementsAt(plane, wholeColumn, wholeRow);
  if (!column.requiresGrad) return out;
  // The grid gets a gradient of zeros, as in PyTorch.
  return add(out, where(zeros([1], { dtype: 'bool', device: column.device }), add(column, row), 0));
}

function bilinear(plane: Plane, column: Tensor, row: Tensor): Tensor {
  const [left, top] = noGrad(() => [floor(column), floor(row)] as const);
  const [right, bottom] = noGrad(() => [add(left, 1), add(top, 1)] as const);
  const [toRight, toBottom] = [sub(column, left), sub(row, top)];
  const [toLeft, toTop] = [sub(right, column), sub(bottom, row)];
  const corner = (x: Tensor, y: Tensor, weight: Tensor): Tensor => mul(elementsAt(plane, x, y), weight);
  return [
    corner(left, top, mul(toLeft, toTop)),
    corner(right, top, mul(toRight, toTop)),
    corner(left, bottom, mul(toLeft, toBottom)),
    corner(right, bottom, mul(toRight, toBottom)),
  ].reduce((a, b) => add(a, b));
}

/**
 * Returns the grid [batch, height, width, 2] for gridSample() that the matrices `theta` [batch, 2, 3] describe: they
 * map [column, row, 1] of the result, from −1 to 1, to positions in the input. `size` is [batch, channels, height,
 * width].
 */
export function affineGrid(theta: Tensor, size: Shape, alignCorners = false): Tensor {
  requireFloat('affineGrid', theta);
  checkFlag('affineGrid', 'alignCorners', alignCorners);
  const own = checkedShape('affineGrid', size);
  const [batch = 0, , height = 0, width = 0] = own;
  const fits =
    own.length === 4 &&
    theta.rank === 3 &&
    theta.shape[0] === batch &&
    theta.shape[1] === 2 &&
    theta.shape[2] === 3;
  if (!fits || own.includes(0)) throw badTheta(theta.shape, own);
  return scope(() => {
    const { dtype, device } = theta;
    const line = (count: number): Tensor => {
      const ends = alignCorners ? 1 : (count - 1) / count;
      return count === 1 ? zeros([1], { dtype, device }) : linspace(-ends, ends, count, { dtype, device });
    };
    const plane = [height, width];
    const column = expand(line(width), plane);
    const row = expand(unsqueeze(line(height), 1), plane);
    const base = reshape(stack([column, row, ones(plane, { dtype, device })], 2), [1, height * width, 3]);
    return reshape(matmul(base, transpose(theta, 1, 2)), [batch, height, width, 2]);
  });
}
