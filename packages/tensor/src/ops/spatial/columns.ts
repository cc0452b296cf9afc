// Windows of planes as columns, and planes as sums of such columns.

import { graphOf } from '../../autograd/graph.ts';
import { isRecording, record } from '../../autograd/node.ts';
import { kernels } from '../../backends/index.ts';
import { checkOptions, optionChecks } from '../../checks/options.ts';
import { anything } from '../../checks/value-checks.ts';
import { scope } from '../../core/context.ts';
import { denseLayout, narrowed } from '../../core/layout.ts';
import { countOf } from '../../core/shape.ts';
import { empty, type Tensor } from '../../core/tensor.ts';
import { badPlanes, windowTooLarge } from '../../errors.ts';
import { clone, contiguous, requireFloat, requireTensor } from '../elementwise/convert.ts';
import { type Pair, pairOf } from '../layers/window.ts';
import { stack } from '../shape/join.ts';
import { narrow, part, reshape, squeeze, unsqueeze } from '../shape/views.ts';
import { badColumns } from './errors.ts';
import { pad } from './pad.ts';

/** Options of im2col() and col2im(). */
export interface ColumnOptions {
  /** Distance between the elements of the window. Default 1. */
  readonly dilation?: Pair;
  /** Zeros on each side. Default 0. */
  readonly padding?: Pair;
  /** Default 1. */
  readonly stride?: Pair;
}

export const columnOptions = optionChecks<ColumnOptions>({
  dilation: anything,
  padding: anything,
  stride: anything,
});

/** Checked sizes of windows. */
export interface ColumnWindow {
  readonly kernel: readonly [number, number];
  readonly dilation: readonly [number, number];
  readonly padding: readonly [number, number];
  readonly stride: readonly [number, number];
}

/** Returns the sizes, checked. */
export function columnWindow(op: string, kernelSize: Pair, options: ColumnOptions): ColumnWindow {
  checkOptions(op, options, columnOptions);
  return {
    kernel: pairOf(`${op}: kernelSize`, kernelSize, 1),
    dilation: pairOf(`${op}: dilation`, options.dilation ?? 1, 1),
    padding: pairOf(`${op}: padding`, options.padding ?? 0, 0),
    stride: pairOf(`${op}: stride`, options.stride ?? 1, 1),
  };
}

/** Returns how many windows fit in each direction. Throws if none does. */
function windowsIn(op: string, plane: readonly number[], window: ColumnWindow): readonly [number, number] {
  const { kernel, dilation, padding, stride } = window;
  const counts = plane.map((size, d) => {
    const free = size + 2 * padding[d]! - dilation[d]! * (kernel[d]! - 1) - 1;
    if (free < 0 || size === 0) throw windowTooLarge(op, kernel, dilation, plane);
    return Math.floor(free / stride[d]!) + 1;
  });
  return counts as [number, number];
}

/** Returns the offset of each element of the window from its first one, row by row. */
const offsetsOf = ({ kernel, dilation }: ColumnWindow): (readonly [y: number, x: number])[] =>
  Array.from({ length: kernel[0] * kernel[1] }, (_, i) => [
    Math.floor(i / kernel[1]) * dilation[0],
    (i % kernel[1]) * dilation[1],
  ]);

/**
 * Returns the windows of x [batch, channels, height, width] as columns: [batch, channels · kernel height · kernel
 * width, windows]. x, and the result, may lack the batch. Is F.unfold of PyTorch, and takes every dtype.
 */
