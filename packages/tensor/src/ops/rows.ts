// How dataParallel() of @ringwise/ddp divides a batch among threads and joins the results, without importing this
// package.

import { customFunction } from '../autograd/custom.ts';
import { isRecording } from '../autograd/node.ts';
import { scope } from '../core/context.ts';
import { zeros } from '../core/creation.ts';
import type { BufferView } from '../core/protocol.ts';
import { bufferSymbol } from '../core/protocol.ts';
import type { Tensor } from '../core/tensor.ts';
import { contiguous } from './elementwise/convert.ts';
import { cat } from './shape/join.ts';
import { narrow } from './shape/views.ts';

/** The rows of a tensor: its parts along the first dimension. */
export interface Rows {
  readonly count: number;
  readonly needsGrad: boolean;
  readonly memory: () => BufferView;
  readonly take: (from: number, count: number) => Tensor;
  readonly within: (count: number, from: number, scale: number, fill: (all: BufferView) => void) => Tensor;
}

/** Returns the rows of a tensor. The memory is contiguous. */
export function rowsOf(tensor: Tensor): Rows {
  return {
    count: tensor.shape[0] ?? 0,
    needsGrad: isRecording(tensor),
    memory: () => contiguous(tensor.detach())[bufferSymbol](),
    take: (from, count) => contiguous(narrow(tensor, 0, from, count)),
    /** Returns `count` rows: `fill` writes their values, and gradients of rows `from` and on go to this tensor. */
    within(count, from, scale, fill) {
      const { dtype, device, shape } = tensor;
      const all = zeros([count, ...shape.slice(1)], { dtype, device });
      fill(all[bufferSymbol]());
      if (!isRecording(tensor)) return all;
      const end = from + shape[0]!;
      const joined = scope(() =>
        cat([narrow(all, 0, 0, from), scaledGradient(scale)(tensor), narrow(all, 0, end, count - end)]),
      );
      all.dispose();
      return joined;
    },
  };
}

/** Returns a function that returns a tensor as it is, and multiplies its gradient. */
const scaledGradient = (scale: number) =>
  customFunction({
    name: 'rows',
    forward: (_, a: Tensor) => a,
    backward: (_, gradient) => gradient.mul(scale),
  });
