// How the differentiable verbs of @ringwise/collectives record their operations, without importing this package.
import { type Input, sendGradients } from '../autograd/custom.ts';
import { isRecording, record } from '../autograd/node.ts';
import { keep, noGrad, scope } from '../core/context.ts';
import { zeros } from '../core/creation.ts';
import type { Autograd } from '../core/protocol.ts';
import { created, empty, type Tensor } from '../core/tensor.ts';
import { clone, contiguous } from './elementwise/convert.ts';
import { cat } from './shape/join.ts';
import { narrow, permute, view } from './shape/views.ts';

/** Returns the order of the dimensions of `rank` in which dimension `from` is moved to index `to`. */
function moved(rank: number, from: number, to: number): number[] {
  const order = Array.from({ length: rank }, (_, dim) => dim);
  order.splice(to, 0, ...order.splice(from, 1));
  return order;
}

/** The autograd that tensors offer to collectives. Nothing but narrow() is recorded unless record() does it. */
export const autograd: Autograd<Tensor> = {
  shapeOf: (x) => x.shape,
  isRecorded: (x) => isRecording(x),
  empty: (like, shape) => empty(like.dtype, shape, like.device),
  zeros: ({ dtype, device }, shape) => zeros(shape, { dtype, device }),
  copy: (x) => noGrad(() => clone(x)),
  toFront: (x, dim) =>
    noGrad(() => {
      const front = x.rank < 2 ? x : permute(x, moved(x.rank, dim, 0));
      const dense = contiguous(front);
      // A separate tensor, which keeps the memory when `x` is disposed.
      return dense === x ? x.detach() : dense;
    }),
  fromFront: (x, dim) => noGrad(() => (x.rank < 2 ? x : permute(x, moved(x.rank, 0, dim)))),
  narrow,
  join: (parts) => noGrad(() => scope(() => cat(parts.map((part) => view(part, [part.count]))))),
  scale: (x, factor) => noGrad(() => x.mul(factor)),
  keep: (x) => void keep(x),
  dispose: (x) => x.dispose(),
  untracked: noGrad,
  record(name, output, input, backward) {
    const out = output === input ? input.detach() : output;
    if (!isRecording(input)) return out;
    const { dtype, shape, device, target } = input;
    const inputs: readonly Input[] = [{ dtype, shape, device, target }];
    return record(name, out, [target], [], (grad) => {
      scope(() => {
        const gradient = created(grad.retain(), out.shape);
        sendGradients(name, inputs, [noGrad(() => backward(gradient))]);
      });
    });
  },
};