export function im2col(x: Tensor, kernelSize: Pair, options: ColumnOptions = {}): Tensor {
  requireTensor('im2col', x);
  const window = columnWindow('im2col', kernelSize, options);
  if ((x.rank !== 3 && x.rank !== 4) || x.shape.slice(-3).includes(0)) throw badPlanes('im2col', x.shape);
  const [high, wide] = windowsIn('im2col', x.shape.slice(-2), window);
  const { padding, stride } = window;
  return scope(() => {
    const batched = x.rank === 4 ? x : unsqueeze(x, 0);
    const [top, left] = padding;
    const padded = top + left === 0 ? batched : pad(batched, [left, left, top, top]);
    const [batch, channels] = padded.shape as [number, number, number, number];
    const offsets = offsetsOf(window);
    const views = offsets.map(([y, x0]) =>
      part('im2col', padded, (layout) =>
        narrowed(narrowed(layout, 2, y, high, stride[0]), 3, x0, wide, stride[1]),
      ),
    );
    const columns = reshape(stack(views, 2), [batch, channels * offsets.length, high * wide]);
    return x.rank === 4 ? columns : squeeze(columns, 0);
  });
}

/**
 * Adds up columns as im2col() makes them of planes of `outputSize`: x [batch, channels · kernel height · kernel width,
 * windows] becomes [batch, channels, height, width]. x, and the result, may lack the batch. Is F.fold of PyTorch.
 */
export function col2im(x: Tensor, outputSize: Pair, kernelSize: Pair, options: ColumnOptions = {}): Tensor {
  requireFloat('col2im', x);
  const window = columnWindow('col2im', kernelSize, options);
  const [height, width] = pairOf('col2im: outputSize', outputSize, 1);
  const [high, wide] = windowsIn('col2im', [height, width], window);
  const offsets = offsetsOf(window);
  const [rows = 0, count] = x.shape.slice(-2);
  const fits =
    (x.rank === 2 || x.rank === 3) && rows > 0 && rows % offsets.length === 0 && count === high * wide;
  if (!fits) throw badColumns(x.shape, offsets.length, high * wide);
  const { padding, stride } = window;
  return scope(() => {
    const batch = x.rank === 3 ? x.shape[0]! : 1;
    const channels = rows / offsets.length;
    const apart = contiguous(reshape(x, [batch, channels, offsets.length, high, wide]));
    const shape = [batch, channels, height + 2 * padding[0], width + 2 * padding[1]];
    const sum = summed(apart, shape, offsets, stride);
    const inner = narrow(narrow(sum, 2, padding[0], height), 3, padding[1], width);
    const out = inner.isContiguous ? inner : clone(inner);
    return x.rank === 3 ? out : squeeze(out, 0);
  });
}

/** Adds up [batch, channels, offsets, …], where the window offsets say, in planes of `shape`. */
function summed(
  x: Tensor,
  shape: readonly number[],
  offsets: readonly (readonly [number, number])[],
  stride: readonly [number, number],
): Tensor {
  const { dtype } = x;
  const [batch, channels, , high, wide] = x.shape as [number, number, number, number, number];
  const each = [batch, channels, high, wide];
  const out = empty(dtype, shape, x.device);
  kernels().copy(shape, out.strided, 0);
  const parts = offsets.map(([y, left], i) => {
    const { offset, strides } = narrowed(
      narrowed(denseLayout(shape), 2, y, high, stride[0]),
      3,
      left,
      wide,
      stride[1],
    );
    return { view: { offset, strides }, column: i * high * wide };
  });
  const strides = [channels * offsets.length * high * wide, offsets.length * high * wide, wide, 1];
  if (countOf(each) > 0)
    for (const { view, column } of parts) {
      const { memory, offset } = x.strided;
      const into = { memory: out.storage.memory, ...view };
      kernels().map('add', dtype, each, into, into, { memory, offset: offset + column, strides });
    }
  if (!isRecording(x)) return out;
  const target = x.target!;
  return record('col2im', out, [target], [], (grad, graph) => {
    if (graph) {
      const own = graphOf(graph);
      const views = offsets.map(([y, left]) =>
        part('col2im', own.grad, (layout) =>
          narrowed(narrowed(layout, 2, y, high, stride[0]), 3, left, wide, stride[1]),
        ),
      );
      own.send(target, stack(views, 2));
      return;
    }
    const into = target.begin();
    const { memory } = into.dense;
    if (target.count > 0)
      for (const { view, column } of parts)
        kernels().copy(each, { memory, offset: column, strides }, { memory: grad.memory, ...view });
    target.end(into);
  });
}
